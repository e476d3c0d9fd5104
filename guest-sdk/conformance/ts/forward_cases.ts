/** Forward passes. The fake engine thinks that token n + 1 follows token n, with a probability of a half. */

import { wit } from "tartlet-sdk";

import { filled } from "./context_cases";
import { cases } from "./registry";
import { f32 } from "./transcript";

type Handle = ReturnType<typeof contextOf>;

/** A context of the contract's own. */
export function contextOf(text: string) {
  const context = wit.contexts.Context.create(wit.models.Model.open(null), null);
  context.fill(text);
  return context;
}

/** A pass of the contract's own. */
function start(context: Handle, tokens: number[]) {
  return wit.forward.forward(context, tokens, { parents: null, positions: null, logProbabilities: true, requests: [] });
}

cases({
  async "forward.tree"(t) {
    const context = filled("A");
    const ask = [0, 1, 2, 3, 4].map((row) => ({ row, top: 1 }));
    const found = await context.forward([66, 80, 67, 81, 90], { parents: [-1, -1, 0, 1, 1], ask, logprobs: true });
    t.say("log-probabilities", found.logprobs.map(f32));
    t.say("most likely", found.rows.map((row) => row.top[0]!.token));
    t.attempt("not a path", () => found.commit([0, 3]));
    t.attempt("a path", () => found.commit([1, 3]));
    t.say("context", context.tokens);
    using gaps = await context.forward([90, 91], { positions: [10, 20] });
    t.say("with gaps", gaps.rows.length);
  },

  "forward.pass.ready"(t) {
    using context = contextOf("A");
    using started = start(context, [66]);
    const event = started.ready();
    t.say("the same at every call", started.ready() === event);
    t.say("ready", wit.events.poll([event], null)[0] === event);
  },

  "forward.pass.read"(t) {
    using context = contextOf("A");
    using started = start(context, [66]);
    t.attempt("too early", () => started.read());
    wit.events.poll([started.ready()], null);
    const found = started.read();
    t.say("found", found.logProbabilities.map(f32), found.rows.length);
    t.attempt("twice", () => started.read());
  },

  async "forward.pass.commit"(t) {
    const context = filled("A");
    let found = await context.forward([66, 67, 68]);
    t.attempt("not from the beginning", () => found.commit([1]));
    t.attempt("a row that is not there", () => found.commit([3]));
    t.attempt("two of them", () => found.commit([0, 1]));
    t.say("context", context.tokens);
    found = await context.forward([69]);
    t.attempt("nothing", () => found.commit([]));
    t.say("context", context.tokens);
    using rawContext = contextOf("A");
    using started = start(rawContext, [66]);
    t.attempt("too early", () => started.commit([1]));
    wit.events.poll([started.ready()], null);
    t.attempt("all", () => started.commit([1]));
    t.attempt("twice", () => started.commit([1]));
    t.say("length", rawContext.length());
  },

  async "forward.pass.discard"(t) {
    const context = filled("A");
    const found = await context.forward([66]);
    t.attempt("busy", () => context.fill("x"));
    t.say("a fork has none of it", context.fork().tokens);
    found.discard();
    found.discard();
    t.attempt("free", () => context.fill("x"));
    t.say("context", context.tokens);
  },

  "forward.many"(t) {
    const contexts = Array.from({ length: 65 }, () => contextOf("A"));
    const passes = contexts.slice(0, 64).map((context) => start(context, [66]));
    t.attempt("one more", () => start(contexts[64]!, [66]));
    passes.forEach((each) => each[Symbol.dispose]());
    t.attempt("with room", () => start(contexts[64]!, [66]));
  },

  async "forward.scoring"(t) {
    const context = filled("A");
    t.say("scores", (await context.score(["BCD", "BX", "Q"])).map(f32));
    t.say("one by one", (await context.logprobs("BCX")).map((each) => f32(each.logprob)));
    const ahead = await context.nextDistribution(2);
    t.say("ahead", ahead.top.map((each) => each.token), f32(ahead.entropy!));
    t.say("context", context.tokens);
  },

  async "forward.verify"(t) {
    const context = filled("A");
    t.say("right for a while", await context.verify([66, 67, 90, 91]));
    t.say("context", context.tokens);
    t.say("wrong at once", await context.verify([1]));
    await t.wait("too long", () => context.verify(new Array(64).fill(66)));
  },
});
