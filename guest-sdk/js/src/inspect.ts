/** Values as text for people: what `console.log` writes. */

const MOST_DEPTH = 4;
const MOST_ITEMS = 100;

/** Several values, with a space between them; texts as they are. */
export function inspectAll(values: unknown[]): string {
  return values.map((each) => (typeof each === "string" ? each : inspect(each, 0, []))).join(" ");
}

function inspect(value: any, depth: number, above: unknown[]): string {
  if (typeof value === "string") {
    return JSON.stringify(value);
  }
  if (typeof value === "bigint") {
    return `${value}n`;
  }
  if (typeof value === "function") {
    return `[function ${value.name || "without a name"}]`;
  }
  if (typeof value !== "object" || value === null) {
    return String(value);
  }
  if (value instanceof Error) {
    return String(value);
  }
  if (value instanceof Date) {
    return value.toISOString();
  }
  if (above.includes(value)) {
    return "[circular]";
  }
  const kind = value.constructor?.name ?? "";
  if (depth >= MOST_DEPTH) {
    return Array.isArray(value) ? "[...]" : `${kind === "Object" ? "" : kind} {...}`.trim();
  }
  const inner = (each: unknown): string => inspect(each, depth + 1, [...above, value]);
  if (Array.isArray(value) || ArrayBuffer.isView(value)) {
    return `${Array.isArray(value) ? "" : `${kind} `}[${listed(Array.from(value as unknown[]), inner)}]`;
  }
  if (value instanceof Set) {
    return `Set {${listed(Array.from(value), inner)}}`;
  }
  if (value instanceof Map) {
    return `Map {${listed(Array.from(value), ([key, each]) => `${inner(key)} => ${inner(each)}`)}}`;
  }
  const body = listed(Object.entries(value), ([key, each]) => `${key}: ${inner(each)}`);
  return `${kind && kind !== "Object" ? `${kind} ` : ""}${body ? `{ ${body} }` : "{}"}`;
}

function listed<T>(items: T[], write: (item: T) => string): string {
  const shown = items.slice(0, MOST_ITEMS).map(write);
  if (items.length > MOST_ITEMS) {
    shown.push(`... ${items.length - MOST_ITEMS} more`);
  }
  return shown.join(", ");
}
