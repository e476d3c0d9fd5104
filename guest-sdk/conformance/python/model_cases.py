"""Models and their tokenizers."""

from __future__ import annotations

from registry import case
from transcript import Transcript

from tartlet_sdk import Constraint, Matcher, Model, ModelInfo, wit


@case("models.model.open")
def open_model(t: Transcript) -> None:
    t.say("default", Model.default().name)
    t.say("by name", Model.open("fake").name)
    t.attempt("unknown", Model.open, "no such model")
    t.attempt("empty name", Model.open, "")


def say_info(t: Transcript, info: ModelInfo) -> None:
    t.say("name", info.name)
    t.say("architecture", info.architecture)
    t.say("numbers", info.context_length, info.vocabulary_size, info.page_size)
    t.say("eos tokens", info.eos_tokens)
    t.say("features", sorted(info.features))
    t.say("adapters", info.adapters)


@case("models.model.info")
def info(t: Transcript) -> None:
    say_info(t, Model.default().info)


@case("models.list-models")
def list_models(t: Transcript) -> None:
    models = Model.available()
    t.say("how many", len(models))
    say_info(t, models[0])


@case("models.model.tokenize")
def tokenize(t: Transcript) -> None:
    model = Model.default()
    t.say("empty", model.tokenize(""))
    t.say("ascii", model.tokenize("Hi"))
    t.say("special", model.tokenize("a<|im_end|>b"))
    t.say("four bytes", model.tokenize("😀"))


@case("models.model.detokenize")
def detokenize(t: Transcript) -> None:
    model = Model.default()
    t.say("empty", model.detokenize([]))
    t.say("text", model.detokenize([72, 105, 256]))
    t.say("half a character", model.detokenize([0xF0, 0x9F]))
    t.attempt("out of range", model.detokenize, [1, 258])
    t.attempt("largest", model.detokenize, [4294967295])


@case("models.model.token-bytes")
def token_bytes(t: Transcript) -> None:
    model = Model.default()
    t.say("zero", model.token_bytes(0))
    t.say("not a character", model.token_bytes(255))
    t.say("special", model.token_bytes(256))
    t.attempt("out of range", model.token_bytes, 258)


@case("models.model.vocabulary")
def vocabulary(t: Transcript) -> None:
    tokens = Model.default().vocabulary
    t.say("how many", len(tokens))
    t.say("some", tokens[0], tokens[65], tokens[255], tokens[257])
    with wit.models.Model.open(None) as model:
        t.say("two of them", model.vocabulary(65, 2))
        t.say("beyond the end", model.vocabulary(257, 4294967295))
        t.attempt("none", model.vocabulary, 258, 1)
        t.attempt("no tokens", model.vocabulary, 0, 0)


@case("models.unsupported")
async def unsupported(t: Transcript) -> None:
    model = Model.default()
    t.say("features", sorted(model.info.features))
    context = model.context()
    t.attempt("a message", context.user, "Hi")
    t.attempt("a turn", context.cue)
    context.fill("0123")
    await t.wait("eviction", context.evict(0, 1))
    await t.wait("a constraint", context.generate(regex="a"))
    await t.wait("a matcher", Matcher.begin(Constraint.regex("a")))
    t.say("it can generate", (await context.generate()).text)
