/** Generations that another program, a controller, steers. */

import type { Controlled as Handle, SequenceChunk } from "tartlet:inferlet/controllers@0.1.0";
import type { Finish, Options } from "tartlet:inferlet/generation@0.1.0";

import { Chunk, tokenLogprobs, type TokenLogprobs } from "./draft";
import { CALL, Generating, type Request } from "./generating";
import { call } from "./host_call";
import { withoutLast } from "./text";
import { controllers } from "./wit";

/** What one sequence has generated so far. */
class SequenceText {
  text = "";
  tokens: number[] = [];
  logprobs: TokenLogprobs[] = [];
  finish: Finish | null = null;

  /** Take back what the chunk takes back, and add what it adds. */
  add(chunk: SequenceChunk, logprobs: TokenLogprobs[]): void {
    this.text = withoutLast(this.text, chunk.textBacktrack) + chunk.text;
    this.tokens.length = Math.max(0, this.tokens.length - chunk.tokenBacktrack);
    this.tokens.push(...chunk.tokens);
    this.logprobs.push(...logprobs);
    this.finish = chunk.finish ?? this.finish;
  }
}

/** A generation with a controller. The draft is that of the context's own sequence, and has `sequences` for all of them. */
export class ControlledGenerating extends Generating<Handle> {
  #texts = new Map<number, SequenceText>();

  constructor(
    request: Request,
    private readonly controller: string,
    private readonly config: string,
  ) {
    super(request);
  }

  protected override begin(options: Options): Handle {
    const { context, sampling, stop } = this.request;
    const handle = context.handleFor("generate");
    return call(CALL, () => controllers.control(handle, this.controller, this.config, sampling, stop, options));
  }

  protected override read(handle: Handle): Chunk[] {
    const read = call(CALL, () => handle.read());
    const chunks = read.chunks.map((each) => this.#add(each));
    if (read.ended) {
      const drafts = Array.from(this.#texts)
        .sort(([a], [b]) => a - b)
        .map(([, each]) => this.draft(each.text, each.tokens, each.finish!, each.logprobs));
      const own = this.#texts.get(0)!;
      this.result = this.draft(own.text, own.tokens, own.finish!, own.logprobs, drafts);
    }
    return chunks.filter((chunk) => chunk.text || chunk.tokens.length > 0 || chunk.backtrack > 0);
  }

  #add(record: SequenceChunk): Chunk {
    const logprobs = record.logProbabilities.map(tokenLogprobs);
    const text = this.#texts.get(record.sequence) ?? new SequenceText();
    this.#texts.set(record.sequence, text);
    text.add(record, logprobs);
    return new Chunk(record.text, record.tokens, logprobs, record.sequence, record.textBacktrack);
  }
}
