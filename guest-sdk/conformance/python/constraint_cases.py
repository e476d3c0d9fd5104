"""Constraints, masks and matchers. On the tiny model they are what llguidance says; its weights do not matter."""

from __future__ import annotations

from context_cases import filled
from registry import case
from transcript import Transcript

from tartlet_sdk import Constraint, Mask, Matcher, Model, wit

raw = wit.constraints


async def say_generated(t: Transcript, label: str, constraint: Constraint) -> None:
    """What a generation under the constraint writes, which leaves no choice."""
    draft = await filled("Once").generate(constraint=constraint, max_tokens=60)
    t.say(label, draft.text, draft.finish_reason)


@case("constraints.constraint.json-schema")
async def json_schema(t: Transcript) -> None:
    await say_generated(t, "forced", Constraint.json_schema('{"const": {"a": [1, true], "b": null}}'))
    await t.wait("not JSON", filled("x").generate(json_schema="{"))
    await t.wait("no such type", filled("x").generate(json_schema='{"type": "tart"}'))


@case("constraints.constraint.regex")
async def regex(t: Transcript) -> None:
    await say_generated(t, "forced", Constraint.regex("The [q]uick é😀"))
    await t.wait("not closed", filled("x").generate(regex="("))
    await t.wait("empty", filled("x").generate(regex="", max_tokens=1))


@case("constraints.constraint.lark")
async def lark(t: Transcript) -> None:
    await say_generated(t, "forced", Constraint.lark('start: "one" " " two\ntwo: "two"'))
    await t.wait("no start", filled("x").generate(lark='other: "x"'))


@case("constraints.constraint.choices")
async def choices(t: Transcript) -> None:
    await say_generated(t, "forced", Constraint.choices("only this one"))
    await t.wait("none", filled("x").generate(choices=[]))
    await t.wait("an empty one", filled("x").generate(choices=[""], max_tokens=1))


@case("constraints.constraint.substring")
async def substring(t: Transcript) -> None:
    matcher = await Matcher.begin(Constraint.substring("one two three"))
    await matcher.advance(Model.default().tokenize("two th"))
    t.say("forced", Model.default().detokenize(matcher.forced), matcher.may_end)
    await matcher.advance(matcher.forced)
    t.say("complete", matcher.may_end, matcher.is_complete)


@case("constraints.constraint.tokens")
async def tokens(t: Transcript) -> None:
    draft = await filled("Once").generate(tokens=[65], max_tokens=4)
    t.say("only these", draft.tokens, draft.finish_reason)
    await t.wait("none", filled("x").generate(tokens=[], max_tokens=2))
    await t.wait("out of range", filled("x").generate(tokens=[4294967295]))


@case("constraints.constraint.of-mask")
async def of_mask(t: Transcript) -> None:
    draft = await filled("Once").generate(constraint=Constraint.mask(Mask.of([66])), max_tokens=4)
    t.say("only these", draft.tokens, draft.finish_reason)
    await t.wait("an empty mask", filled("x").generate(constraint=Constraint.mask(Mask.of([]))))


@case("constraints.constraint.all-of")
async def all_of(t: Transcript) -> None:
    both = Constraint.regex("[a-c]+d") & Constraint.regex("[b-z]+") & Constraint.choices("abd", "bbd")
    await say_generated(t, "all three", both)
    nothing = Constraint.regex("a") & Constraint.regex("b")
    await t.wait("nothing", filled("x").generate(constraint=nothing, max_tokens=4))
    nine = Constraint.regex("a0")
    for i in range(1, 9):
        nine = nine & Constraint.regex(f"a{i}")
    await t.wait("nine", filled("x").generate(constraint=nine))


@case("constraints.constraint.any-of")
async def any_of(t: Transcript) -> None:
    either = Constraint.choices("one") | Constraint.choices("two")
    matcher = await Matcher.begin(either)
    model = Model.default()
    t.say("allowed", [model.tokenize(text)[0] in matcher.mask for text in ("o", "t", "x")])
    await matcher.advance(model.tokenize("t"))
    t.say("forced", model.detokenize(matcher.forced))


@case("constraints.constraint.ready")
def ready(t: Transcript) -> None:
    with wit.models.Model.open(None) as model, raw.Constraint.regex(model, "a+") as constraint:
        event = constraint.ready()
        t.say("the same at every call", constraint.ready() == event)
        t.say("ready", wit.events.poll([event], None) == [event])
        t.attempt("outcome", wit.events.outcome, event)
    with wit.models.Model.open(None) as model, raw.Constraint.regex(model, "(") as constraint:
        event = constraint.ready()
        wit.events.poll([event], None)
        t.attempt("an error", wit.events.outcome, event)


