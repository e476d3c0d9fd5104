/** Prints what the model writes as it comes, and stops it after a sentence or a time, whichever is first. */

import { getModel, inferlet, input, print, Sampler } from "tartlet-sdk";

export default inferlet({ topic: input.text("the sea"), seconds: input.number(30) }, async ({ topic, seconds }) => {
  const context = getModel().context();
  context.user(`Tell me something about ${topic}.`);
  const stream = context.stream({
    sampler: Sampler.topP(0.8, 0.95, { seed: 1 }),
    maxTokens: 80,
    chunkIntervalMs: 0,
    signal: AbortSignal.timeout(seconds * 1000),
  });
  let text = "";
  for await (const chunk of stream) {
    print(chunk.text);
    text += chunk.text;
    if (/[.!?]/.test(text)) {
      stream.cancel(); // what is there by now stays
    }
  }
  print("\n");
  return { text, tokens: stream.result.tokens, why: stream.result.finishReason };
});
