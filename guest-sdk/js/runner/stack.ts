/** Where in the author's files an error comes from: the engine's stack, by way of the bundle's source map. */

/** A place in a file. Lines and columns count from 1. */
export interface Frame {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

interface Segment {
  readonly column: number;
  readonly source: number;
  readonly line: number;
  readonly sourceColumn: number;
}

interface SourceMap {
  readonly sources: string[];
  readonly mappings: string;
}

const EVALUATED = "<input>"; // what the engine calls a text that is evaluated
const FRAME = /^\s*at (?:(.*?) \()?(.*?):(\d+):(\d+)\)?$/;
const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** The frames of a stack that are in the author's files, innermost first. */
export function authorsFrames(stack: string, mapText: string): Frame[] {
  const map = JSON.parse(mapText) as SourceMap;
  const lines = map.mappings.split(";");
  const frames: Frame[] = [];
  let decoded: Segment[][] | null = null;
  for (const text of stack.split("\n")) {
    const [, name = "", file, line, column] = FRAME.exec(text) ?? [];
    if (file !== EVALUATED) {
      continue;
    }
    decoded ??= decode(lines);
    const found = segmentAt(decoded[Number(line) - 1] ?? [], Number(column) - 1);
    const source = found === undefined ? undefined : map.sources[found.source];
    if (found !== undefined && source !== undefined) {
      frames.push({ name, file: source, line: found.line + 1, column: found.sourceColumn + 1 });
    }
  }
  return frames;
}

/** The segment that a column is in. */
function segmentAt(segments: Segment[], column: number): Segment | undefined {
  return segments.findLast((segment) => segment.column <= column);
}

/** The segments of each line of the bundle. */
function decode(lines: string[]): Segment[][] {
  let source = 0;
  let line = 0;
  let sourceColumn = 0;
  return lines.map((text) => {
    let column = 0;
    const segments: Segment[] = [];
    for (const part of text.split(",")) {
      const [columns = 0, sources, lines, sourceColumns] = numbers(part);
      column += columns;
      if (sources !== undefined && lines !== undefined && sourceColumns !== undefined) {
        source += sources;
        line += lines;
        sourceColumn += sourceColumns;
        segments.push({ column, source, line, sourceColumn });
      }
    }
    return segments;
  });
}

/** Numbers as source maps write them: base64 digits of 5 bits and a mark that more follow; the sign is the last bit. */
function numbers(text: string): number[] {
  const found: number[] = [];
  let value = 0;
  let shift = 0;
  for (const letter of text) {
    const digit = DIGITS.indexOf(letter);
    value += (digit & 31) << shift;
    shift += 5;
    if (digit < 32) {
      found.push(value & 1 ? -(value >> 1) : value >> 1);
      value = 0;
      shift = 0;
    }
  }
  return found;
}
