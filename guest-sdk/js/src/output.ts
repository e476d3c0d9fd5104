/** What a program tells people: output text, and log lines. */

import type { Level } from "tartlet:inferlet/log@0.1.0";

import { inspectAll } from "./inspect";
import { log as host } from "./wit";

const MOST_CHARACTERS = 16 * 1024; // per call of the host: at most 64 KiB of UTF-8

/** Output text as it is, without a newline, at once. */
export function print(text: string): void {
  const sent = String(text).toWellFormed();
  for (let start = 0; start < sent.length; ) {
    let end = Math.min(sent.length, start + MOST_CHARACTERS);
    if (end < sent.length && (sent.charCodeAt(end) & 0xfc00) === 0xdc00) {
      end -= 1; // not between the two halves of a character
    }
    host.print(sent.slice(start, end));
    start = end;
  }
}

/** Send one log line, cut to the host's greatest length. */
export function writeLog(level: Level, message: string): void {
  host.log(level, message.slice(0, MOST_CHARACTERS).toWellFormed());
}

function logger(level: Level): (...values: unknown[]) => void {
  return (...values) => writeLog(level, inspectAll(values));
}

/** Log lines, by how much they matter. */
export const log = {
  trace: logger("trace"),
  debug: logger("debug"),
  info: logger("info"),
  warn: logger("warn"),
  error: logger("error"),
};

function printLine(...values: unknown[]): void {
  print(`${inspectAll(values)}\n`);
}

/** The global `console`: `log` and `info` are output text, the others log lines. */
export const console = {
  log: printLine,
  info: printLine,
  debug: log.debug,
  trace: log.trace,
  warn: log.warn,
  error: log.error,
  assert(condition: unknown, ...values: unknown[]): void {
    if (!condition) {
      log.error("assertion failed", ...values);
    }
  },
};
