/** Generations that a controller steers, which the host knows as `steered`: controller.ts. */

import { type Draft, type GenerateOptions, maxTokens, sleep, TartletError, variables, wit } from "tartlet-sdk";

import { filled } from "./context_cases";
import { contextOf } from "./forward_cases";
import { GREEDY, NO_STOP, PLAIN } from "./generation_cases";
import { cases } from "./registry";
import { f32, type Transcript } from "./transcript";

function steer(text: string, what: string, options: GenerateOptions = {}) {
  return filled(text).generate({ controller: "steered", config: { do: what }, ...options });
}

function sayDraft(t: Transcript, draft: Draft): void {
  for (const each of draft.sequences) {
    t.say("sequence", each.text, each.tokens, each.finishReason);
  }
}

function start(context: ReturnType<typeof contextOf>, what: string, streaming = false) {
  const config = JSON.stringify({ do: what });
  return wit.controllers.control(context, "steered", config, GREEDY, NO_STOP, { ...PLAIN, streaming });
}

cases({
  async "controllers.control"(t) {
    sayDraft(t, await steer("abcdef", "stop"));
    sayDraft(t, await steer("abcdef", "go", { stop: maxTokens(4) }));
    await t.wait("unknown", () => filled("x").generate({ controller: "nobody" }));
    await t.wait("an empty context", () => steer("", "go"));
  },

  async "controllers.allow"(t) {
    sayDraft(t, await steer("abcdef", "allow"));
  },

  async "controllers.force"(t) {
    sayDraft(t, await steer("abcdef", "force"));
  },

  async "controllers.splice"(t) {
    sayDraft(t, await steer("abcdef", "splice"));
  },

  async "controllers.fork"(t) {
    const draft = await steer("abcdef", "fork", { logprobs: 1 });
    sayDraft(t, draft);
    const logprobs = draft.sequences.map((one) => one.logprobs.map((each) => f32(each.chosen.logprob)));
    t.say("log-probabilities", logprobs);
  },

  async "controllers.prompt"(t) {
    const context = filled("abcdef");
    const draft = await context.generate({ controller: "steered", config: { do: "prompt" }, maxTokens: 4 });
    sayDraft(t, draft);
    t.say("context", context.tokens);
  },

  async "controllers.wait"(t) {
    const running = steer("abcdef", "wait");
    await sleep(10);
    variables.set("go", "x");
    sayDraft(t, await running);
  },

  async "controllers.deadlock"(t) {
    sayDraft(t, await steer("abcdef", "wait-for-ever"));
  },

  async "controllers.refused"(t) {
    sayDraft(t, await steer("abcdef", "refused"));
  },

  async "controllers.failed"(t) {
    for (const what of ["fail-at-start", "fail-later"]) {
      try {
        await steer("abcdef", what);
      } catch (error) {
        const { code, message } = error as TartletError;
        t.say(what, code, message.includes("the reason is seven é"));
      }
    }
  },

  async "controllers.cancelled"(t) {
    const context = filled("endless");
    const running = context.stream({ controller: "steered", config: { do: "go" }, chunkIntervalMs: 0 });
    await running.next();
    running.cancel();
    for await (const _ of running) {
      continue;
    }
    t.say("finish", running.result.finishReason);
    t.attempt("the context is free", () => context.truncate(7));
  },

  "controllers.controlled.ready"(t) {
    using context = contextOf("abcdef");
    using running = start(context, "stop");
    const event = running.ready();
    t.say("the same at every call", running.ready() === event);
    t.say("ready", wit.events.poll([event], null)[0] === event);
  },

  "controllers.controlled.read"(t) {
    using context = contextOf("abcdef");
    using running = start(context, "stop");
    wit.events.poll([running.ready()], null);
    const found = running.read();
    t.say("ended", found.ended, found.chunks.length);
    const chunk = found.chunks[0]!;
    t.say("chunk", chunk.sequence, chunk.textBacktrack, chunk.text, chunk.tokenBacktrack, chunk.tokens);
    t.say("finish", chunk.finish!.reason, chunk.finish!.stopString);
    t.attempt("after the end", () => running.read());
  },

  "controllers.controlled.cancel"(t) {
    using context = contextOf("endless");
    using running = start(context, "go", true);
    const event = running.ready();
    wit.events.poll([event], null);
    running.cancel();
    let reason: string | null = null;
    while (reason === null) {
      wit.events.poll([event], null);
      for (const chunk of running.read().chunks) {
        reason = chunk.finish?.reason ?? reason;
      }
    }
    t.say("finish", reason);
    running.cancel();
    t.attempt("the context is free", () => context.truncate(7));
  },
});
