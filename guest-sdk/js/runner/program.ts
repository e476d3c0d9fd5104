/** A program: evaluated, run as an inferlet or as a controller, and its errors explained. */

import type { Decision, Outcome, StartAnswer } from "tartlet:inferlet/steering@0.1.0";

import { runUntil } from "../src/async/loop";
import { HostPromise, takeUnheard } from "../src/async/promise";
import { kindOf } from "../src/checks";
import { Inferlet } from "../src/entry";
import { TartletError } from "../src/errors";
import * as sdk from "../src/index";
import { writeLog } from "../src/output";
import { toJson } from "../src/results";
import { Steering } from "../src/steering";
import { explain } from "./explain";

type Exports = Record<string, unknown>;
type Body = (require: (name: string) => unknown, module: { exports: Exports }, exports: Exports) => void;

/** A program as the host bundles it. */
export interface Bundle {
  /** A CommonJS module of the whole program but for the SDK, which it requires. */
  readonly code: string;
  /** Its source map, as JSON. */
  readonly map: string;
}

/** One program. All of its methods throw texts, which the component's exports hand over as their errors. */
export class Program {
  readonly #bundle: Bundle;
  readonly #body: Body;
  #steering: Steering | null = null;

  /** Compile it; its own code does not run yet. Throws the engine's SyntaxError. */
  constructor(bundle: Bundle) {
    this.#bundle = bundle;
    this.#body = (0, eval)(`(function (require, module, exports) {${bundle.code}\n})`) as Body;
  }

  /** Run the inferlet to its end; its result as JSON. */
  run(input: unknown): string {
    const report = (reason: unknown): void => {
      writeLog("error", `a promise was rejected, and nobody awaits it: ${explain(reason, this.#bundle.map)}`);
    };
    return this.#explained(() => {
      const result = this.#inferlet().start(input);
      const isPromise = typeof (result as PromiseLike<unknown> | null)?.then === "function";
      const value = isPromise ? runUntil(HostPromise.resolve(result), report) : result;
      const json = toJson(value);
      takeUnheard().forEach(report);
      return json;
    });
  }

  /** Begin as a controller. */
  start(config: string, prompt: number[]): StartAnswer {
    return this.#explained(() => {
      this.#steering = new Steering(new (this.#controller())());
      return this.#steering.start(config, prompt);
    });
  }

  /** Decide, as a controller. */
  step(outcomes: Outcome[]): Decision[] {
    return this.#explained(() => this.#steering!.step(outcomes));
  }

  #explained<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw explain(error, this.#bundle.map);
    }
  }

  #exports(): Exports {
    const module = { exports: {} as Exports };
    this.#body(require, module, module.exports);
    return module.exports;
  }

  #inferlet(): Inferlet {
    const { default: entry } = this.#exports();
    if (entry instanceof Inferlet) {
      return entry;
    }
    if (typeof entry === "function" && !isController(entry)) {
      return new Inferlet(null, entry as (input: any) => unknown);
    }
    const found = entry === undefined ? "has no default export" : `exports ${kindOf(entry)} by default`;
    const hint = "Write export default inferlet(async (input) => ...). A controller is run with `tartlet run --controller`.";
    throw new TartletError("program", `the program ${found}, so there is no inferlet to run`, { hint });
  }

  #controller(): new () => sdk.Controller {
    const classes = Object.values(this.#exports()).filter(isController);
    const leaves = classes.filter((each, k) => classes.indexOf(each) === k && !classes.some((other) => other.prototype instanceof each));
    if (leaves.length === 1) {
      return leaves[0]!;
    }
    const names = leaves.map((each) => each.name).join(", ");
    const found = leaves.length === 0 ? "exports no subclass of Controller" : `exports several controllers: ${names}`;
    throw new TartletError("program", `the program ${found}`, { hint: "Export one." });
  }
}

function isController(value: unknown): value is new () => sdk.Controller {
  return typeof value === "function" && value.prototype instanceof sdk.Controller;
}

function require(name: string): unknown {
  if (name === "tartlet-sdk") {
    return sdk;
  }
  throw new TartletError("program", `there is no module ${JSON.stringify(name)} in the sandbox`, {
    hint: "Modules must be bundled: import them by a literal name. Those of Node, such as fs, are not there.",
  });
}
