/** Waiting: the contract's own calls, and what the SDK makes of them. */

import { getModel, sleep, TartletError, variables, wit } from "tartlet-sdk";

import { filled } from "./context_cases";
import { cases } from "./registry";

const { events } = wit;
const HOUR_NS = 3_600_000_000_000;
/** 2^64 - 1, which the bindings make of it. */
const MOST = 2 ** 64;

function same(a: number[], b: number[]): boolean {
  return String(a) === String(b);
}

cases({
  "events.poll"(t) {
    const [first, second, late] = [events.timer(0), events.timer(0), events.timer(HOUR_NS)];
    events.poll([first], null);
    events.poll([second], null);
    t.say("in the order given", same(events.poll([second, late, first], null), [second, first]));
    t.say("one twice", same(events.poll([first, first], null), [first, first]));
    t.say("still ready", same(events.poll([first], 0), [first]));
    t.say("only a look", events.poll([late], 0));
    t.say("the time passes", events.poll([late], 1_000_000));
    t.say("nothing, for a while", events.poll([], 1_000_000));
    t.say("ready with a timeout of 2^64 - 1", same(events.poll([first], MOST), [first]));
  },

  "events.timer"(t) {
    const [soon, never] = [events.timer(1_000_000), events.timer(MOST)];
    t.say("other ids", soon !== never);
    t.say("the soon one", same(events.poll([never, soon], null), [soon]));
    t.attempt("outcome", () => events.outcome(soon));
  },

  "events.outcome"(t) {
    const ready = events.timer(0);
    events.poll([ready], null);
    t.attempt("ready", () => events.outcome(ready));
    using context = wit.contexts.Context.create(wit.models.Model.open(null), null);
    context.fill("x");
    let saving = context.save("taken", { ttlNs: null, overwrite: false });
    events.poll([saving], null);
    t.attempt("ok", () => events.outcome(saving));
    saving = context.save("taken", { ttlNs: null, overwrite: false });
    events.poll([saving], null);
    t.attempt("failed", () => events.outcome(saving));
  },

  "events.drop-event"(t) {
    for (let i = 0; i < 5000; i += 1) {
      events.dropEvent(events.timer(HOUR_NS)); // more than a run may hold
    }
    t.say("dropped", 5000);
  },

  async "waiting.gather"(t) {
    const contexts = Array.from({ length: 100 }, (_, i) => filled(`number ${i}`));
    const drafts = await Promise.all(contexts.map((context) => context.generate()));
    t.say("texts", drafts.map((draft) => draft.text));
  },

  async "waiting.many-timers"(t) {
    const done: number[] = [];
    const one = async (i: number): Promise<void> => {
      await sleep(i % 3);
      done.push(i);
    };
    await Promise.all(Array.from({ length: 600 }, (_, i) => one(i)));
    t.say("done", done.length, done.reduce((sum, each) => sum + each, 0));
  },

  async "waiting.first-of-two"(t) {
    const [short, long] = [filled("short"), filled("endless")];
    const controller = new AbortController();
    const running = [long.generate({ signal: controller.signal }), short.generate()];
    const [index, draft] = await Promise.race(running.map((each, k) => each.then((ended) => [k, ended] as const)));
    t.say("which", [index]);
    t.say("text", draft.text);
    controller.abort();
    await Promise.allSettled(running);
    t.attempt("the other's context is free", () => long.truncate(3));
  },

  async "waiting.timeout"(t) {
    const context = filled("endless");
    try {
      await context.generate({ signal: AbortSignal.timeout(30) });
    } catch (error) {
      t.say("timed out", error instanceof TartletError && error.code === "deadline-exceeded");
    }
    t.attempt("the context is free", () => context.truncate(7));
    t.say("tokens", context.tokens);
  },

  async "waiting.timeout-of-nothing"(t) {
    const isLate = (error: unknown): boolean => error instanceof TartletError && error.code === "deadline-exceeded";
    try {
      await variables.wait("never", 0, { signal: AbortSignal.timeout(20) });
    } catch (error) {
      t.say("timed out", isLate(error));
    }
    try {
      await variables.wait("never", 0, { signal: AbortSignal.timeout(0) });
    } catch (error) {
      t.say("at once", isLate(error));
    }
  },

  async "waiting.error-of-one"(t) {
    const [good, bad] = [filled("good"), getModel().context()];
    bad.user("fail");
    const [draft] = await Promise.all([good.generate(), t.wait("the bad one", () => bad.generate())]);
    t.say("the good one", draft.text);
  },

  async "waiting.deadlock"(t) {
    await t.wait("nobody is left", () => variables.wait("never"));
    await Promise.all([
      t.wait("the first", () => variables.wait("this")),
      t.wait("the second", () => variables.wait("that")),
    ]);
    t.say("goes on", variables.set("this", "x"));
  },

  async "waiting.cancelled-before-it-began"(t) {
    const generation = filled("endless").generate();
    generation.cancel();
    const draft = await generation;
    t.say("draft", draft.finishReason, draft.tokens.length < 1500);
  },

  async "waiting.dropped"(t) {
    const context = filled("endless");
    for await (const _ of context.stream()) {
      break; // nobody asks for more: it ends
    }
    t.attempt("the context is free", () => context.truncate(7));
    const contexts = Array.from({ length: 200 }, () => context.fork());
    await Promise.all(contexts.map((each) => each.flush()));
    t.say("forks", contexts.length);
  },
});
