/** Constraints, masks and matchers. On the tiny model they are what llguidance says; its weights do not matter. */

import { Constraint, getModel, Mask, Matcher, wit } from "tartlet-sdk";

import { filled } from "./context_cases";
import { cases } from "./registry";
import type { Transcript } from "./transcript";

const raw = wit.constraints;
const openModel = () => wit.models.Model.open(null);

/** What a generation under the constraint writes, which leaves no choice. */
async function sayGenerated(t: Transcript, label: string, constraint: Constraint): Promise<void> {
  const draft = await filled("Once").generate({ constraint, maxTokens: 60 });
  t.say(label, draft.text, draft.finishReason);
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

cases({
  async "constraints.constraint.json-schema"(t) {
    await sayGenerated(t, "forced", Constraint.jsonSchema('{"const": {"a": [1, true], "b": null}}'));
    await t.wait("not JSON", () => filled("x").generate({ jsonSchema: "{" }));
    await t.wait("no such type", () => filled("x").generate({ jsonSchema: '{"type": "tart"}' }));
  },

  async "constraints.constraint.regex"(t) {
    await sayGenerated(t, "forced", Constraint.regex("The [q]uick é😀"));
    await t.wait("not closed", () => filled("x").generate({ regex: "(" }));
    await t.wait("empty", () => filled("x").generate({ regex: "", maxTokens: 1 }));
  },

  async "constraints.constraint.lark"(t) {
    await sayGenerated(t, "forced", Constraint.lark('start: "one" " " two\ntwo: "two"'));
    await t.wait("no start", () => filled("x").generate({ lark: 'other: "x"' }));
  },

  async "constraints.constraint.choices"(t) {
    await sayGenerated(t, "forced", Constraint.choices("only this one"));
    await t.wait("none", () => filled("x").generate({ choices: [] }));
    await t.wait("an empty one", () => filled("x").generate({ choices: [""], maxTokens: 1 }));
  },

  async "constraints.constraint.substring"(t) {
    const model = getModel();
    const matcher = await Matcher.begin(Constraint.substring("one two three"));
    await matcher.advance(model.tokenize("two th"));
    t.say("forced", model.detokenize(matcher.forced), matcher.mayEnd);
    await matcher.advance(matcher.forced);
    t.say("complete", matcher.mayEnd, matcher.isComplete);
  },

  async "constraints.constraint.tokens"(t) {
    const draft = await filled("Once").generate({ tokens: [65], maxTokens: 4 });
    t.say("only these", draft.tokens, draft.finishReason);
    await t.wait("none", () => filled("x").generate({ tokens: [], maxTokens: 2 }));
    await t.wait("out of range", () => filled("x").generate({ tokens: [4294967295] }));
  },

  async "constraints.constraint.of-mask"(t) {
    const draft = await filled("Once").generate({ constraint: Constraint.mask(Mask.of([66])), maxTokens: 4 });
    t.say("only these", draft.tokens, draft.finishReason);
    await t.wait("an empty mask", () => filled("x").generate({ constraint: Constraint.mask(Mask.of([])) }));
  },

  async "constraints.constraint.all-of"(t) {
    const both = Constraint.regex("[a-c]+d").and(Constraint.regex("[b-z]+")).and(Constraint.choices("abd", "bbd"));
    await sayGenerated(t, "all three", both);
    const nothing = Constraint.regex("a").and(Constraint.regex("b"));
    await t.wait("nothing", () => filled("x").generate({ constraint: nothing, maxTokens: 4 }));
    let nine = Constraint.regex("a0");
    for (let i = 1; i < 9; i += 1) {
      nine = nine.and(Constraint.regex(`a${i}`));
    }
    await t.wait("nine", () => filled("x").generate({ constraint: nine }));
  },

  async "constraints.constraint.any-of"(t) {
    const matcher = await Matcher.begin(Constraint.choices("one").or(Constraint.choices("two")));
    const model = getModel();
    const { mask } = matcher;
    t.say("allowed", ["o", "t", "x"].map((text) => mask.has(model.tokenize(text)[0]!)));
    await matcher.advance(model.tokenize("t"));
    t.say("forced", model.detokenize(matcher.forced));
  },

  "constraints.constraint.ready"(t) {
    const model = openModel();
    {
      using constraint = raw.Constraint.regex(model, "a+");
      const event = constraint.ready();
      t.say("the same at every call", constraint.ready() === event);
      t.say("ready", wit.events.poll([event], null)[0] === event);
      t.attempt("outcome", () => wit.events.outcome(event));
    }
    using constraint = raw.Constraint.regex(model, "(");
    const event = constraint.ready();
    wit.events.poll([event], null);
    t.attempt("an error", () => wit.events.outcome(event));
  },

  "constraints.constraint.id"(t) {
    const model = openModel();
    using constraint = raw.Constraint.choices(model, ["only this"]);
    const other = raw.Constraint.choices(model, ["another"]);
    t.say("their own", constraint.id() !== other.id());
    t.say("the same at every call", constraint.id() === constraint.id());
    t.attempt("not compiled yet", () => raw.Constraint.allOf([constraint.id()]));
    wit.events.poll([constraint.ready()], null);
    {
      using alone = raw.Constraint.allOf([constraint.id()]);
      const event = alone.ready();
      wit.events.poll([event], null);
      t.attempt("of one part", () => wit.events.outcome(event));
    }
    t.attempt("of no part", () => raw.Constraint.anyOf([]));
  },

  "constraints.mask.tokens"(t) {
    t.say("empty", Mask.of([]).size);
    const mask = Mask.of([0, 257, 65, 65]);
    t.say("three", mask.size, mask.has(65), mask.has(66));
    t.attempt("out of range", () => Mask.of([258]));
  },

  "constraints.mask.all"(t) {
    const mask = Mask.all();
    t.say("all", mask.size, mask.has(0), mask.has(257));
  },

  "constraints.mask.intersection"(t) {
    const both = Mask.of(range(0, 100)).and(Mask.of(range(90, 258)));
    t.say("both", both.size, both.has(89), both.has(90), both.has(99), both.has(100));
    const model = openModel();
    const [one, two, three] = [[1, 2, 3], [2, 3], [3, 4]].map((tokens) => raw.Mask.tokens(model, tokens));
    t.say("three", one!.intersection([two!.id(), three!.id()]).count());
    t.say("with nothing", one!.intersection([]).count());
    t.attempt("65 of them", () => one!.intersection(new Array(65).fill(two!.id())));
  },

  "constraints.mask.union"(t) {
    const either = Mask.of([1, 2]).or(Mask.of([2, 3]));
    t.say("either", either.size, either.has(3));
    const model = openModel();
    const [one, two, three] = [1, 2, 3].map((token) => raw.Mask.tokens(model, [token]));
    t.say("three", one!.union([two!.id(), three!.id()]).count());
    t.attempt("65 of them", () => one!.union(new Array(65).fill(two!.id())));
  },

  "constraints.mask.complement"(t) {
    const others = Mask.of([0, 257]).not();
    t.say("others", others.size, others.has(0), others.has(1));
    t.say("less", Mask.all().minus(Mask.of([5])).size);
  },

  "constraints.mask.restrict"(t) {
    const mask = Mask.of([1, 2, 3]).restrict([2, 3, 4]);
    t.say("those", mask.size, mask.has(1), mask.has(2), mask.has(4));
    t.attempt("out of range", () => mask.restrict([258]));
  },

  "constraints.mask.count"(t) {
    t.say("counts", Mask.of([]).size, Mask.of([7]).size, Mask.all().size);
  },

  "constraints.mask.allows"(t) {
    using mask = raw.Mask.tokens(openModel(), [7]);
    t.say("seven, eight", mask.allows(7), mask.allows(8));
    t.attempt("out of range", () => mask.allows(258));
  },

  "constraints.mask.id"(t) {
    const model = openModel();
    using one = raw.Mask.tokens(model, [7]);
    {
      using two = raw.Mask.tokens(model, [7]);
      t.say("their own", one.id() !== two.id());
    }
    t.say("the same at every call", one.id() === one.id());
  },

  "constraints.masks-by-bytes"(t) {
    const isDigit = (byte: number): boolean => byte >= 48 && byte < 58;
    const digits = Mask.where((bytes) => bytes.length > 0 && bytes.every(isDigit));
    const odd = Mask.where((bytes) => bytes.length !== 1 || bytes[0]! % 2 === 1);
    const sizes = [digits, odd, digits.and(odd), digits.or(odd), odd.minus(digits), odd.not()].map((mask) => mask.size);
    t.say("counts", ...sizes);
  },

  async "constraints.masks-in-use"(t) {
    let draft = await filled("Once").generate({ mask: Mask.of([67]), maxTokens: 3 });
    t.say("one token", draft.tokens);
    await t.wait("an empty mask", () => filled("x").generate({ mask: Mask.of([]), maxTokens: 1 }));
    const constraint = Constraint.tokens([68, 69]);
    draft = await filled("Once").generate({ mask: Mask.of([67, 68]), constraint, maxTokens: 3 });
    t.say("with a constraint", draft.tokens);
    const nothing = { mask: Mask.of([67]), constraint: Constraint.choices("D"), maxTokens: 3 };
    await t.wait("which leave nothing", () => filled("x").generate(nothing));
  },

  async "constraints.matcher.begin"(t) {
    const matcher = await Matcher.begin(Constraint.regex("The (quick|slow) fox"));
    t.say("forced", getModel().detokenize(matcher.forced));
    t.say("place", matcher.mayEnd, matcher.isComplete, matcher.problem);
    await t.wait("a constraint with an error", () => Matcher.begin(Constraint.regex("(")));
  },

  "constraints.matcher.ready"(t) {
    using constraint = raw.Constraint.regex(openModel(), "ab");
    t.attempt("not compiled yet", () => raw.Matcher.begin(constraint));
    wit.events.poll([constraint.ready()], null);
    using matcher = raw.Matcher.begin(constraint);
    const event = matcher.ready();
    t.say("the same at every call", matcher.ready() === event);
    t.attempt("too early", () => matcher.place().mayEnd);
    t.say("ready", wit.events.poll([event], null)[0] === event);
    t.attempt("then", () => matcher.place().mayEnd);
  },

  async "constraints.matcher.place"(t) {
    const model = getModel();
    const matcher = await Matcher.begin(Constraint.regex("ab?"));
    const say = (label: string): void => t.say(label, matcher.forced, matcher.mayEnd, matcher.isComplete, matcher.problem);
    say("beginning");
    await matcher.advance(model.tokenize("a"));
    say("may end");
    await matcher.advance(model.tokenize("b"));
    say("complete");
    await matcher.advance(model.tokenize("c"));
    t.say("a problem", matcher.problem !== null, matcher.mayEnd);
  },

  async "constraints.matcher.mask"(t) {
    const model = getModel();
    const matcher = await Matcher.begin(Constraint.choices("x", "y"));
    t.say("two", matcher.mask.has(model.tokenize("x")[0]!), matcher.mask.has(model.tokenize("z")[0]!));
    await matcher.advance(model.tokenize("x"));
    t.say("the end", model.eosTokens.map((token) => matcher.mask.has(token)));
  },

  async "constraints.matcher.advance"(t) {
    const model = getModel();
    const matcher = await Matcher.begin(Constraint.regex("[ab]*"));
    await t.wait("none", () => matcher.advance([]));
    const many = Array.from({ length: 20 }, () => model.tokenize("ab")).flat();
    await t.wait("many", () => matcher.advance(many));
    t.say("place", matcher.mayEnd, matcher.problem);
    await t.wait("what is not allowed", () => matcher.advance(model.tokenize("z")));
    t.say("a problem", matcher.problem !== null);
    await t.wait("out of range", () => matcher.advance([4294967295]));
  },

  async "constraints.matcher.rollback"(t) {
    const model = getModel();
    const matcher = await Matcher.begin(Constraint.regex("abc"));
    await matcher.advance([...model.tokenize("a"), ...model.tokenize("z")]);
    t.say("a problem", matcher.problem !== null);
    await t.wait("one back", () => matcher.rollback(1));
    t.say("no problem", matcher.problem, model.detokenize(matcher.forced));
    await t.wait("too many", () => matcher.rollback(2));
    await t.wait("far too many", () => matcher.rollback(4294967295));
    await t.wait("none", () => matcher.rollback(0));
    t.say("where it was", model.detokenize(matcher.forced));
  },

  async "constraints.matcher.fork"(t) {
    const model = getModel();
    const matcher = await Matcher.begin(Constraint.choices("ab", "cd"));
    const fork = await matcher.fork();
    await fork.advance(model.tokenize("a"));
    await matcher.advance(model.tokenize("c"));
    t.say("their own ways", model.detokenize(fork.forced), model.detokenize(matcher.forced));
    await fork.rollback(1);
    t.say("back", fork.mask.has(model.tokenize("c")[0]!));
  },

  "constraints.many-masks"(t) {
    const kept = Array.from({ length: 1024 }, (_, i) => Mask.of([i % 258]));
    t.attempt("one more", () => Mask.of([1]));
    kept.forEach((mask) => mask[Symbol.dispose]());
    t.attempt("with room", () => Mask.of([1]).size);
  },
});