@case("constraints.constraint.id")
def constraint_id(t: Transcript) -> None:
    model = wit.models.Model.open(None)
    with raw.Constraint.choices(model, ["only this"]) as constraint:
        other = raw.Constraint.choices(model, ["another"])
        t.say("their own", constraint.id() != other.id())
        t.say("the same at every call", constraint.id() == constraint.id())
        t.attempt("not compiled yet", raw.Constraint.all_of, [constraint.id()])
        wit.events.poll([constraint.ready()], None)
        with raw.Constraint.all_of([constraint.id()]) as alone:
            wit.events.poll([alone.ready()], None)
            t.attempt("of one part", wit.events.outcome, alone.ready())
        t.attempt("of no part", raw.Constraint.any_of, [])


@case("constraints.mask.tokens")
def mask_tokens(t: Transcript) -> None:
    t.say("empty", len(Mask.of([])))
    mask = Mask.of([0, 257, 65, 65])
    t.say("three", len(mask), 65 in mask, 66 in mask)
    t.attempt("out of range", Mask.of, [258])


@case("constraints.mask.words")
def mask_words(t: Transcript) -> None:
    with wit.models.Model.open(None) as model:
        with raw.Mask.words(model, [0x8000000000000001, 0, 0, 0xFFFFFFFFFFFFFFFF, 2]) as mask:
            t.say("count", mask.count())
            t.say("some", [mask.allows(token) for token in (0, 1, 62, 63, 64, 191, 192, 255, 256, 257)])
        t.attempt("too few", raw.Mask.words, model, [1])
        t.attempt("beyond the vocabulary", raw.Mask.words, model, [0, 0, 0, 0, 4])
    bytes_with_a = Mask.where(lambda text: text == b"a")
    t.say("by their bytes", len(bytes_with_a), 97 in bytes_with_a)


@case("constraints.mask.all")
def mask_all(t: Transcript) -> None:
    mask = Mask.all()
    t.say("all", len(mask), 0 in mask, 257 in mask)


@case("constraints.mask.intersection")
def mask_intersection(t: Transcript) -> None:
    low, high = Mask.of(range(100)), Mask.of(range(90, 258))
    both = low & high
    t.say("both", len(both), 89 in both, 90 in both, 99 in both, 100 in both)
    model = wit.models.Model.open(None)
    one, two, three = (raw.Mask.tokens(model, tokens) for tokens in ([1, 2, 3], [2, 3], [3, 4]))
    t.say("three", one.intersection([two.id(), three.id()]).count())
    t.say("with nothing", one.intersection([]).count())
    t.attempt("65 of them", one.intersection, [two.id()] * 65)


@case("constraints.mask.union")
def mask_union(t: Transcript) -> None:
    either = Mask.of([1, 2]) | Mask.of([2, 3])
    t.say("either", len(either), 3 in either)
    model = wit.models.Model.open(None)
    one, two, three = (raw.Mask.tokens(model, tokens) for tokens in ([1], [2], [3]))
    t.say("three", one.union([two.id(), three.id()]).count())
    t.attempt("65 of them", one.union, [two.id()] * 65)


@case("constraints.mask.complement")
def mask_complement(t: Transcript) -> None:
    others = ~Mask.of([0, 257])
    t.say("others", len(others), 0 in others, 1 in others)
    t.say("less", len(Mask.all() - Mask.of([5])))


@case("constraints.mask.restrict")
def mask_restrict(t: Transcript) -> None:
    mask = Mask.of([1, 2, 3]).restrict([2, 3, 4])
    t.say("those", len(mask), 1 in mask, 2 in mask, 4 in mask)
    t.attempt("out of range", mask.restrict, [258])


@case("constraints.mask.count")
def mask_count(t: Transcript) -> None:
    t.say("counts", len(Mask.of([])), len(Mask.of([7])), len(Mask.all()))


@case("constraints.mask.allows")
def mask_allows(t: Transcript) -> None:
    with wit.models.Model.open(None) as model, raw.Mask.tokens(model, [7]) as mask:
        t.say("seven, eight", mask.allows(7), mask.allows(8))
        t.attempt("out of range", mask.allows, 258)


@case("constraints.mask.id")
def mask_id(t: Transcript) -> None:
    with wit.models.Model.open(None) as model, raw.Mask.tokens(model, [7]) as one:
        with raw.Mask.tokens(model, [7]) as two:
            t.say("their own", one.id() != two.id())
        t.say("the same at every call", one.id() == one.id())


@case("constraints.masks-by-bytes")
def masks_by_bytes(t: Transcript) -> None:
    digits = Mask.where(lambda text: text.isdigit())
    odd = Mask.where(lambda text: len(text) != 1 or text[0] % 2 == 1)
    t.say("counts", len(digits), len(odd), len(digits & odd), len(digits | odd), len(odd - digits), len(~odd))


