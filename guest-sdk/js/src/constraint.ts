/** What a generation may write: constraints, also as options of `Context.generate`, and the value that comes of it. */

import type { Constraint as Handle } from "tartlet:inferlet/constraints@0.1.0";
import type { Model as ModelHandle } from "tartlet:inferlet/models@0.1.0";

import { finish } from "./async/loop";
import * as checks from "./checks";
import { invalid } from "./errors";
import { call, dispose } from "./host_call";
import { Mask, maskId } from "./mask";
import { constraints } from "./wit";

/** The options of `Context.generate` and `Context.steps` that say what is written: one of them at most. */
export interface ConstraintOptions {
  /** Write JSON of this schema, an object or a JSON text; `draft.value` is what was parsed of it. */
  jsonSchema?: object | string;
  /** Write a text that matches as a whole; in the syntax of Rust's regex. */
  regex?: string;
  /** Write a text of this grammar, in llguidance's variant of Lark. */
  lark?: string;
  /** Write one of these texts. */
  choices?: Iterable<string>;
  /** Quote: write a run of whole words of this text. */
  substring?: string;
  /** Write any number of these tokens. */
  tokens?: Iterable<number>;
  /** Write what a `Constraint` allows, which can be put together of several. */
  constraint?: Constraint;
}

/** Their names. */
export const CONSTRAINT_OPTIONS = ["jsonSchema", "regex", "lark", "choices", "substring", "tokens", "constraint"] as const;

type Parse = (text: string) => unknown;
type Make = (model: ModelHandle, signal?: AbortSignal) => Promise<Handle>;

/**
 * What a generation may write. `one.and(other)` is what both constraints allow, `one.or(other)` what either does.
 *
 * A constraint is compiled when it is first used; compiled ones are kept for the tenant, so it does not matter how often
 * it is made.
 */
export class Constraint {
  readonly #make: Make;
  readonly #kind: "single" | "allOf" | "anyOf";
  readonly #parts: readonly Constraint[];

  /** For the SDK alone: use the functions below. */
  constructor(
    make: Make,
    /** Makes the value from a whole text. */
    readonly parse: Parse = asText,
    kind: "single" | "allOf" | "anyOf" = "single",
    parts: readonly Constraint[] = [],
  ) {
    this.#make = make;
    this.#kind = kind;
    this.#parts = parts;
  }

  /** JSON of a schema: an object, or a JSON text. */
  static jsonSchema(schema: object | string): Constraint {
    return ofSchema(schema, "Constraint.jsonSchema");
  }

  /** A text that matches as a whole, in the syntax of Rust's regex. */
  static regex(pattern: string): Constraint {
    return ofText("regex", pattern, "Constraint.regex");
  }

  /** A text of a grammar, in llguidance's variant of Lark. */
  static lark(grammar: string): Constraint {
    return ofText("lark", grammar, "Constraint.lark");
  }

  /** One of several texts. */
  static choices(...texts: string[]): Constraint {
    return ofChoices(texts, "Constraint.choices");
  }

  /** A run of whole words of a text. */
  static substring(text: string): Constraint {
    return ofText("substring", text, "Constraint.substring");
  }

  /** Any number of these tokens. */
  static tokens(tokens: Iterable<number>): Constraint {
    return ofTokens(tokens, "Constraint.tokens");
  }

  /** Any number of the tokens of a mask. `mask.not()` gives all tokens but some. */
  static mask(mask: Mask): Constraint {
    const name = "Constraint.mask";
    if (!(mask instanceof Mask)) {
      maskId(mask, name);
      throw invalid(name, "mask must be a Mask");
    }
    return single((call) => call(() => constraints.Constraint.ofMask(mask.handle)), asText, name);
  }

