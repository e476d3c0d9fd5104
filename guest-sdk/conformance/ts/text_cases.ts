/** Text on its way through the host: every plane of Unicode, and large inputs. */

import { getModel, openContext, variables } from "tartlet-sdk";

import { filled } from "./context_cases";
import { cases } from "./registry";

const TEXTS = ["", "\0", "a\tb\r\n", 'quote " and \\', "é", "\u0301", "你好", "😀👩‍👩‍👧", "\ufeff\uffff\u{10ffff}"];

cases({
  "text.unicode"(t) {
    const model = getModel();
    for (const text of TEXTS) {
      const tokens = model.tokenize(text);
      t.say("tokens", tokens);
      t.say("and back", model.detokenize(tokens) === text);
      variables.set("x", text);
      t.say("variable", variables.get("x")!.value === text);
    }
  },

  async "text.split-characters"(t) {
    const texts: string[] = [];
    for await (const chunk of filled("é😀你").stream({ chunkIntervalMs: 0 })) {
      texts.push(chunk.text);
    }
    t.say("whole characters only", texts.every((text) => !text.includes("\ufffd")), texts.join(""));
    let draft = await filled("é😀").generate({ maxTokens: 3 });
    t.say("cut in the middle", draft.text, draft.tokens);
    draft = await filled("😀x").generate({ maxTokens: 4 });
    t.say("cut after it", draft.text);
  },

  async "text.names-and-errors"(t) {
    t.attempt("a model", () => getModel("naïve 😀"));
    t.attempt("an adapter", () => getModel().context({ adapter: "höflich" }));
    await t.wait("a saved context", () => openContext("😀"));
    t.attempt("with a quote", () => getModel('a "quoted" \\ name\nof two lines'));
    t.attempt("a long name", () => getModel("n".repeat(300)));
  },

  "text.large"(t) {
    const model = getModel();
    const text = "0123456789abcdé".repeat(20000);
    const tokens = model.tokenize(text);
    t.say("tokens", tokens.length, tokens.slice(-3));
    t.say("and back", model.detokenize(tokens) === text);
    t.attempt("as a context", () => filled(text));
    t.attempt("as a variable", () => variables.set("x", text));
    t.say("the same", variables.get("x")!.value === text);
    t.attempt("too large", () => model.tokenize("x".repeat(8 * 1024 * 1024 + 1)));
  },

  "text.large-lists"(t) {
    const context = getModel().context();
    context.fillTokens(Array.from({ length: 2000 }, (_, i) => i % 256));
    const { tokens } = context;
    t.say("tokens", tokens.length, tokens[0], tokens[1999], tokens.reduce((sum, each) => sum + each, 0));
    t.attempt("too many", () => context.fillTokens(new Array(100000).fill(0)));
  },
});
