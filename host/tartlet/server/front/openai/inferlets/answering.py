"""What all endpoints do: `n` generations after each of several contexts, told of as they come if that is wanted.

While it goes on, each line that is printed is a JSON object about the choice `index`: `text` that it has now more,
`logprobs` of its tokens, a tool's `call` that begins (its name), more of that call's `arguments`, and last its `finish`
reason. The result has all `choices` whole, and the `usage`; or an `error`, if the request cannot be carried out.

What not every request needs is imported when it is: in the sandbox that takes half a millisecond a module.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from tartlet_sdk import (
    Constraint,
    Context,
    ContextOverflow,
    InvalidArgument,
    KvExhausted,
    Model,
    NotFound,
    ProgramFailed,
    QuotaExceeded,
    Sampler,
    Speculation,
    StopCondition,
    TartletError,
    Unsupported,
    Usage,
)

if TYPE_CHECKING:
    from tokens import TokenLine
    from tool_format import CallParser

REFUSALS = (InvalidArgument, ContextOverflow, KvExhausted, NotFound, ProgramFailed, QuotaExceeded, Unsupported)
"""What is wrong with the request; everything else is a fault."""
U64 = 1 << 64
CHUNK_INTERVAL_S = 0.03
MOST_QUICK_CHOICES = 8
"""Of more choices, pieces come less often: to tell of each costs the sandbox some time."""


class Settings:
    """How it is generated. The front has checked the numbers, and has put in the defaults."""

    def __init__(
        self, given: dict[str, Any], *, tool_names: list[str] | None = None, echoes: list[str] | None = None
    ) -> None:
        self.n: int = given["n"]
        """Choices of each context."""
        self.is_streaming: bool = given["stream"]
        self.max_tokens: int | None = given["max_tokens"]
        self.stop: list[str] = given["stop"]
        self.logprobs: int | None = given["logprobs"]
        self.schema: str | None = given["schema"]
        """JSON text of the schema that each choice follows."""
        self.prediction: str | None = given["prediction"]
        """A text that is expected, at least in parts; it makes no difference but to the time."""
        self.controller: str | None = given["controller"]
        """The program that steers the generations, by the name under which the run knows it."""
        self.config: Any = given["config"]
        self.chunk_interval = CHUNK_INTERVAL_S
        """Seconds between two pieces of a choice, at least."""
        self.has_parallel_calls: bool = given["parallel_calls"]
        """Whether a choice may have several tool calls."""
        self.tool_names = tool_names
        self.echoes = echoes
        """What the choices of each context begin with."""
        self._sampler: dict[str, Any] = given["sampler"]

    def sampler(self, index: int) -> Sampler:
        """How the tokens of a choice are chosen: with a seed, those of each in another way."""
        given = dict(self._sampler)
        seed = given.pop("seed")
        bias = {int(token): amount for token, amount in given.pop("logit_bias").items()}
        return Sampler().with_(**given, logit_bias=bias, seed=None if seed is None else (seed + index) % U64)

    def stop_condition(self, num_generated: int = 0) -> StopCondition:
        """When to stop, if so many tokens have been generated already."""
        left = None if self.max_tokens is None else max(1, self.max_tokens - num_generated)
        return StopCondition(max_tokens=left, strings=tuple(self.stop))


class Choice:
    """One choice: what is generated goes in, text and tool calls come out, the same however it was cut."""

    def __init__(self, model: Model, index: int, settings: Settings) -> None:
        self._index = index
        self._is_streaming = settings.is_streaming
        self._parser = _call_parser(settings.tool_names) if settings.tool_names else None
        self._most_calls = None if settings.has_parallel_calls else 1
        self._tokens = _token_line(model) if settings.logprobs is not None else None
        self._text = ""
        self._calls: list[dict[str, str]] = []
        self._logprobs: list[Any] = []
        self._finish = ""

    def add(self, text: str, positions: Any = ()) -> None:
        """Take in what has been generated: text, and the log-probabilities of its tokens, if they are wanted."""
        entries = self._tokens.add(text, positions) if self._tokens else []
        if self._parser is None:
            self.add_text(text, entries)
            return
        self._take(self._parser.add(text), entries)

    def add_text(self, text: str, logprobs: list[Any]) -> None:
        """Add to the text."""
        self._text += text
        self._logprobs += logprobs
        if logprobs:
            self._tell(text=text, logprobs=logprobs)
        elif text:
            self._tell(text=text)

    def add_call(self, name: str, arguments: str = "") -> None:
        """Begin a tool call."""
        self._calls.append({"name": name, "arguments": arguments})
        self._tell(call=name, arguments=arguments)

    def add_arguments(self, text: str) -> None:
        """Add to the arguments of the last call."""
        if text:
            self._calls[-1]["arguments"] += text
            self._tell(arguments=text)

    def end(self, reason: str) -> None:
        """Take in why the generation ended."""
        if self._parser is not None:
            self._take(self._parser.end(), [])
        finish = "length" if reason == "length" else "tool_calls" if self._calls else "stop"
        self._finish = finish
        self._tell(finish=finish)

    def whole(self) -> dict[str, Any]:
        """All of it."""
        return {"text": self._text, "calls": self._calls, "logprobs": self._logprobs, "finish": self._finish}

    def _take(self, parts: list[Any], logprobs: list[Any]) -> None:
        texts = "".join(part for part in parts if isinstance(part, str))
        self.add_text(texts, logprobs)
        for part in parts:
            if not isinstance(part, str) and len(self._calls) != self._most_calls:
                self.add_call(*part)

    def _tell(self, **what: Any) -> None:
        if self._is_streaming:
            print(json.dumps({"index": self._index, **what}, ensure_ascii=False, separators=(",", ":")))


Generate = Callable[[Context, Choice, Settings, int], Awaitable[Usage]]
"""Lets a choice be generated at the end of a context: with the choice's number."""


