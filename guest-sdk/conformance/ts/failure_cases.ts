/** Runs that end without a result: the host says how. */

import { ignoreEos, print, wit } from "tartlet-sdk";

import { filled } from "./context_cases";
import { cases } from "./registry";

const HOUR_NS = 3_600_000_000_000;
const leaked: unknown[] = [];

cases({
  "failures.error"() {
    throw new Error("the reason is seven é");
  },

  "failures.uncaught-refusal"() {
    filled("abc").truncate(7);
  },

  "failures.recursion"(t) {
    const down = (n: number): number => down(n + 1) + 1;
    t.say("never", down(0));
  },

  "failures.memory"() {
    const held: Uint8Array[] = [];
    for (;;) {
      held.push(new Uint8Array(1 << 20));
    }
  },

  "failures.cpu"() {
    for (;;) {
      continue;
    }
  },

  "failures.wall-time"() {
    wit.events.poll([wit.events.timer(HOUR_NS)], null);
  },

  async "failures.tokens"() {
    await filled("endless").generate({ stop: ignoreEos() });
  },

  async "failures.kv-pages"() {
    const contexts = Array.from({ length: 3 }, () => filled("0123456789abcdef".repeat(4)));
    for (const context of contexts) {
      await context.flush();
    }
  },

  "failures.handles"() {
    for (;;) {
      wit.events.timer(HOUR_NS);
    }
  },

  "failures.output"() {
    for (let i = 0; i < 100; i += 1) {
      print("x".repeat(100));
    }
  },

  "failures.host-calls"() {
    for (;;) {
      wit.events.poll([], 0);
    }
  },

  "failures.unknown-event"() {
    wit.events.poll([4294967295], 0);
  },

  "failures.event-twice"() {
    const event = wit.events.timer(0);
    wit.events.dropEvent(event);
    wit.events.dropEvent(event);
  },

  "failures.unknown-mask"() {
    using mask = wit.constraints.Mask.tokens(wit.models.Model.open(null), [7]);
    mask.union([4294967295]);
  },

  "failures.poll-of-nothing"() {
    wit.events.poll([], null);
  },

  "handles.leaked"(t) {
    const model = wit.models.Model.open(null);
    for (let i = 0; i < 300; i += 1) {
      const context = wit.contexts.Context.create(model, null);
      context.fill(`context ${i}`);
      leaked.push(context, context.fork());
      wit.events.timer(HOUR_NS);
    }
    t.say("leaked", leaked.length);
  },

  "handles.given-back"(t) {
    const parent = filled("x");
    for (let i = 0; i < 5000; i += 1) {
      parent.fork().close(); // more than a run may hold
    }
    t.say("forks", 5000);
  },
});
