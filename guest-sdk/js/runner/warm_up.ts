/** A sample program, which runs while the component is built. It asks nothing of the host, which is not there then. */

import { inferlet, input, Sampler, sleep, stopStrings, TartletError } from "tartlet-sdk";

interface Named {
  name: string;
  count: number;
}

class Counter {
  readonly #counts = new Map<string, number>();

  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  get sorted(): Named[] {
    return Array.from(this.#counts, ([name, count]) => ({ name, count })).sort((a, b) => b.count - a.count);
  }
}

async function* numbers(n: number): AsyncGenerator<number> {
  for (let k = 0; k < n; k += 1) {
    await sleep(0);
    yield k;
  }
}

async function one(n: number): Promise<string> {
  const texts: string[] = [];
  for await (const k of numbers(n)) {
    texts.push(`number ${k}`.trim());
  }
  return texts.join(", ").split(/\s*,\s*/).slice(1).map((each) => each.toUpperCase()).join("\n");
}

export default inferlet({ n: input.integer(4), words: input.list(input.text(), []) }, async ({ n, words }) => {
  const sampler = Sampler.topP(0.7, 0.95, { seed: 1 });
  const stop = stopStrings("\n");
  const drafts = await Promise.all(Array.from({ length: n }, (_, k) => one(k + 1)));
  const first = await Promise.race([sleep(1), one(1)]);
  const counter = new Counter();
  [...drafts, ...words].forEach((each) => counter.add(each));
  const timer = setTimeout(() => {}, 1000);
  clearTimeout(timer);
  let problem = "";
  try {
    await Promise.reject(new TartletError("not-found", "there is none"));
  } catch (error) {
    problem = `${error instanceof TartletError ? error.code : error}`;
  } finally {
    problem += ".";
  }
  return { ...JSON.parse(JSON.stringify({ n, first, problem })), sorted: counter.sorted, settings: sampler.settings, stop };
});
