/** Variables, and forks that race for them. */

import { type Context, sleep, variables, wit } from "tartlet-sdk";

import { filled } from "./context_cases";
import { cases } from "./registry";
import type { Transcript } from "./transcript";

/** 2^64 - 1, which the bindings make of it. */
const MOST = 2 ** 64;
const MB = 1 << 20;

function sayVariable(t: Transcript, label: string, name: string): void {
  const found = variables.get(name);
  t.say(label, ...(found === null ? [null] : [found.value, found.version]));
}

cases({
  "store.get-variable"(t) {
    sayVariable(t, "not there", "x");
    variables.set("x", "");
    sayVariable(t, "empty", "x");
    sayVariable(t, "no name", "");
  },

  "store.set-variable"(t) {
    t.attempt("first", () => variables.set("é", "one"));
    t.attempt("again", () => variables.set("é", "two 😀\n"));
    sayVariable(t, "now", "é");
    t.attempt("no name", () => variables.set("", "x"));
    t.attempt("longest name", () => variables.set("n".repeat(256), "x"));
    t.attempt("too long a name", () => variables.set("é".repeat(129), "x"));
    t.attempt("too large", () => variables.set("x", "x".repeat(MB)));
    sayVariable(t, "not written", "x");
  },

  "store.append-variable"(t) {
    t.attempt("new", () => variables.append("x", "one"));
    t.attempt("more", () => variables.append("x", " two"));
    t.attempt("nothing", () => variables.append("x", ""));
    sayVariable(t, "now", "x");
    t.attempt("too large", () => variables.append("x", "x".repeat(MB)));
  },

  "store.list-variables"(t) {
    t.say("none", variables.versions().size);
    ["b", "a", "c", "a"].forEach((name) => variables.set(name, name));
    variables.versions().forEach((version, name) => t.say("variable", name, version));
  },

  async "store.variable-above"(t) {
    variables.set("x", "one");
    let found = await variables.wait("x");
    t.say("there already", found.value, found.version);
    const writing = sleep(2).then(() => {
      variables.set("x", "two");
      variables.set("x", "three");
    });
    found = await variables.wait("x", 2);
    t.say("above two", found.value, found.version);
    await writing;
    const event = wit.store.variableAbove("x", MOST);
    t.say("above 2^64 - 1", wit.events.poll([event], 1_000_000));
    wit.events.dropEvent(event);
    await t.wait("no name", () => variables.wait(""));
  },

  "store.many"(t) {
    for (let i = 0; i < 1024; i += 1) {
      variables.set(`v${i}`, String(i));
    }
    t.attempt("one more", () => variables.set("more", "x"));
    t.say("how many", variables.versions().size);
    t.say("the last", variables.get("v1023")!.value);
  },

  async "store.race"(t) {
    async function answer(context: Context, name: string): Promise<void> {
      const draft = await context.generate();
      const swap = variables.compareAndSwap("winner", `${name}: ${draft.text.slice(0, 5)}`, 0);
      variables.append("log", `${name} ${swap.written ? "won" : "lost"};`);
    }
    const both = [answer(filled("short"), "short"), answer(filled("endless"), "long")];
    t.say("winner", (await variables.wait("winner")).value);
    await Promise.all(both);
    t.say("log", variables.get("log")!.value);
  },

  async "store.relay"(t) {
    async function player(mark: string, turn: number): Promise<void> {
      for (let version = turn; version < 200; version += 2) {
        await variables.wait("ball", version);
        variables.append("ball", mark);
      }
    }
    variables.set("ball", "");
    await Promise.all([player("x", 0), player("o", 1)]);
    const ball = variables.get("ball")!;
    t.say("ball", ball.version, ball.value === "xo".repeat(100));
  },
});
