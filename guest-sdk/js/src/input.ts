/** What an inferlet takes: the fields of its input, each with a type and perhaps a default. */

import { shown } from "./checks";
import { invalid } from "./errors";

/** One field of an input. */
export interface Field<T> {
  /** What it must be, for people. */
  readonly describes: string;
  /** Whether it may be left out, and then is `default`. */
  readonly isOptional: boolean;
  readonly default: T | undefined;
  /** The value, if it is of the type; `path` is where it stands. Throws `invalid-argument`. */
  check(value: unknown, path: string): T;
}

/** The fields of an input, by name. */
export type Fields = Record<string, Field<any>>;

/** What a program gets, if its input has these fields. */
export type InputOf<F extends Fields> = { [K in keyof F]: F[K] extends Field<infer T> ? T : never };

/** A text. */
export function text(...given: [string?]): Field<string> {
  return field("text", given, (value) => typeof value === "string");
}

/** A whole number. */
export function integer(...given: [number?]): Field<number> {
  return field("a whole number", given, (value) => Number.isSafeInteger(value));
}

/** A number. */
export function number(...given: [number?]): Field<number> {
  return field("a number", given, (value) => typeof value === "number");
}

/** True or false. */
export function boolean(...given: [boolean?]): Field<boolean> {
  return field("true or false", given, (value) => typeof value === "boolean");
}

/** One of several texts. */
export function choice<const T extends string>(of: readonly T[], ...given: [T?]): Field<T> {
  return field(`one of ${of.map(shown).join(", ")}`, given, (value) => of.includes(value as T));
}

/** A list, each of whose items is such a field. */
export function list<T>(of: Field<T>, ...given: [T[]?]): Field<T[]> {
  const plain = field<T[]>(`a list of ${of.describes}`, given, Array.isArray);
  return {
    ...plain,
    check: (value, path) => plain.check(value, path).map((each, k) => of.check(each, `${path}[${k}]`)),
  };
}

/** Anything that JSON can say. */
export function json(...given: [unknown?]): Field<any> {
  return field<any>("any JSON", given, () => true);
}

/** The input of an inferlet that has these fields. Throws `invalid-argument`, which names what is wrong with it. */
export function inputOf<F extends Fields>(fields: F, given: unknown): InputOf<F> {
  const names = Object.keys(fields);
  const usage = names.length === 0 ? "It takes no arguments." : `It takes: ${names.map((each) => usageOf(each, fields[each]!)).join("; ")}`;
  const from = given ?? {};
  if (typeof from !== "object" || Array.isArray(from)) {
    const example = `{${names.map((each) => `"${each}": ...`).join(", ")}}`;
    throw invalid("inferlet", `the input must be a JSON object such as ${example}, not ${shown(from)}`);
  }
  const held = from as Record<string, unknown>;
  const unknown = Object.keys(held).find((each) => !names.includes(each));
  if (unknown !== undefined) {
    throw invalid("inferlet", `there is no argument ${shown(unknown)}`, usage);
  }
  const missing = names.filter((each) => !fields[each]!.isOptional && !(each in held));
  if (missing.length > 0) {
    throw invalid("inferlet", `missing argument ${missing.map(shown).join(", ")}`, usage);
  }
  const read = (name: string): unknown =>
    name in held ? fields[name]!.check(held[name], name) : structuredClone(fields[name]!.default);
  return Object.fromEntries(names.map((each) => [each, read(each)])) as InputOf<F>;
}

function field<T>(describes: string, given: [T?], is: (value: unknown) => boolean): Field<T> {
  return {
    describes,
    isOptional: given.length > 0,
    default: given[0],
    check(value, path) {
      if (!is(value)) {
        throw invalid("inferlet", `${path} must be ${describes}, not ${shown(value)}`);
      }
      return value as T;
    },
  };
}

function usageOf(name: string, of: Field<unknown>): string {
  return `${name} (${of.describes}${of.isOptional ? `, default ${shown(of.default)}` : ""})`;
}
