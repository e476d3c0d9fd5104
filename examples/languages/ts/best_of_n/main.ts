/** Writes N candidates at once, all forked from one prompt, and lets the model choose among them by probability. */

import { type Context, getModel, inferlet, input, type Model, Sampler, stopStrings } from "tartlet-sdk";

const TASK = "Write a catchy, on-brand email subject line for a 20% off Fall skincare sale.";

export default inferlet({ n: input.integer(5), task: input.text(TASK) }, async ({ n, task }) => {
  const model = getModel();

  // One context holds the prompt. Its forks share the pages of the KV cache: the prompt is computed once, not n times.
  const prompt = model.context();
  prompt.user(task);
  await prompt.flush();

  // All candidates are written at once, with slightly different samplers, so that they differ.
  const samplers = [Sampler.topP(0.7, 0.95), Sampler.topK(40)];
  const indexes = Array.from({ length: n }, (_, k) => k);
  const candidates = await Promise.all(indexes.map((k) => write(prompt.fork(), samplers[k % 2]!)));

  // The order of a list sways who reads it. So there are n judges, also at once, and each candidate stands in each place
  // before one of them. They answer with one digit, and therefore compare nine candidates at the most.
  const lists = indexes.map((first) => indexes.slice(0, 9).map((place) => (first + place) % n));
  const verdicts = await Promise.all(lists.map((listed) => judge(model, prompt.fork(), candidates, listed)));

  const votes = indexes.map((k) => verdicts.reduce((sum, verdict) => sum + (verdict.get(k) ?? 0), 0));
  const total = votes.reduce((sum, vote) => sum + vote, 0) || 1;
  const probabilities = votes.map((vote) => vote / total);
  const best = indexes.reduce((a, b) => (probabilities[b]! > probabilities[a]! ? b : a));
  return { best: candidates[best], candidates, probabilities: probabilities.map((each) => Math.round(each * 1000) / 1000) };
});

/** Write one candidate. */
async function write(context: Context, sampler: Sampler): Promise<string> {
  const draft = await context.generate({ sampler, maxTokens: 64, stop: stopStrings("\n") });
  return draft.text.trim();
}

/** Ask which candidate is the best: the probability with which the model says each one's number. */
async function judge(
  model: Model,
  context: Context,
  candidates: string[],
  listed: number[],
): Promise<Map<number, number>> {
  const lines = listed.map((k, place) => `${place + 1}. ${candidates[k]}`).join("\n");
  context.user(`Which of these is the best? Reply with its number only.\n${lines}`);
  context.cue();
  context.fill("The best is number ");
  const answer = await context.generate({ maxTokens: 1, logprobs: 20 });
  const likely = new Map(answer.logprobs[0]!.top.map((each) => [model.detokenize([each.token]), Math.exp(each.logprob)]));
  return new Map(listed.map((k, place) => [k, likely.get(String(place + 1)) ?? 0]));
}
