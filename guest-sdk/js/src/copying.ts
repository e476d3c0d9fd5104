/** Deep copies: what `structuredClone` gives, and what a controller becomes when its sequence forks. */

/** Marks objects that copies share: they never change, or stand for something of the host's. */
export const SHARED = Symbol("tartlet.shared");

/** Copy all that an object holds, with its classes. Functions, and what is marked as shared, stay the same. */
export function copyWithClasses<T>(value: T): T {
  return copy(value, new Map(), true);
}

/** Copy plain data: objects, arrays, maps, sets, dates and bytes. */
export function structuredClone<T>(value: T): T {
  return copy(value, new Map(), false);
}

function copy<T>(value: T, done: Map<unknown, unknown>, withClasses: boolean): T;
function copy(value: any, done: Map<unknown, unknown>, withClasses: boolean): unknown {
  if (typeof value === "function" || typeof value === "symbol") {
    if (withClasses) {
      return value;
    }
    throw new DOMException(`a ${typeof value} cannot be cloned`, "DataCloneError");
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  const known = done.get(value);
  if (known !== undefined) {
    return known;
  }
  const keep = <C>(copied: C): C => {
    done.set(value, copied);
    return copied;
  };
  if (value instanceof Date) {
    return keep(new Date(value.getTime()));
  }
  if (value instanceof RegExp) {
    return keep(new RegExp(value.source, value.flags));
  }
  if (value instanceof ArrayBuffer) {
    return keep(value.slice(0));
  }
  if (ArrayBuffer.isView(value)) {
    const buffer = copy(value.buffer, done, withClasses);
    const Kind = value.constructor as new (buffer: ArrayBufferLike, start: number, length: number) => ArrayBufferView;
    const length = value instanceof DataView ? value.byteLength : (value as Uint8Array).length;
    return keep(new Kind(buffer, value.byteOffset, length));
  }
  if (value instanceof Map) {
    const copied = keep(new Map());
    value.forEach((each, key) => copied.set(copy(key, done, withClasses), copy(each, done, withClasses)));
    return copied;
  }
  if (value instanceof Set) {
    const copied = keep(new Set());
    value.forEach((each) => copied.add(copy(each, done, withClasses)));
    return copied;
  }
  if (Array.isArray(value)) {
    const copied: unknown[] = keep(new Array(value.length));
    value.forEach((each, index) => (copied[index] = copy(each, done, withClasses)));
    return copied;
  }
  if (withClasses && (value[SHARED] || typeof value[Symbol.dispose] === "function")) {
    return value;
  }
  const copied = keep(withClasses ? Object.create(Object.getPrototypeOf(value)) : {});
  for (const name of Object.keys(value)) {
    copied[name] = copy(value[name], done, withClasses);
  }
  if (value instanceof Error && !withClasses) {
    return keep(Object.assign(new Error(value.message), { name: value.name, stack: value.stack }));
  }
  return copied;
}
