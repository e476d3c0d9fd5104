/**
 * What a JavaScript or TypeScript inferlet is written with.
 *
 * import { getModel, inferlet, input, Sampler } from "tartlet-sdk";
 *
 * export default inferlet({ thing: input.text("bakery") }, async ({ thing }) => {
 *   const context = getModel().context();
 *   context.user(`Suggest a name for a ${thing}. Answer with the name only.`);
 *   const sampler = Sampler.topP(0.8, 0.95);
 *   const drafts = await Promise.all([1, 2, 3].map(() => context.fork().generate({ sampler, maxTokens: 12 })));
 *   return drafts.map((draft) => draft.text.trim());
 * });
 */

export type { AnswerOptions, Splice } from "./answer";
export { sleep } from "./async/timers";
export { Constraint, type ConstraintOptions } from "./constraint";
export { Context, type GenerateOptions, type SamplingOptions, type StreamOptions } from "./context";
export { type Branch, Controller, type Decision, force, type Sequence, type StepInfo, type Wait } from "./controller";
export { Chunk, Draft, type FinishReason, type TokenLogprob, type TokenLogprobs, type Usage } from "./draft";
export { type Inferlet, inferlet } from "./entry";
export { type ErrorCode, TartletError } from "./errors";
export type { Ask, ForwardOptions, Pass, Row } from "./forward";
export type { Generation, GenerationStream } from "./generation";
export * as input from "./input";
export { Mask } from "./mask";
export { Matcher } from "./matcher";
export { availableModels, getModel, type Model, type ModelInfo } from "./model";
export { log, print } from "./output";
export * as run from "./run";
export type { RunInfo, RunLimit } from "./run";
export { Sampler, type SamplerExtras, type SamplerSettings } from "./sampler";
export { deleteContext, openContext, type SavedContext, savedContexts } from "./saved";
export { Speculation, type SpeculationOptions } from "./speculation";
export type { Outcome, Steps } from "./steps";
export { endsWithAny, ignoreEos, maxTokens, StopCondition, stopStrings, stopTokens } from "./stop";
export * as variables from "./variables";
export type { Swap, Variable } from "./variables";
/** The contract's own functions, for what the SDK does by itself; their errors are objects with a `payload`. */
export * as wit from "./wit";
