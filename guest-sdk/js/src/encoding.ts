/** `TextEncoder` and `TextDecoder`, for UTF-8. */

const REPLACEMENT = 0xfffd;

/** Text to bytes. */
export class HostTextEncoder {
  readonly encoding = "utf-8";

  encode(text = ""): Uint8Array {
    const bytes: number[] = [];
    for (const character of String(text).toWellFormed()) {
      const code = character.codePointAt(0)!;
      if (code < 0x80) {
        bytes.push(code);
      } else if (code < 0x800) {
        bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63));
      } else if (code < 0x10000) {
        bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
      } else {
        bytes.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
      }
    }
    return Uint8Array.from(bytes);
  }
}

/** Bytes to text. What is not UTF-8 becomes U+FFFD, or with `fatal` a TypeError. */
export class HostTextDecoder {
  readonly encoding = "utf-8";
  readonly fatal: boolean;

  constructor(encoding = "utf-8", options: { fatal?: boolean } = {}) {
    if (!/^utf-?8$/i.test(encoding)) {
      throw new RangeError(`the encoding ${encoding} is not supported, only utf-8 is`);
    }
    this.fatal = options.fatal ?? false;
  }

  decode(given: ArrayBuffer | ArrayBufferView = new Uint8Array()): string {
    const bytes =
      given instanceof ArrayBuffer ? new Uint8Array(given) : new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
    const parts: string[] = [];
    for (let at = 0; at < bytes.length; ) {
      const [code, size] = this.#character(bytes, at);
      parts.push(String.fromCodePoint(code));
      at += size;
    }
    return parts.join("");
  }

  /** The character at a place, and how many bytes it takes. */
  #character(bytes: Uint8Array, at: number): [code: number, size: number] {
    const first = bytes[at]!;
    if (first < 0x80) {
      return [first, 1];
    }
    const length = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xc2 && first < 0xe0 ? 2 : 1;
    const lowest = [0, 0, 0x80, 0x800, 0x10000][length]!;
    let code = first & (0xff >> (length + 1));
    let size = 1;
    while (size < length && ((bytes[at + size] ?? 0) & 0xc0) === 0x80) {
      code = (code << 6) | (bytes[at + size]! & 63);
      size += 1;
    }
    const isWhole = length > 1 && size === length && code >= lowest && code < 0x110000 && (code < 0xd800 || code > 0xdfff);
    if (isWhole) {
      return [code, size];
    }
    if (this.fatal) {
      throw new TypeError(`the bytes are not UTF-8 at ${at}`);
    }
    return [REPLACEMENT, size];
  }
}
