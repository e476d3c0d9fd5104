/** Models and their tokenizers. */

import { availableModels, Constraint, getModel, Matcher, type ModelInfo, wit } from "tartlet-sdk";

import { cases } from "./registry";
import type { Transcript } from "./transcript";

function sayInfo(t: Transcript, info: ModelInfo): void {
  t.say("name", info.name);
  t.say("architecture", info.architecture);
  t.say("numbers", info.contextLength, info.vocabularySize, info.pageSize);
  t.say("eos tokens", info.eosTokens);
  t.say("features", info.features.toSorted());
  t.say("adapters", info.adapters);
}

cases({
  "models.model.open"(t) {
    t.say("default", getModel().name);
    t.say("by name", getModel("fake").name);
    t.attempt("unknown", () => getModel("no such model"));
    t.attempt("empty name", () => getModel(""));
  },

  "models.model.info"(t) {
    sayInfo(t, getModel().info);
  },

  "models.list-models"(t) {
    const models = availableModels();
    t.say("how many", models.length);
    sayInfo(t, models[0]!);
  },

  "models.model.tokenize"(t) {
    const model = getModel();
    t.say("empty", model.tokenize(""));
    t.say("ascii", model.tokenize("Hi"));
    t.say("special", model.tokenize("a<|im_end|>b"));
    t.say("four bytes", model.tokenize("😀"));
  },

  "models.model.detokenize"(t) {
    const model = getModel();
    t.say("empty", model.detokenize([]));
    t.say("text", model.detokenize([72, 105, 256]));
    t.say("half a character", model.detokenize([0xf0, 0x9f]));
    t.attempt("out of range", () => model.detokenize([1, 258]));
    t.attempt("largest", () => model.detokenize([4294967295]));
  },

  "models.model.token-bytes"(t) {
    const model = getModel();
    t.say("zero", model.tokenBytes(0));
    t.say("not a character", model.tokenBytes(255));
    t.say("special", model.tokenBytes(256));
    t.attempt("out of range", () => model.tokenBytes(258));
  },

  "models.model.vocabulary"(t) {
    const tokens = getModel().vocabulary;
    t.say("how many", tokens.length);
    t.say("some", tokens[0], tokens[65], tokens[255], tokens[257]);
    const model = wit.models.Model.open(null);
    t.say("two of them", model.vocabulary(65, 2));
    t.say("beyond the end", model.vocabulary(257, 4294967295));
    t.attempt("none", () => model.vocabulary(258, 1));
    t.attempt("no tokens", () => model.vocabulary(0, 0));
  },

  async "models.unsupported"(t) {
    const model = getModel();
    t.say("features", model.info.features.toSorted());
    const context = model.context();
    t.attempt("a message", () => context.user("Hi"));
    t.attempt("a turn", () => context.cue());
    context.fill("0123");
    await t.wait("eviction", () => context.evict(0, 1));
    await t.wait("a constraint", () => context.generate({ regex: "a" }));
    await t.wait("a matcher", () => Matcher.begin(Constraint.regex("a")));
    t.say("it can generate", (await context.generate()).text);
  },
});
