"""Generations, and what the program tells people."""

from __future__ import annotations

from context_cases import filled
from registry import case
from transcript import Transcript

from tartlet_sdk import Draft, Sampler, ends_with_any, ignore_eos, max_tokens, stop_strings, stop_tokens, wit

generation = wit.generation
GREEDY = (0.0, 0, 1.0, 0.0, 1.0, 0.0, 0.0)


def say_draft(t: Transcript, label: str, draft: Draft) -> None:
    t.say(label, draft.text, draft.finish_reason, draft.stop_string)
    t.say("tokens", draft.tokens)


def start(text: str, streaming: bool = False) -> tuple[wit.contexts.Context, wit.generation.Generation]:
    """A generation of the contract's own, with its context."""
    with wit.models.Model.open(None) as model:
        context = wit.contexts.Context.create(model, None)
    context.fill(text)
    stop = generation.StopConditions(None, [], [], False)
    options = generation.Options(streaming, 0, None, None, None, None)
    return context, generation.generate(context, generation.Sampling(*GREEDY, [], None), stop, options)


@case("generation.generate")
async def generate(t: Transcript) -> None:
    context = filled("Hello é")
    draft = await context.generate()
    say_draft(t, "draft", draft)
    usage = draft.usage
    t.say("usage", usage.prompt_tokens, usage.cached_tokens, usage.generated_tokens, usage.forced_tokens)
    t.say("guesses", usage.draft_tokens, usage.accepted_tokens)
    t.say("pages", usage.pages, usage.shared_pages)
    t.say("times", 0 < usage.first_token_ns <= usage.total_ns)
    t.say("context", context.tokens)
    again = await context.generate(max_tokens=3)
    say_draft(t, "goes on", again)


@case("generation.generation.ready")
def ready(t: Transcript) -> None:
    context, running = start("Hello")
    event = running.ready()
    t.say("the same at every call", running.ready() == event)
    t.say("ready", wit.events.poll([event], None) == [event])
    t.say("text", running.read().text)
    running.__exit__(None, None, None)
    context.__exit__(None, None, None)


@case("generation.generation.read")
def read(t: Transcript) -> None:
    context, running = start("Hello")
    early = running.read()  # what there is by now, which may be nothing
    t.say("not the end", early.finish is None, len(early.log_probabilities))
    wit.events.poll([running.ready()], None)
    chunk = running.read()
    t.say("all", early.text + chunk.text, [*early.tokens, *chunk.tokens])
    t.say("finish", chunk.finish.reason.name.lower(), chunk.finish.stop_string, chunk.finish.usage.generated_tokens)
    t.attempt("after the end", running.read)
    running.__exit__(None, None, None)
    context.__exit__(None, None, None)


@case("generation.generation.next")
def next_chunk(t: Transcript) -> None:
    context, running = start("Hello", streaming=True)
    text, finish = "", None
    while finish is None:
        chunk = running.next()
        text += chunk.text
        finish = chunk.finish
    t.say("text", text)
    t.attempt("after the end", running.next)
    running.__exit__(None, None, None)
    context.__exit__(None, None, None)


@case("generation.generation.cancel")
async def cancel(t: Transcript) -> None:
    context = filled("endless")
    running = context.generate(chunk_interval=0)
    chunk = await anext(running)
    t.say("began", chunk.text[:1])
    running.cancel()
    running.cancel()
    async for _ in running:
        pass
    draft = running.result
    t.say("finish", draft.finish_reason)
    t.say("less than all", len(draft.tokens) < 1500)
    t.say("the context has them", context.tokens[7:] == list(draft.tokens))


@case("generation.stop")
async def stop(t: Transcript) -> None:
    context = filled("one two three")
    say_draft(t, "length", await context.fork().generate(stop=max_tokens(4)))
    say_draft(t, "string", await context.fork().generate(stop=stop_strings("e t", "xyz")))
    say_draft(t, "token", await context.fork().generate(stop=stop_tokens(119)))
    say_draft(t, "first of several", await context.fork().generate(stop=max_tokens(6) | stop_strings("wo", "three")))
    say_draft(t, "ends with any", await context.fork().generate(stop=ends_with_any("ne", 116)))
    say_draft(t, "beyond eos", await context.fork().generate(stop=ignore_eos() | max_tokens(16)))
    await t.wait("no tokens at all", context.fork().generate(stop=stop_tokens(4294967295), max_tokens=1))


