/** Contexts, saved ones too. */

import { type Context, deleteContext, getModel, openContext, savedContexts, wit } from "tartlet-sdk";

import { cases } from "./registry";

/** A context with a text. */
export function filled(text: string): Context {
  const context = getModel().context();
  context.fill(text);
  return context;
}

cases({
  "contexts.context.create"(t) {
    const model = getModel();
    t.say("empty", model.context().tokens);
    t.say("with an adapter", model.context({ adapter: "polite" }).tokens);
    t.attempt("unknown adapter", () => model.context({ adapter: "rude" }));
    t.attempt("no name", () => model.context({ adapter: "" }));
  },

  "contexts.context.fill"(t) {
    const context = getModel().context();
    context.fill("");
    t.say("nothing", context.length);
    context.fill("Aé");
    context.fill("<|im_end|>");
    t.say("filled", context.tokens);
    t.attempt("too long", () => context.fill("x".repeat(2045)));
    t.attempt("as long as can be", () => context.fill("x".repeat(2044)));
    t.say("length", context.length);
  },

  "contexts.context.fill-tokens"(t) {
    const context = getModel().context();
    t.attempt("none", () => context.fillTokens([]));
    t.attempt("some", () => context.fillTokens([0, 257, 65]));
    t.attempt("out of range", () => context.fillTokens([65, 258]));
    t.attempt("largest", () => context.fillTokens([4294967295]));
    t.say("filled", context.tokens);
  },

  "contexts.context.fill-message"(t) {
    const model = getModel();
    const context = model.context();
    context.system("Be <|im_end|> brief.");
    context.user("Hi");
    context.assistant("Hello");
    context.tool("42");
    t.say("special tokens stay text", context.tokens.slice(0, 16));
    t.say("text", model.detokenize(context.tokens));
    t.attempt("system not first", () => context.system("Be long."));
    t.say("nothing was added", context.length);
  },

  "contexts.context.cue"(t) {
    const model = getModel();
    const context = model.context();
    context.user("Hi");
    context.cue();
    t.say("text", model.detokenize(context.tokens));
    context.fill("Well");
    context.user("What?");
    t.say("the turn is closed", model.detokenize(context.tokens));
  },

  async "contexts.context.flush"(t) {
    const context = filled("0123456789abcdef0123");
    await t.wait("flushed", () => context.flush());
    await t.wait("again", () => context.flush());
    const { usage } = await context.generate({ maxTokens: 1 });
    t.say("cached", usage.promptTokens, usage.cachedTokens);
    await t.wait("an empty one", () => getModel().context().flush());
  },

  async "contexts.context.fork"(t) {
    const context = filled("0123456789abcdef0123");
    const child = context.fork();
    child.fill("x");
    context.fill("yz");
    t.say("lengths", context.length, child.length);
    t.say("ends", context.tokens.slice(-2), child.tokens.slice(-2));
    const { usage } = await child.generate({ maxTokens: 1 });
    t.say("cached and shared", usage.cachedTokens, usage.pages, usage.sharedPages);
  },

  "contexts.context.length"(t) {
    const context = getModel().context();
    t.say("empty", context.length);
    context.fillTokens([1, 2, 3]);
    t.say("three", context.length);
  },

  async "contexts.context.positions"(t) {
    const context = filled("0123456789");
    t.say("before", context.positions);
    await context.evict(2, 5);
    t.say("after", context.positions, context.length);
  },

  "contexts.context.tokens"(t) {
    const context = getModel().context();
    t.say("empty", context.tokens);
    context.fillTokens([257, 0, 257]);
    t.say("three", context.tokens);
  },

  "contexts.context.truncate"(t) {
    const context = filled("0123456789");
    t.attempt("to four", () => context.truncate(4));
    t.say("tokens", context.tokens);
    t.attempt("to as many", () => context.truncate(4));
    t.attempt("to more", () => context.truncate(5));
    t.attempt("to far more", () => context.truncate(4294967295));
    t.attempt("to none", () => context.truncate(0));
    t.say("length", context.length);
  },

  async "contexts.context.evict"(t) {
    const context = filled("0123456789");
    await t.wait("the middle", () => context.evict(2, 5));
    t.say("tokens", context.tokens);
    await t.wait("the last one", () => context.evict(6, 7));
    await t.wait("out of order", () => context.evict(3, 1));
    await t.wait("too many", () => context.evict(0, 4294967295));
    await t.wait("none", () => context.evict(1, 1));
    t.say("length", context.length, context.positions);
  },

  async "contexts.context.save"(t) {
    const context = filled("Remember me.");
    await t.wait("saved", () => context.save("a/b:c-d_e.f"));
    await t.wait("taken", () => context.save("a/b:c-d_e.f"));
    await t.wait("overwritten", () => context.save("a/b:c-d_e.f", { overwrite: true }));
    await t.wait("kept for a while", () => context.save("later", { ttlMs: 3_600_000 }));
    await t.wait("no name", () => context.save(""));
    await t.wait("bad name", () => context.save("naïve"));
    await t.wait("bad beginning", () => context.save("-x"));
    await t.wait("long name", () => context.save("n".repeat(129)));
    t.say("names", savedContexts().map((each) => each.name));
  },

  async "contexts.context.open"(t) {
    const model = getModel();
    const context = model.context();
    context.user("Remember me.");
    await context.save("mine");
    context.user("And this.");
    const opened = await openContext("mine");
    t.say("text", model.detokenize(opened.tokens));
    const draft = await opened.generate();
    t.say("goes on", draft.text, draft.usage.cachedTokens);
    await t.wait("unknown", () => openContext("yours"));
    await t.wait("bad name", () => openContext("not a name"));
  },

  async "contexts.opening.ready"(t) {
    await filled("Remember me.").save("mine");
    using opening = wit.contexts.Context.open(wit.models.Model.open(null), "mine");
    const event = opening.ready();
    t.say("the same at every call", opening.ready() === event);
    t.say("ready", wit.events.poll([event], null)[0] === event);
    t.say("still ready", wit.events.poll([event], 0)[0] === event);
  },

  async "contexts.opening.take"(t) {
    await filled("Remember me.").save("mine");
    using opening = wit.contexts.Context.open(wit.models.Model.open(null), "mine");
    t.attempt("too early", () => opening.take());
    wit.events.poll([opening.ready()], null);
    using context = opening.take();
    t.say("length", context.length());
    t.attempt("twice", () => opening.take());
  },

  async "contexts.list-saved"(t) {
    t.say("none", savedContexts().length);
    await filled("Remember me.").save("b");
    const polite = getModel().context({ adapter: "polite" });
    polite.fill("Please.");
    await polite.save("a", { ttlMs: 3_600_000 });
    for (const each of savedContexts()) {
      t.say("saved", each.name, each.model, each.adapter, each.tokens, each.bytes);
      t.say("for ever", each.expiresInMs === null);
    }
    const left = savedContexts()[0]!.expiresInMs ?? 0;
    t.say("about an hour is left", 3_000_000 < left && left <= 3_600_000);
  },

  async "contexts.delete-saved"(t) {
    await filled("Remember me.").save("mine");
    const opened = await openContext("mine");
    t.attempt("deleted", () => deleteContext("mine"));
    t.attempt("again", () => deleteContext("mine"));
    t.attempt("bad name", () => deleteContext(""));
    t.say("opened before", opened.length);
    t.say("left", savedContexts().length);
  },

  async "contexts.busy"(t) {
    const context = filled("endless");
    const generation = context.stream();
    await generation.next();
    t.attempt("fill", () => context.fill("x"));
    t.attempt("truncate", () => context.truncate(1));
    await t.wait("flush", () => context.flush());
    await t.wait("another generation", () => context.generate());
    const child = context.fork();
    t.say("a fork has what is there", child.tokens.slice(0, 8));
    t.attempt("and is free", () => child.fill("x"));
    generation.cancel();
    for await (const _ of generation) {
      continue;
    }
    t.say("finish", generation.result.finishReason);
    t.attempt("free again", () => context.fill("x"));
  },

  async "contexts.kv-exhausted"(t) {
    const contexts: Context[] = [];
    for (const name of ["first", "second", "third"]) {
      const context = filled(name[0]!.repeat(2000));
      contexts.push(context);
      await t.wait(name, () => context.flush());
    }
    contexts[0]!.close();
    await t.wait("with room", () => contexts[2]!.flush());
  },
});
