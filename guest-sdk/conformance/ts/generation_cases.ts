/** Generations, and what the program tells people. */

import { type Draft, endsWithAny, ignoreEos, maxTokens, print, Sampler, stopStrings, stopTokens, wit } from "tartlet-sdk";

import { filled } from "./context_cases";
import { cases } from "./registry";
import { f32, type Transcript } from "./transcript";

/** 2^64 - 1, which the bindings make of it. */
const MOST = 2 ** 64;
export const GREEDY = {
  temperature: 0,
  topK: 0,
  topP: 1,
  minP: 0,
  repetitionPenalty: 1,
  presencePenalty: 0,
  frequencyPenalty: 0,
  logitBias: [] as [number, number][],
  seed: null as number | null,
};
export const NO_STOP = { maxTokens: null as number | null, tokens: [] as number[], strings: [] as string[], ignoreEos: false };
type Options = Parameters<typeof wit.generation.generate>[3];
export const PLAIN: Options = {
  streaming: false,
  chunkIntervalNs: 0,
  logProbabilities: null,
  constraint: null,
  speculation: null,
  mask: null,
};

function sayDraft(t: Transcript, label: string, draft: Draft): void {
  t.say(label, draft.text, draft.finishReason, draft.stopString);
  t.say("tokens", draft.tokens);
}

/** A context of the contract's own. */
function contextOf(text: string) {
  const context = wit.contexts.Context.create(wit.models.Model.open(null), null);
  context.fill(text);
  return context;
}

function start(text: string, streaming = false) {
  return wit.generation.generate(contextOf(text), GREEDY, NO_STOP, { ...PLAIN, streaming });
}