@case("generation.sampling-limits")
def sampling_limits(t: Transcript) -> None:
    with wit.models.Model.open(None) as model, wit.contexts.Context.create(model, None) as context:
        context.fill("Hi")
        stop = generation.StopConditions(1, [], [], False)
        options = generation.Options(False, 0, None, None, None, None)

        def attempt(label: str, values: tuple[float, ...], bias: list[tuple[int, float]], seed: int | None) -> None:
            sampling = generation.Sampling(*values, bias, seed)
            running = t.attempt(label, generation.generate, context, sampling, stop, options)
            if running is not None:
                t.say("generates", running.next().text)
                running.__exit__(None, None, None)

        attempt("largest seed", (0.5, 40, 0.9, 0.05, 1.1, 0.1, 0.1), [(65, 1.5), (0, -100.0)], 18446744073709551615)
        attempt("negative temperature", (-1.0, *GREEDY[1:]), [], None)
        attempt("temperature is no number", (float("nan"), *GREEDY[1:]), [], None)
        attempt("endless temperature", (float("inf"), *GREEDY[1:]), [], None)
        attempt("top-p of zero", (1.0, 0, 0.0, *GREEDY[3:]), [], None)
        attempt("top-p above one", (1.0, 0, 1.5, *GREEDY[3:]), [], None)
        attempt("min-p above one", (1.0, 0, 1.0, 2.0, *GREEDY[4:]), [], None)
        attempt("repetition penalty of zero", (1.0, 0, 1.0, 0.0, 0.0, 0.0, 0.0), [], None)
        attempt("bias of an unknown token", GREEDY, [(258, 1.0)], None)
        attempt("bias is no number", GREEDY, [(65, float("nan"))], None)
        attempt("largest top-k", (0.0, 4294967295, *GREEDY[2:]), [], 0)


@case("generation.option-limits")
def option_limits(t: Transcript) -> None:
    with wit.models.Model.open(None) as model, wit.contexts.Context.create(model, None) as context:
        context.fill("Hi")
        sampling = generation.Sampling(*GREEDY, [], None)

        def attempt(label: str, stop: tuple, options: tuple) -> None:
            conditions = generation.StopConditions(*stop)
            running = t.attempt(label, generation.generate, context, sampling, conditions, generation.Options(*options))
            if running is not None:
                t.attempt("and then", lambda: running.next().text)
                running.__exit__(None, None, None)

        plain_stop, plain = (1, [], [], False), (False, 0, None, None, None, None)
        attempt("no tokens", (0, [], [], False), plain)
        attempt("an unknown stop token", (1, [258], [], False), plain)
        attempt("an empty stop string", (1, [], [""], False), plain)
        attempt("21 log-probabilities", plain_stop, (False, 0, 21, None, None, None))
        guesses = generation.Speculation
        attempt("guesses of nothing", plain_stop, (False, 0, None, None, guesses(0, 3, []), None))
        attempt("33 guesses", plain_stop, (False, 0, None, None, guesses(33, 3, []), None))
        attempt("9-grams", plain_stop, (False, 0, None, None, guesses(8, 9, []), None))
        attempt("an unknown expected token", plain_stop, (False, 0, None, None, guesses(8, 3, [258]), None))
        attempt("all of it", (1, [65], ["x"], True), (True, 18446744073709551615, 20, None, guesses(32, 8, [65]), None))


@case("generation.log-probabilities")
async def log_probabilities(t: Transcript) -> None:
    draft = await filled("Hi").generate(logprobs=3)
    for each in draft.logprobs:
        t.say("chosen", each.chosen.token, each.chosen.logprob)
        t.say("top", len(each.top), each.top[0].token, each.top[0].logprob)
    draft = await filled("Hi").generate(logprobs=0)
    t.say("none but the chosen", [len(each.top) for each in draft.logprobs])
    draft = await filled("Hi").generate()
    t.say("not asked for", len(draft.logprobs))


@case("generation.streaming")
async def streaming(t: Transcript) -> None:
    context = filled("Grüße 😀, 你好")
    text, tokens, characters = "", [], 0
    running = context.generate(chunk_interval=0)
    async for chunk in running:
        text += chunk.text
        tokens += chunk.tokens
        characters += len(chunk.text)
    t.say("text", text)
    t.say("tokens", tokens)
    t.say("characters", characters)
    t.say("the draft has the same", running.result.text == text, list(running.result.tokens) == tokens)
    t.say("finish", running.result.finish_reason)


@case("generation.failed")
async def failed(t: Transcript) -> None:
    context = filled("<|im_start|>user\nfail<|im_end|>")
    await t.wait("the engine's error", context.generate())
    t.attempt("the context is free", context.fill, "x")
    await t.wait("an empty context", filled("").generate())


@case("generation.context-overflow")
async def context_overflow(t: Transcript) -> None:
    context = filled("x" * 2040)
    draft = await context.generate()
    t.say("up to the context length", len(draft.tokens), draft.finish_reason)
    await t.wait("no room", context.generate())
    t.say("room", context.room)


@case("generation.sampler-values")
async def sampler_values(t: Transcript) -> None:
    context = filled("Hi")
    for sampler in (
        Sampler.greedy(),
        Sampler.temperature(0.7),
        Sampler.top_p(0.8, 0.95),
        Sampler.top_k(40, 0.5),
        Sampler.min_p(0.1, 1.5),
        Sampler.top_p(1.0, 0.5).with_(
            seed=18446744073709551615, repetition_penalty=1.2, presence_penalty=-0.5, logit_bias={65: -2.0}
        ),
    ):
        t.say("text", (await context.fork().generate(sampler)).text)


@case("log.print")
def print_text(t: Transcript) -> None:
    print("one", end="")
    print(" two é 😀")
    print()
    print("three\nfour", end="")


@case("log.log")
def log(t: Transcript) -> None:
    for level in ("trace", "debug", "info", "warn", "error"):
        wit.log.log(wit.log.Level[level.upper()], f'a line of level "{level}" \\ é')
    wit.log.log(wit.log.Level.INFO, "")
