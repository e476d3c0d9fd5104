/** On models that compute: numbers differ between processors, so these are held to what the program in Python tells. */

import { Constraint, getModel, maxTokens, openContext, Sampler, Speculation } from "tartlet-sdk";

import { filled } from "./context_cases";
import { cases } from "./registry";
import { f32 } from "./transcript";

const PROMPT = "The cat sat on the mat. The cat sat on the";

cases({
  async "model.greedy"(t) {
    const draft = await filled(PROMPT).generate({ maxTokens: 24, logprobs: 2 });
    t.say("tokens", draft.tokens, draft.text);
    for (const each of draft.logprobs.slice(0, 4)) {
      t.say("log-probabilities", f32(each.chosen.logprob), each.top.map((other) => other.token));
    }
  },

  async "model.stepping"(t) {
    const sampler = Sampler.temperature(0.9, { seed: 17 });
    using steps = await filled(PROMPT).steps({ sampler, stop: maxTokens(20), regex: "[ -~]{1,60}" });
    for (let i = 0; i < 5; i += 1) {
      await steps.next();
    }
    const child = steps.fork({ seed: 23 });
    await child.next({ splices: [{ tokens: getModel().tokenize(" and"), backtrack: 1 }] });
    await child.next({ bias: { 10: 3 } });
    await steps.backtrack(2);
    await steps.next({ temperature: 0 });
    t.say("tokens", steps.tokens, child.tokens);
    child.stop();
  },

  async "model.constraints"(t) {
    const context = filled(PROMPT);
    const jsonSchema =
      '{"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 99}}, "required": ["n"]}';
    const both = Constraint.regex("[a-m]{2,5}").and(Constraint.regex("[c-z]+"));
    const constraint = both.or(Constraint.choices("zzz"));
    const sampler = Sampler.temperature(1, { seed: 2 });
    const drafts = await Promise.all([
      context.fork().generate({ jsonSchema, maxTokens: 40 }),
      context.fork().generate({ constraint, maxTokens: 8 }),
      context.fork().generate({ sampler, choices: ["one", "two", "three"] }),
    ]);
    for (const draft of drafts) {
      t.say("draft", draft.text, draft.tokens, draft.finishReason, draft.usage.forcedTokens);
    }
  },

  async "model.speculation"(t) {
    const context = filled(PROMPT);
    const plain = await context.fork().generate({ maxTokens: 16 });
    const speculation = new Speculation({ expected: PROMPT });
    const guessed = await context.fork().generate({ maxTokens: 16, speculation });
    t.say("the same", String(guessed.tokens) === String(plain.tokens));
    t.say("tokens", guessed.tokens);
  },

  async "model.eviction"(t) {
    const context = filled(PROMPT);
    await context.evict(2, 5);
    const draft = await context.generate({ maxTokens: 12 });
    t.say("tokens", draft.tokens, context.length, context.positions);
    await context.save("evicted", { overwrite: true });
    const opened = await openContext("evicted");
    const [again, openedAgain] = await Promise.all([
      context.generate({ maxTokens: 6 }),
      opened.generate({ maxTokens: 6 }),
    ]);
    t.say("goes on", again.tokens);
    t.say("the same", String(again.tokens) === String(openedAgain.tokens));
  },
});
