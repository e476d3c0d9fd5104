/** Generates token by token, and takes back a word that is not wanted as soon as it is written. */

import { getModel, inferlet, input, Sampler } from "tartlet-sdk";

const fields = { banned: input.text("the"), words: input.integer(24), seed: input.integer(7) };

export default inferlet(fields, async ({ banned, words, seed }) => {
  const model = getModel();
  const context = model.context();
  context.fill("Once upon a time");
  const word = model.tokenize(` ${banned}`)[0]!;

  using steps = await context.steps({ sampler: Sampler.temperature(0.9, { seed }), maxTokens: words });
  let taken = 0;
  while (steps.finishReason === null) {
    const outcome = await steps.next();
    if (outcome.sampled === word && outcome.finishReason === null) {
      await steps.backtrack(1);
      await steps.next({ bias: { [word]: -100 } });
      taken += 1;
    }
  }
  return { text: steps.text, tokens: steps.tokens, taken };
});
