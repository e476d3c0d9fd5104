/** What a case tells: lines of text that do not depend on the language. The README says how values are written. */

import { TartletError } from "tartlet-sdk";

/** A number that is written as the bits of an f32: JavaScript does not tell it from a whole one. */
export class F32 {
  constructor(readonly value: number) {}
}

/** Mark a number as an f32. */
export function f32(value: number): F32 {
  return new F32(value);
}

/** Write a value: `none`, `true`, `12`, `"text"`, `0x3f800000` for a float, `[1, 2]`. */
export function show(value: any): string {
  if (value === null) {
    return "none";
  }
  if (value instanceof F32) {
    const bits = new Uint32Array(Float32Array.of(value.value).buffer)[0]!;
    return `0x${bits.toString(16).padStart(8, "0")}`;
  }
  if (typeof value === "boolean" || typeof value === "number") {
    return String(value);
  }
  if (typeof value === "string") {
    return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
  }
  if (typeof value === "object" && Symbol.iterator in value) {
    return `[${Array.from(value as Iterable<unknown>, show).join(", ")}]`;
  }
  return "ok"; // a handle, or nothing
}

function showError(error: any): string {
  const found = error instanceof TartletError ? error : error.payload; // the bindings' own
  if (found === undefined) {
    throw error;
  }
  return `error ${found.code}, ${show(found.message)}, ${show(found.hint)}`;
}

/** The lines of one case. */
export class Transcript {
  readonly lines: string[] = [];

  /** Add a line: what it is, and one value or several. */
  say(label: string, ...values: unknown[]): void {
    this.lines.push(`${label}: ${values.map(show).join(", ")}`);
  }

  /** Call a function; tell `ok`, the value, or the error. The value. */
  attempt<T>(label: string, work: () => T): T | undefined {
    try {
      return this.#told(label, work());
    } catch (error) {
      this.lines.push(`${label}: ${showError(error)}`);
      return undefined;
    }
  }

  /** Await what a function begins; tell `ok`, the value, or the error. The value. */
  async wait<T>(label: string, work: () => PromiseLike<T>): Promise<T | undefined> {
    try {
      return this.#told(label, await work());
    } catch (error) {
      this.lines.push(`${label}: ${showError(error)}`);
      return undefined;
    }
  }

  #told<T>(label: string, value: T): T {
    this.lines.push(`${label}: ${value === null || value === undefined ? "ok" : show(value)}`);
    return value;
  }
}
