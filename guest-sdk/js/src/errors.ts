/** The one class of error that the SDK throws; its `code` says which kind it is. */

/** The codes of the contract, and after them those of the SDK's own errors. */
export type ErrorCode =
  | "invalid-argument"
  | "not-found"
  | "already-exists"
  | "permission-denied"
  | "quota-exceeded"
  | "kv-exhausted"
  | "context-overflow"
  | "deadline-exceeded"
  | "cancelled"
  | "unsupported"
  | "unavailable"
  | "internal"
  | "deadlock"
  | "program-failed"
  /** The program cannot be run as an inferlet, or its result is no JSON. */
  | "program";

/** A call that was refused or failed. */
export class TartletError extends Error {
  override readonly name = "TartletError";
  /** Stable, for programs. */
  readonly code: ErrorCode;
  /** What to do about it; may be empty. */
  readonly hint: string;
  /** Which call of the SDK it was; may be empty. */
  readonly call: string;

  /** @param message What happened: the argument, what was asked, what is allowed. */
  constructor(code: ErrorCode, message: string, more: { hint?: string; call?: string } = {}) {
    super(message);
    this.code = code;
    this.hint = more.hint ?? "";
    this.call = more.call ?? "";
  }

  override toString(): string {
    const text = `${this.name} [${this.code}]: ${this.call ? `${this.call}: ` : ""}${this.message}`;
    return this.hint ? `${text}\n${this.hint}` : text;
  }
}

/** The error for an argument that is out of its range; the message names it. */
export function invalid(call: string, message: string, hint = ""): TartletError {
  return new TartletError("invalid-argument", message, { call, hint });
}