@case("constraints.masks-in-use")
async def masks_in_use(t: Transcript) -> None:
    draft = await filled("Once").generate(mask=Mask.of([67]), max_tokens=3)
    t.say("one token", draft.tokens)
    await t.wait("an empty mask", filled("x").generate(mask=Mask.of([]), max_tokens=1))
    draft = await filled("Once").generate(mask=Mask.of([67, 68]), constraint=Constraint.tokens([68, 69]), max_tokens=3)
    t.say("with a constraint", draft.tokens)
    nothing = filled("x").generate(mask=Mask.of([67]), constraint=Constraint.choices("D"), max_tokens=3)
    await t.wait("which leave nothing", nothing)


@case("constraints.matcher.begin")
async def begin(t: Transcript) -> None:
    matcher = await Matcher.begin(Constraint.regex("The (quick|slow) fox"))
    t.say("forced", Model.default().detokenize(matcher.forced))
    t.say("place", matcher.may_end, matcher.is_complete, matcher.problem)
    await t.wait("a constraint with an error", Matcher.begin(Constraint.regex("(")))


@case("constraints.matcher.ready")
def matcher_ready(t: Transcript) -> None:
    with wit.models.Model.open(None) as model, raw.Constraint.regex(model, "ab") as constraint:
        t.attempt("not compiled yet", raw.Matcher.begin, constraint)
        wit.events.poll([constraint.ready()], None)
        with raw.Matcher.begin(constraint) as matcher:
            event = matcher.ready()
            t.say("the same at every call", matcher.ready() == event)
            t.attempt("too early", lambda: matcher.place().may_end)
            t.say("ready", wit.events.poll([event], None) == [event])
            t.attempt("then", lambda: matcher.place().may_end)


@case("constraints.matcher.place")
async def place(t: Transcript) -> None:
    model = Model.default()
    matcher = await Matcher.begin(Constraint.regex("ab?"))
    t.say("beginning", matcher.forced, matcher.may_end, matcher.is_complete, matcher.problem)
    await matcher.advance(model.tokenize("a"))
    t.say("may end", matcher.forced, matcher.may_end, matcher.is_complete, matcher.problem)
    await matcher.advance(model.tokenize("b"))
    t.say("complete", matcher.forced, matcher.may_end, matcher.is_complete, matcher.problem)
    await matcher.advance(model.tokenize("c"))
    t.say("a problem", matcher.problem is not None, matcher.may_end)


@case("constraints.matcher.mask")
async def matcher_mask(t: Transcript) -> None:
    model = Model.default()
    matcher = await Matcher.begin(Constraint.choices("x", "y"))
    t.say("two", model.tokenize("x")[0] in matcher.mask, model.tokenize("z")[0] in matcher.mask)
    await matcher.advance(model.tokenize("x"))
    t.say("the end", [token in matcher.mask for token in model.eos_tokens])


@case("constraints.matcher.advance")
async def advance(t: Transcript) -> None:
    model = Model.default()
    matcher = await Matcher.begin(Constraint.regex("[ab]*"))
    await t.wait("none", matcher.advance([]))
    await t.wait("many", matcher.advance(model.tokenize("ab") * 20))
    t.say("place", matcher.may_end, matcher.problem)
    await t.wait("what is not allowed", matcher.advance(model.tokenize("z")))
    t.say("a problem", matcher.problem is not None)
    await t.wait("out of range", matcher.advance([4294967295]))


@case("constraints.matcher.rollback")
async def rollback(t: Transcript) -> None:
    model = Model.default()
    matcher = await Matcher.begin(Constraint.regex("abc"))
    await matcher.advance(model.tokenize("a") + model.tokenize("z"))
    t.say("a problem", matcher.problem is not None)
    await t.wait("one back", matcher.rollback(1))
    t.say("no problem", matcher.problem, model.detokenize(matcher.forced))
    await t.wait("too many", matcher.rollback(2))
    await t.wait("far too many", matcher.rollback(4294967295))
    await t.wait("none", matcher.rollback(0))
    t.say("where it was", model.detokenize(matcher.forced))


@case("constraints.matcher.fork")
async def matcher_fork(t: Transcript) -> None:
    model = Model.default()
    matcher = await Matcher.begin(Constraint.choices("ab", "cd"))
    fork = await matcher.fork()
    await fork.advance(model.tokenize("a"))
    await matcher.advance(model.tokenize("c"))
    t.say("their own ways", model.detokenize(fork.forced), model.detokenize(matcher.forced))
    await fork.rollback(1)
    t.say("back", model.tokenize("c")[0] in fork.mask)


@case("constraints.many-masks")
def many_masks(t: Transcript) -> None:
    kept = [Mask.of([i % 258]) for i in range(1024)]
    t.attempt("one more", Mask.of, [1])
    kept.clear()
    t.attempt("with room", lambda: len(Mask.of([1])))
