/** Checks of arguments before they cross to the host, where a wrong type could only end the run. */

import { invalid } from "./errors";

/** The greatest whole number that fits into 32 bits without a sign. */
export const U32 = 0xffff_ffff;

/** What kind of value it is, for people. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) {
    return String(value);
  }
  if (Array.isArray(value)) {
    return "an array";
  }
  if (typeof value !== "object") {
    return `a ${typeof value}`;
  }
  return `a ${value.constructor?.name || "object"}`;
}

/** `value`, if it is text that can be encoded as UTF-8. */
export function text(value: unknown, name: string, call: string): string {
  if (typeof value !== "string") {
    throw invalid(call, `${name} must be a string, not ${kindOf(value)}`);
  }
  if (!value.isWellFormed()) {
    const at = Array.from(value).findIndex((each) => !each.isWellFormed());
    const code = Array.from(value)[at]!.charCodeAt(0).toString(16).toUpperCase();
    throw invalid(call, `${name} cannot be encoded as UTF-8: lone surrogate U+${code} at character ${at}`);
  }
  return value;
}

/** `value` as JSON text. */
export function jsonText(value: unknown, name: string, call: string): string {
  let written: string | undefined;
  try {
    written = JSON.stringify(value ?? null);
  } catch (error) {
    throw invalid(call, `${name} cannot be written as JSON: ${(error as Error).message}`);
  }
  if (written === undefined) {
    throw invalid(call, `${name} cannot be written as JSON: it is ${kindOf(value)}`);
  }
  return written;
}

/** `values` as an array, if all of them are numbers that a token id could be. */
export function tokens(values: Iterable<number>, name: string, call: string): number[] {
  if (typeof values === "string" || typeof (values as Iterable<number> | null)?.[Symbol.iterator] !== "function") {
    throw invalid(call, `${name} must be token ids from 0 to ${U32}, not ${kindOf(values)}`);
  }
  const list = Array.from(values);
  for (const each of list) {
    if (!isWhole(each, 0, U32)) {
      throw invalid(call, `${name} must be token ids from 0 to ${U32}, not ${shown(each)}`);
    }
  }
  return list.map(asU32);
}

/** `value`, if it is a whole number from `low` to `high`. One of 32 bits is as the bindings take it, see `asU32`. */
export function whole(value: unknown, name: string, call: string, low = 0, high = U32): number {
  if (typeof value !== "number") {
    throw invalid(call, `${name} must be a number, not ${kindOf(value)}`);
  }
  if (!Number.isInteger(value)) {
    throw invalid(call, `${name} must be a whole number, not ${value}`);
  }
  if (!isWhole(value, low, high)) {
    throw invalid(call, `${name} must be from ${low} to ${high}, not ${value}`);
  }
  return high === U32 ? asU32(value) : value;
}

/**
 * A whole number of 32 bits, as the bindings take it: those above 2^31 as the negative number of the same bits. Otherwise they
 * would make 2^31 - 1 of it.
 */
export function asU32(value: number): number {
  return value | 0;
}

/** `value`, if it is finite and from `low` to `high`. */
export function number(value: unknown, name: string, call: string, low = -Infinity, high = Infinity): number {
  if (typeof value !== "number") {
    throw invalid(call, `${name} must be a number, not ${kindOf(value)}`);
  }
  if (!Number.isFinite(value) || value < low || value > high) {
    const from = low > -Infinity ? ` from ${low}` : "";
    const to = high < Infinity ? ` to ${high}` : "";
    throw invalid(call, `${name} must be a finite number${from}${to}, not ${value}`);
  }
  return value;
}

/** `options`, if it is an object that has no other names than these. A misspelt option is not ignored. */
export function options<T extends object>(given: T | undefined, names: readonly string[], call: string): T {
  if (given === undefined) {
    return {} as T;
  }
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw invalid(call, `options must be an object, not ${kindOf(given)}`, `Options are: ${names.join(", ")}.`);
  }
  for (const name of Object.keys(given)) {
    if (!names.includes(name)) {
      throw invalid(call, `there is no option ${shown(name)}`, `Options are: ${names.join(", ")}.`);
    }
  }
  return given;
}

/** A value as it may stand in a message: short. */
export function shown(value: unknown): string {
  if (typeof value === "string") {
    return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}...` : value);
  }
  if (typeof value === "number" || typeof value === "boolean" || value === null || value === undefined) {
    return String(value);
  }
  return kindOf(value);
}

function isWhole(value: unknown, low: number, high: number): value is number {
  return Number.isInteger(value) && (value as number) >= low && (value as number) <= high;
}
