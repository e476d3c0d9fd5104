"""Text on its way through the host: every plane of Unicode, and large inputs."""

from __future__ import annotations

from context_cases import filled
from registry import case
from transcript import Transcript

from tartlet_sdk import Context, Model, variables

TEXTS = ("", "\0", "a\tb\r\n", 'quote " and \\', "é", "\u0301", "你好", "😀👩‍👩‍👧", "\ufeff\uffff\U0010ffff")


@case("text.unicode")
def unicode(t: Transcript) -> None:
    model = Model.default()
    for text in TEXTS:
        tokens = model.tokenize(text)
        t.say("tokens", tokens)
        t.say("and back", model.detokenize(tokens) == text)
        variables.set("x", text)
        t.say("variable", variables.get("x").value == text)


@case("text.split-characters")
async def split_characters(t: Transcript) -> None:
    context = filled("é😀你")
    running = context.generate(chunk_interval=0)
    texts = []
    async for chunk in running:
        texts.append(chunk.text)
    t.say("whole characters only", all("\ufffd" not in text for text in texts), "".join(texts))
    draft = await filled("é😀").generate(max_tokens=3)
    t.say("cut in the middle", draft.text, draft.tokens)
    draft = await filled("😀x").generate(stop=None, max_tokens=4)
    t.say("cut after it", draft.text)


@case("text.names-and-errors")
async def names(t: Transcript) -> None:
    t.attempt("a model", Model.open, "naïve 😀")
    t.attempt("an adapter", Model.default().context, adapter="höflich")
    await t.wait("a saved context", Context.open("😀"))
    t.attempt("with a quote", Model.open, 'a "quoted" \\ name\nof two lines')
    t.attempt("a long name", Model.open, "n" * 300)


@case("text.large")
async def large(t: Transcript) -> None:
    model = Model.default()
    text = "0123456789abcdé" * 20000
    tokens = model.tokenize(text)
    t.say("tokens", len(tokens), tokens[-3:])
    t.say("and back", model.detokenize(tokens) == text)
    t.attempt("as a context", filled, text)
    t.attempt("as a variable", variables.set, "x", text)
    t.say("the same", variables.get("x").value == text)
    t.attempt("too large", model.tokenize, "x" * (8 * 1024 * 1024 + 1))


@case("text.large-lists")
def large_lists(t: Transcript) -> None:
    context = Model.default().context()
    context.fill_tokens([i % 256 for i in range(2000)])
    tokens = context.tokens
    t.say("tokens", len(tokens), tokens[0], tokens[1999], sum(tokens))
    t.attempt("too many", context.fill_tokens, [0] * 100000)