async def answer(
    model: Model, contexts: list[Context], settings: Settings, generate: Generate | None = None
) -> dict[str, Any]:
    """Generate `n` choices after each context, all at once. Raises the SDK's errors."""
    settings.chunk_interval *= max(1.0, len(contexts) * settings.n / MOST_QUICK_CHOICES)
    choices: list[Choice] = []
    generations: list[Awaitable[Usage]] = []
    for number, context in enumerate(contexts):
        length = len(context)
        for k in range(settings.n):
            own = context if k == 0 else _fork(context, length)
            choice = Choice(model, len(choices), settings)
            if settings.echoes:
                choice.add_text(settings.echoes[number], [])
            generation: Awaitable[Usage] = (generate or plain)(own, choice, settings, len(choices))
            if settings.n > 1:
                generation = asyncio.ensure_future(generation)
                if k == 0 and settings.controller is None:
                    # It starts before the context is forked, so that its usage tells how much of the prompt was there.
                    await asyncio.sleep(0)
            generations.append(generation)
            choices.append(choice)
    # A single one is awaited as it is: a program that has nothing else to do waits in the host, which is quicker.
    usages = [await generations[0]] if len(generations) == 1 else await asyncio.gather(*generations)
    of_prompts = [usages[k : k + settings.n] for k in range(0, len(usages), settings.n)]
    return {
        "choices": [choice.whole() for choice in choices],
        "usage": {
            "prompt_tokens": sum(usages[0].prompt_tokens for usages in of_prompts),
            "cached_tokens": sum(min(usage.cached_tokens for usage in usages) for usages in of_prompts),
            "completion_tokens": sum(usage.generated_tokens for usage in usages),
            "drafted_tokens": sum(usage.draft_tokens for usage in usages),
            "accepted_tokens": sum(usage.accepted_tokens for usage in usages),
        },
    }


def _fork(context: Context, length: int) -> Context:
    """A context with the prompt alone, whatever has been generated after it meanwhile."""
    fork = context.fork()
    fork.truncate(length)
    return fork


async def plain(context: Context, choice: Choice, settings: Settings, index: int) -> Usage:
    """Generate a choice as the settings say."""
    generation = context.generate(
        settings.sampler(index),
        stop=settings.stop_condition(),
        logprobs=settings.logprobs,
        chunk_interval=settings.chunk_interval,
        constraint=None if settings.schema is None else JsonConstraint(settings.schema, "schema"),
        speculation=None if settings.prediction is None else Speculation(settings.prediction),
        controller=settings.controller,
        config=settings.config,
    )
    if settings.is_streaming and settings.controller is None:  # a controller may take back what it has written
        async for chunk in generation:
            choice.add(chunk.text, chunk.logprobs)
        draft = generation.result
    else:
        draft = await generation
        choice.add(draft.text, draft.logprobs)
    choice.end(draft.finish_reason)
    return draft.usage


class BadSchema(InvalidArgument):
    """A schema of the request cannot be used; `param` is the one that has it, `schema` or `tools`."""

    def __init__(self, error: TartletError, param: str) -> None:
        super().__init__(error.message, hint=error.hint)
        self.param = param


class JsonConstraint(Constraint):
    """JSON of a schema, which stays text: nobody here wants the value. `param` is the parameter that has the schema."""

    param: str

    def __init__(self, schema: str, param: str) -> None:
        super().__init__("json_schema", schema, str)
        object.__setattr__(self, "param", param)  # constraints are frozen

    async def compile(self, *given: Any) -> Any:
        """As any constraint. Raises BadSchema."""
        try:
            return await super().compile(*given)
        except (InvalidArgument, Unsupported) as error:
            raise BadSchema(error, self.param) from None


def refusal(error: TartletError) -> dict[str, Any]:
    """The result of a request that cannot be carried out. Raises the error again if it is no fault of the request."""
    if not isinstance(error, REFUSALS):
        raise error
    param = error.param if isinstance(error, BadSchema) else None
    return {"error": {"code": error.code, "message": error.message, "hint": error.hint, "param": param}}


def _call_parser(names: list[str]) -> CallParser:
    from tool_format import CallParser

    return CallParser(names)


def _token_line(model: Model) -> TokenLine:
    from tokens import TokenLine

    return TokenLine(model)
