/** An inferlet's result as JSON. */

import { kindOf, shown } from "./checks";
import { TartletError } from "./errors";

const ALLOWED = "Return text, numbers, booleans, null, arrays, objects, maps and sets. Await what is not finished yet.";

/** Write a result as JSON. Throws `program`, and names the part of it that cannot be written. */
export function toJson(result: unknown): string {
  return JSON.stringify(plain(result ?? null, "the result", []));
}

/** A value that JSON has, for one that it may not have. What is `undefined` in an object is left out. */
function plain(value: any, path: string, above: unknown[]): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw refused(path, String(value));
  }
  if (typeof value !== "object") {
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean" || value === undefined) {
      return value;
    }
    throw refused(path, kindOf(value));
  }
  if (value === null) {
    return null;
  }
  if (above.includes(value)) {
    throw new TartletError("program", `cannot be written as JSON: ${path} contains itself`, { hint: ALLOWED });
  }
  if (typeof value.then === "function") {
    throw refused(path, "a promise");
  }
  const inside = [...above, value];
  if (typeof value.toJSON === "function") {
    return plain(value.toJSON(), path, inside);
  }
  if (Array.isArray(value) || value instanceof Set || ArrayBuffer.isView(value)) {
    return Array.from(value as Iterable<unknown>, (each, k) => plain(each ?? null, `${path}[${k}]`, inside));
  }
  const entries = value instanceof Map ? Array.from(value) : Object.entries(value);
  const written: Record<string, unknown> = {};
  for (const [key, each] of entries) {
    written[String(key)] = plain(each, `${path}[${shown(key)}]`, inside);
  }
  return written;
}

function refused(path: string, what: string): TartletError {
  return new TartletError("program", `cannot be written as JSON: ${path} is ${what}`, { hint: ALLOWED });
}
