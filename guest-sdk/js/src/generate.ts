/** From the options of `Context.generate` and `Context.stream` to a generation. */

import * as checks from "./checks";
import { CONSTRAINT_OPTIONS, constraintOf } from "./constraint";
import type { Context, GenerateOptions, StreamOptions } from "./context";
import { ControlledGenerating } from "./controlled";
import { invalid } from "./errors";
import { type Generating, PlainGenerating } from "./generating";
import { Generation, GenerationStream } from "./generation";
import { maskId } from "./mask";
import { samplerOf } from "./sampler";
import { Speculation } from "./speculation";
import { stopOf } from "./stop";

/** Options that generations and steps have in common. */
export const SAMPLING_OPTIONS = [...CONSTRAINT_OPTIONS, "sampler", "stop", "maxTokens", "logprobs", "mask", "signal"] as const;
export const MOST_LOGPROBS = 20;

const GENERATE_OPTIONS = [...SAMPLING_OPTIONS, "speculation", "controller", "config"];
const STREAM_OPTIONS = [...GENERATE_OPTIONS, "chunkIntervalMs"];
const CHUNK_INTERVAL_MS = 30; // as often as anybody can see
const LONGEST_CHUNK_INTERVAL_MS = 3_600_000;
const NS_PER_MS = 1e6;

/** `Context.generate`. */
export function generate<V>(context: Context, options: GenerateOptions | undefined): Generation<V> {
  const name = "Context.generate";
  return new Generation<V>(generating(context, checks.options(options, GENERATE_OPTIONS, name), CHUNK_INTERVAL_MS, name));
}

/** `Context.stream`. */
export function stream<V>(context: Context, options: StreamOptions | undefined): GenerationStream<V> {
  const name = "Context.stream";
  const given = checks.options(options, STREAM_OPTIONS, name);
  const interval = given.chunkIntervalMs ?? CHUNK_INTERVAL_MS;
  checks.number(interval, "chunkIntervalMs", name, 0, LONGEST_CHUNK_INTERVAL_MS);
  return new GenerationStream<V>(generating(context, given, interval, name));
}

function generating(context: Context, options: GenerateOptions, chunkIntervalMs: number, name: string): Generating<any> {
  const { logprobs, mask, speculation, controller } = options;
  if (speculation !== undefined && !(speculation instanceof Speculation)) {
    const hint = "Write speculation: new Speculation(), or new Speculation({ expected: text }).";
    throw invalid(name, `speculation must be a Speculation, not ${checks.kindOf(speculation)}`, hint);
  }
  maskId(mask, name);
  const request = {
    context,
    sampling: samplerOf(options.sampler, name).record,
    stop: stopOf(options.stop, options.maxTokens, name).record,
    logprobs: logprobs === undefined ? null : checks.whole(logprobs, "logprobs", name, 0, MOST_LOGPROBS),
    chunkIntervalNs: Math.floor(chunkIntervalMs * NS_PER_MS),
    constraint: constraintOf(options, name),
    mask: mask ?? null,
    speculation: speculation ?? null,
    signal: options.signal,
  };
  if (controller === undefined) {
    return new PlainGenerating(request);
  }
  if (speculation !== undefined) {
    throw invalid(name, "a generation with a controller does not speculate");
  }
  const program = checks.text(controller, "controller", name);
  return new ControlledGenerating(request, program, checks.jsonText(options.config, "config", name));
}