  /** What both allow, token by token. Where they allow nothing together, the generation fails. */
  and(other: Constraint): Constraint {
    const parts = [...this.#partsOf("allOf"), ...requireConstraint(other, "Constraint.and").#partsOf("allOf")];
    const schema = parts.find((part) => part.parse !== asText);
    return combined("allOf", parts, schema?.parse ?? asText);
  }

  /** What either allows. The value is that of the first one that can make one of the text. */
  or(other: Constraint): Constraint {
    const parts = [...this.#partsOf("anyOf"), ...requireConstraint(other, "Constraint.or").#partsOf("anyOf")];
    return combined("anyOf", parts, (text) => firstValue(parts, text));
  }

  /** Compile it on the host. Throws `invalid-argument` with the grammar's error, or `quota-exceeded`. */
  compile(model: ModelHandle, signal?: AbortSignal): Promise<Handle> {
    return this.#make(model, signal);
  }

  /** Its own parts, if it is such a combination, or itself. */
  #partsOf(kind: "allOf" | "anyOf"): readonly Constraint[] {
    return this.#kind === kind ? this.#parts : [this];
  }
}

/** The one constraint that is given, if one is. Throws `invalid-argument` for two, or for one of a wrong type. */
export function constraintOf(options: ConstraintOptions, name: string): Constraint | null {
  const given = CONSTRAINT_OPTIONS.filter((each) => options[each] !== undefined && options[each] !== null);
  if (given.length > 1) {
    const hint = "Put them together: constraint: Constraint.regex(...).and(Constraint.choices(...)).";
    throw invalid(name, `${given.join(" and ")} are given at once`, hint);
  }
  switch (given[0]) {
    case undefined:
      return null;
    case "jsonSchema":
      return ofSchema(options.jsonSchema!, name);
    case "choices":
      return ofChoices(options.choices!, name);
    case "tokens":
      return ofTokens(options.tokens!, name);
    case "constraint":
      return requireConstraint(options.constraint, name);
    default:
      return ofText(given[0], options[given[0]]!, name);
  }
}

/** `given`, if it is a constraint. */
export function requireConstraint(given: unknown, name: string): Constraint {
  if (!(given instanceof Constraint)) {
    const hint = "Make one with Constraint.regex(...).";
    throw invalid(name, `constraint must be a Constraint, not ${checks.kindOf(given)}`, hint);
  }
  return given;
}

function asText(text: string): unknown {
  return text;
}

function ofText(kind: "regex" | "lark" | "substring", value: string, name: string): Constraint {
  const given = checks.text(value, kind, name);
  return single((call, model) => call(() => constraints.Constraint[kind](model, given)), asText, name);
}

function ofChoices(value: Iterable<string>, name: string): Constraint {
  if (typeof value === "string" || typeof (value as Iterable<string> | null)?.[Symbol.iterator] !== "function") {
    throw invalid(name, `choices must be several texts, not ${checks.kindOf(value)}`, 'Write ["one", "two"].');
  }
  const texts = Array.from(value, (each) => checks.text(each, "a choice", name));
  return single((call, model) => call(() => constraints.Constraint.choices(model, texts)), asText, name);
}

function ofTokens(value: Iterable<number>, name: string): Constraint {
  const ids = checks.tokens(value, "tokens", name);
  return single((call, model) => call(() => constraints.Constraint.tokens(model, ids)), asText, name);
}

function ofSchema(schema: object | string, name: string): Constraint {
  if (typeof schema !== "string" && (typeof schema !== "object" || schema === null)) {
    throw invalid(name, `jsonSchema must be an object or a JSON text, not ${checks.kindOf(schema)}`);
  }
  const text = typeof schema === "string" ? schema : checks.jsonText(schema, "jsonSchema", name);
  const given = checks.text(text, "jsonSchema", name);
  return single((call, model) => call(() => constraints.Constraint.jsonSchema(model, given)), JSON.parse, name);
}

function single(
  make: (call: (work: () => Handle) => Handle, model: ModelHandle) => Handle,
  parse: Parse,
  name: string,
): Constraint {
  return new Constraint((model, signal) => compiled(make((work) => call(name, work), model), name, signal), parse);
}

function combined(kind: "allOf" | "anyOf", parts: readonly Constraint[], parse: Parse): Constraint {
  const name = kind === "allOf" ? "Constraint.and" : "Constraint.or";
  const make: Make = async (model, signal) => {
    const handles: Handle[] = [];
    try {
      for (const part of parts) {
        handles.push(await part.compile(model, signal));
      }
      const ids = handles.map((handle) => handle.id());
      return await compiled(
        call(name, () => constraints.Constraint[kind](ids)),
        name,
        signal,
      );
    } finally {
      handles.forEach(dispose);
    }
  };
  return new Constraint(make, parse, kind, parts);
}

/** Wait until it is compiled; if it cannot be, free it and throw. */
async function compiled(handle: Handle, name: string, signal?: AbortSignal): Promise<Handle> {
  try {
    await finish(handle.ready(), name, signal);
  } catch (error) {
    dispose(handle);
    throw error;
  }
  return handle;
}

function firstValue(parts: readonly Constraint[], text: string): unknown {
  for (const part of parts) {
    try {
      return part.parse(text);
    } catch {
      continue; // the text is that of another part
    }
  }
  return text;
}
