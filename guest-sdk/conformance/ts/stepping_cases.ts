/** Stepping: the program has the say before each token. The fake engine's reply is the context's text. */

import { Mask, maxTokens, type Outcome, sleep, type Steps, stopStrings, TartletError, wit } from "tartlet-sdk";

import { filled } from "./context_cases";
import { contextOf } from "./forward_cases";
import { GREEDY, NO_STOP } from "./generation_cases";
import { cases } from "./registry";
import { f32, type Transcript } from "./transcript";

/** The answer that only says to go on. */
const PLAIN = { sample: true, allow: null, mask: null, bias: [], boosts: [], temperature: null, splices: [] };

function sayOutcome(t: Transcript, label: string, outcome: Outcome): void {
  t.say(label, outcome.tokens, outcome.text, outcome.sampled, outcome.backtrack, outcome.textBacktrack);
  if (outcome.finishReason !== null) {
    t.say("finish", outcome.finishReason);
  }
}

/** Steps of the contract's own. */
function start(context: ReturnType<typeof contextOf>) {
  return wit.stepping.start(context, GREEDY, NO_STOP, { logProbabilities: null, constraint: null, mask: null });
}

cases({
  async "stepping.start"(t) {
    const context = filled("abc");
    {
      using steps = await context.steps({ stop: maxTokens(2), logprobs: 2 });
      let outcome = await steps.next();
      sayOutcome(t, "first", outcome);
      const logprobs = outcome.logprobs!;
      t.say("log-probabilities", logprobs.chosen.token, f32(logprobs.chosen.logprob), logprobs.top.length);
      t.attempt("busy", () => context.fill("x"));
      outcome = await steps.next();
      sayOutcome(t, "second", outcome);
      t.say("usage", outcome.usage!.promptTokens, outcome.usage!.generatedTokens);
      try {
        await steps.next();
      } catch (error) {
        t.say("after the end", (error as TartletError).code);
      }
    }
    t.say("context", context.tokens);
    using empty = contextOf("");
    t.attempt("an empty context", () => start(empty));
  },

  async "stepping.steps.next"(t) {
    const context = filled("abcdef");
    {
      using steps = await context.steps();
      sayOutcome(t, "plain", await steps.next());
      sayOutcome(t, "allowed", await steps.next({ allow: [120, 121] }));
      sayOutcome(t, "in a mask", await steps.next({ mask: Mask.all() }));
      const bias = { 65: -1.5, 66: 2 };
      sayOutcome(t, "biased", await steps.next({ bias, boost: new Map([[Mask.of([67]), 0.5]]), temperature: 0.5 }));
      t.say("text", steps.text, steps.tokens);
    }
    t.say("context", context.tokens);
    using other = contextOf("x"); // the SDK answers, and waits for the outcome; `next` of the contract does both
    using blocking = start(other);
    blocking.next(PLAIN);
  },

  async "stepping.refused"(t) {
    using steps = await filled("abcdef").steps();
    sayOutcome(t, "first", await steps.next());
    await t.wait("too far back", () => steps.backtrack(8));
    sayOutcome(t, "goes on", await steps.next());
    t.say("text", steps.text);
  },

  async "stepping.splices"(t) {
    const context = filled("abcdef");
    {
      using steps = await context.steps();
      const replace = { tokens: [88], backtrack: 1, whenSampled: [97] };
      const other = { tokens: [89], backtrack: 1, whenSampled: [98] };
      sayOutcome(t, "replaced", await steps.next({ splices: [other, replace] }));
      sayOutcome(t, "kept", await steps.next({ splices: [replace] }));
      sayOutcome(t, "added", await steps.next({ splices: [{ tokens: [49, 50] }] }));
      sayOutcome(t, "and one before it", await steps.next({ splices: [{ tokens: [90], backtrack: 2 }] }));
      t.say("text", steps.text);
      sayOutcome(t, "forced", await steps.force("é😀"));
      sayOutcome(t, "forced tokens", await steps.force([226, 130]));
      sayOutcome(t, "the rest of a character", await steps.force([172]));
      sayOutcome(t, "taken back", await steps.backtrack(4, "!"));
      sayOutcome(t, "into the prompt", await steps.backtrack(steps.tokens.length + 2, "zz"));
      sayOutcome(t, "nothing", await steps.backtrack(0));
      t.say("text", steps.text);
    }
    t.say("context", context.tokens);
  },

  async "stepping.stop-strings"(t) {
    using steps = await filled("one two three").steps({ stop: stopStrings("two") });
    while (steps.finishReason === null) {
      await steps.next();
    }
    t.say("text", steps.text, steps.finishReason, steps.tokens.length);
  },

  "stepping.steps.answer"(t) {
    using context = contextOf("abc");
    using steps = start(context);
    t.attempt("first", () => steps.answer(PLAIN));
    t.attempt("before its outcome", () => steps.answer(PLAIN));
    wit.events.poll([steps.ready()], null);
    t.attempt("outcome", () => steps.outcome().sampled);
    const replaced = { whenSampled: [98], backtrack: 1, tokens: [120] };
    const splices = [replaced, { whenSampled: [], backtrack: 0, tokens: [] }];
    t.attempt("all of it", () => steps.answer({ ...PLAIN, allow: [98, 99], bias: [[98, 1.5]], temperature: 0.25, splices }));
    wit.events.poll([steps.ready()], null);
    const outcome = steps.outcome();
    t.say("outcome", outcome.backtrack, outcome.tokens, outcome.sampled, outcome.text);
    t.say("optional", outcome.logProbabilities === null, outcome.finish === null);
  },

  "stepping.steps.ready"(t) {
    using context = contextOf("abc");
    using steps = start(context);
    const event = steps.ready();
    t.say("the same at every call", steps.ready() === event);
    t.say("nothing yet", wit.events.poll([event], 0));
    steps.answer(PLAIN);
    t.say("ready", wit.events.poll([event], null)[0] === event);
    steps.outcome();
    t.say("read", wit.events.poll([event], 0));
  },

  "stepping.steps.outcome"(t) {
    using context = contextOf("abc");
    using steps = start(context);
    t.attempt("before any answer", () => steps.outcome());
    steps.answer(PLAIN);
    wit.events.poll([steps.ready()], null);
    t.attempt("once", () => steps.outcome().sampled);
    t.attempt("twice", () => steps.outcome());
  },

  async "stepping.steps.fork"(t) {
    using steps = await filled("abcdef").steps();
    await steps.next();
    const child = steps.fork({ seed: Number.MAX_SAFE_INTEGER });
    sayOutcome(t, "the child", await child.force("X"));
    sayOutcome(t, "the parent", await steps.next());
    sayOutcome(t, "the child again", await child.next());
    const grandchild = child.fork();
    sayOutcome(t, "its child", await grandchild.next());
    t.say("texts", steps.text, child.text, grandchild.text);
    child.stop();
    t.say("the child's context", child.context.tokens);
    t.attempt("is free", () => child.context.fill("!"));
    grandchild.stop();
  },

  async "stepping.many-branches"(t) {
    async function go(branch: Steps): Promise<string> {
      while (branch.tokens.length < 6) {
        await branch.next();
      }
      branch.stop();
      return branch.text;
    }
    using steps = await filled("0123456789").steps();
    await steps.next();
    const branches: Steps[] = [];
    for (let i = 0; i < 20; i += 1) {
      const branch = steps.fork({ seed: i });
      await branch.force(String.fromCharCode(65 + i));
      branches.push(branch);
    }
    t.say("texts", await Promise.all(branches.map(go)));
  },

  "stepping.steps.hold"(t) {
    using context = contextOf("abc");
    using steps = start(context);
    steps.hold();
    wit.events.poll([], 1_000_000);
    t.attempt("goes on", () => steps.next(PLAIN).sampled);
    steps.hold();
    steps.stop();
    steps.hold();
    t.say("held after the end", true);
  },

  "stepping.steps.stop"(t) {
    using context = contextOf("abc");
    using steps = start(context);
    steps.next(PLAIN);
    t.attempt("busy", () => context.fill("x"));
    steps.stop();
    steps.stop();
    t.attempt("over", () => steps.answer(PLAIN));
    t.attempt("free", () => context.fill("x"));
    t.say("length", context.length());
  },

  async "stepping.late"(t) {
    {
      using steps = await filled("abcdef").steps();
      await steps.next();
      await sleep(300);
      await t.wait("too late", () => steps.next());
    }
    using steps = await filled("abcdef").steps();
    await steps.next();
    await steps.wait(sleep(300));
    sayOutcome(t, "held", await steps.next());
  },
});