cases({
  async "generation.generate"(t) {
    const context = filled("Hello é");
    const draft = await context.generate();
    sayDraft(t, "draft", draft);
    const { usage } = draft;
    t.say("usage", usage.promptTokens, usage.cachedTokens, usage.generatedTokens, usage.forcedTokens);
    t.say("guesses", usage.draftTokens, usage.acceptedTokens);
    t.say("pages", usage.pages, usage.sharedPages);
    t.say("times", 0 < usage.firstTokenNs && usage.firstTokenNs <= usage.totalNs);
    t.say("context", context.tokens);
    sayDraft(t, "goes on", await context.generate({ maxTokens: 3 }));
  },

  "generation.generation.ready"(t) {
    using running = start("Hello");
    const event = running.ready();
    t.say("the same at every call", running.ready() === event);
    t.say("ready", wit.events.poll([event], null)[0] === event);
    t.say("text", running.read().text);
  },

  "generation.generation.read"(t) {
    using running = start("Hello");
    const early = running.read(); // what there is by now, which may be nothing
    t.say("not the end", early.finish === null, early.logProbabilities.length);
    wit.events.poll([running.ready()], null);
    const chunk = running.read();
    t.say("all", early.text + chunk.text, [...early.tokens, ...chunk.tokens]);
    const finish = chunk.finish!;
    t.say("finish", finish.reason, finish.stopString, finish.usage.generatedTokens);
    t.attempt("after the end", () => running.read());
  },

  "generation.generation.next"(t) {
    using running = start("Hello", true);
    let text = "";
    for (;;) {
      const chunk = running.next();
      text += chunk.text;
      if (chunk.finish !== null) {
        break;
      }
    }
    t.say("text", text);
    t.attempt("after the end", () => running.next());
  },

  async "generation.generation.cancel"(t) {
    const context = filled("endless");
    const running = context.stream({ chunkIntervalMs: 0 });
    const { value } = await running.next();
    t.say("began", value.text.slice(0, 1));
    running.cancel();
    running.cancel();
    for await (const _ of running) {
      continue;
    }
    const draft = running.result;
    t.say("finish", draft.finishReason);
    t.say("less than all", draft.tokens.length < 1500);
    t.say("the context has them", String(context.tokens.slice(7)) === String(draft.tokens));
  },

  async "generation.stop"(t) {
    const context = filled("one two three");
    const generate = (stop: ReturnType<typeof ignoreEos>) => context.fork().generate({ stop });
    sayDraft(t, "length", await generate(maxTokens(4)));
    sayDraft(t, "string", await generate(stopStrings("e t", "xyz")));
    sayDraft(t, "token", await generate(stopTokens(119)));
    sayDraft(t, "first of several", await generate(maxTokens(6).or(stopStrings("wo", "three"))));
    sayDraft(t, "ends with any", await generate(endsWithAny("ne", 116)));
    sayDraft(t, "beyond eos", await generate(ignoreEos().or(maxTokens(16))));
    await t.wait("no tokens at all", () => generate(stopTokens(4294967295).or(maxTokens(1))));
  },

  "generation.sampling-limits"(t) {
    const context = contextOf("Hi");
    const attempt = (label: string, changes: Partial<typeof GREEDY>): void => {
      const stop = { ...NO_STOP, maxTokens: 1 };
      const made = t.attempt(label, () => wit.generation.generate(context, { ...GREEDY, ...changes }, stop, PLAIN));
      if (made !== undefined) {
        t.say("generates", made.next().text);
        made[Symbol.dispose]();
      }
    };
    const all = { temperature: 0.5, topK: 40, topP: 0.9, minP: 0.05, repetitionPenalty: 1.1 };
    const rest = { presencePenalty: 0.1, frequencyPenalty: 0.1, seed: MOST };
    attempt("largest seed", { ...all, ...rest, logitBias: [[65, 1.5], [0, -100]] });
    attempt("negative temperature", { temperature: -1 });
    attempt("temperature is no number", { temperature: NaN });
    attempt("endless temperature", { temperature: Infinity });
    attempt("top-p of zero", { temperature: 1, topP: 0 });
    attempt("top-p above one", { temperature: 1, topP: 1.5 });
    attempt("min-p above one", { temperature: 1, minP: 2 });
    attempt("repetition penalty of zero", { temperature: 1, repetitionPenalty: 0 });
    attempt("bias of an unknown token", { logitBias: [[258, 1]] });
    attempt("bias is no number", { logitBias: [[65, NaN]] });
    attempt("largest top-k", { topK: 4294967295, seed: 0 });
  },

  "generation.option-limits"(t) {
    const context = contextOf("Hi");
    const attempt = (label: string, stop: Partial<typeof NO_STOP>, options: Partial<Options>): void => {
      const conditions = { ...NO_STOP, maxTokens: 1, ...stop };
      const made = t.attempt(label, () => wit.generation.generate(context, GREEDY, conditions, { ...PLAIN, ...options }));
      if (made !== undefined) {
        t.attempt("and then", () => made.next().text);
        made[Symbol.dispose]();
      }
    };
    const guesses = (maxDraft: number, ngram: number, expected: number[]) => ({ speculation: { maxDraft, ngram, expected } });
    attempt("no tokens", { maxTokens: 0 }, {});
    attempt("an unknown stop token", { tokens: [258] }, {});
    attempt("an empty stop string", { strings: [""] }, {});
    attempt("21 log-probabilities", {}, { logProbabilities: 21 });
    attempt("guesses of nothing", {}, guesses(0, 3, []));
    attempt("33 guesses", {}, guesses(33, 3, []));
    attempt("9-grams", {}, guesses(8, 9, []));
    attempt("an unknown expected token", {}, guesses(8, 3, [258]));
    const all = { streaming: true, chunkIntervalNs: MOST, logProbabilities: 20, ...guesses(32, 8, [65]) };
    attempt("all of it", { tokens: [65], strings: ["x"], ignoreEos: true }, all);
  },

  async "generation.log-probabilities"(t) {
    let draft = await filled("Hi").generate({ logprobs: 3 });
    for (const each of draft.logprobs) {
      t.say("chosen", each.chosen.token, f32(each.chosen.logprob));
      t.say("top", each.top.length, each.top[0]!.token, f32(each.top[0]!.logprob));
    }
    draft = await filled("Hi").generate({ logprobs: 0 });
    t.say("none but the chosen", draft.logprobs.map((each) => each.top.length));
    draft = await filled("Hi").generate();
    t.say("not asked for", draft.logprobs.length);
  },

  async "generation.streaming"(t) {
    let text = "";
    let characters = 0;
    const tokens: number[] = [];
    const running = filled("Grüße 😀, 你好").stream({ chunkIntervalMs: 0 });
    for await (const chunk of running) {
      text += chunk.text;
      tokens.push(...chunk.tokens);
      characters += Array.from(chunk.text).length;
    }
    t.say("text", text);
    t.say("tokens", tokens);
    t.say("characters", characters);
    const draft = running.result;
    t.say("the draft has the same", draft.text === text, String(draft.tokens) === String(tokens));
    t.say("finish", draft.finishReason);
  },

  async "generation.failed"(t) {
    const context = filled("<|im_start|>user\nfail<|im_end|>");
    await t.wait("the engine's error", () => context.generate());
    t.attempt("the context is free", () => context.fill("x"));
    await t.wait("an empty context", () => filled("").generate());
  },

  async "generation.context-overflow"(t) {
    const context = filled("x".repeat(2040));
    const draft = await context.generate();
    t.say("up to the context length", draft.tokens.length, draft.finishReason);
    await t.wait("no room", () => context.generate());
    t.say("room", context.room);
  },

  async "generation.sampler-values"(t) {
    const context = filled("Hi");
    const changes = { seed: Number.MAX_SAFE_INTEGER, repetitionPenalty: 1.2, presencePenalty: -0.5, logitBias: { 65: -2 } };
    for (const sampler of [
      Sampler.greedy(),
      Sampler.temperature(0.7),
      Sampler.topP(0.8, 0.95),
      Sampler.topK(40, 0.5),
      Sampler.minP(0.1, 1.5),
      Sampler.topP(1, 0.5).with(changes),
    ]) {
      t.say("text", (await context.fork().generate({ sampler })).text);
    }
  },

  "log.print"() {
    print("one");
    console.log(" two é 😀");
    console.log();
    print("three\nfour");
  },

  "log.log"() {
    for (const level of ["trace", "debug", "info", "warn", "error"] as const) {
      wit.log.log(level, `a line of level "${level}" \\ é`);
    }
    wit.log.log("info", "");
  },
});
