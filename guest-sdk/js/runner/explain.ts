/** What went wrong, as text for the author: the error, and where in the author's files it comes from. */

import { TartletError } from "../src/errors";
import { inspectAll } from "../src/inspect";
import { authorsFrames } from "./stack";

const MOST_CHARACTERS = 16_000; // of an error: somebody has to read it
const MOST_CAUSES = 5;
const OUT_OF_MEMORY = "out of memory";

/** The error as text; never throws. */
export function explain(error: unknown, mapText: string): string {
  try {
    return shortened(described(error, mapText, 0).toWellFormed());
  } catch {
    return String(error); // out of memory or stack: what is left must be enough for one line
  }
}

function described(error: unknown, mapText: string, depth: number): string {
  if (error === null) {
    return "the program threw null; the engine does so when it has no memory left for an error";
  }
  if (!(error instanceof Error)) {
    return `the program threw ${inspectAll([error])}, which is no Error`;
  }
  const isProgramsFault = error instanceof TartletError && (error.code === "program" || error.call === "inferlet");
  const frames = isProgramsFault ? [] : authorsFrames(error.stack ?? "", mapText); // no line is to blame
  const lines = frames.map(({ name, file, line, column }) => {
    const place = `${file}:${line}:${column}`;
    return name && name !== "<anonymous>" ? `    at ${name} (${place})` : `    at ${place}`;
  });
  if (error.name === "InternalError" && error.message === OUT_OF_MEMORY) {
    return [...lines, `MemoryError: ${OUT_OF_MEMORY}`].join("\n"); // as the host knows it from Python
  }
  const text = [String(error), ...lines];
  if (error instanceof AggregateError) {
    text.push(...error.errors.map((each) => `- ${described(each, mapText, depth + 1)}`));
  }
  if (error.cause !== undefined && depth < MOST_CAUSES) {
    text.push(`caused by ${described(error.cause, mapText, depth + 1)}`);
  }
  return text.join("\n");
}

/** A text of bounded length: of a longer one, its beginning and its end. */
function shortened(text: string): string {
  const leftOut = text.length - MOST_CHARACTERS;
  if (leftOut <= 0) {
    return text;
  }
  const half = MOST_CHARACTERS / 2;
  return `${text.slice(0, half)}\n[${leftOut} characters left out]\n${text.slice(-half)}`;
}
