"""Programs that tenants have published, as models: an inferlet gets the request as its input, a controller steers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Protocol

import msgspec

from tartlet.events import Output
from tartlet.server.front.errors import ApiError
from tartlet.server.front.live_run import LiveRun
from tartlet.server.front.openai.answers import Answer, Choice, Piece, Usage, events_of
from tartlet.server.front.openai.generation import refuse_unknown
from tartlet.server.front.openai.parameters import Sampling
from tartlet.server.requests import ProgramFacts, ProgramRef

CONTROLLER = "controller"
"""The name by which the run of a request knows the controller."""
CONFIG = "config"
"""The parameter of a request that goes to the controller."""
_TEXT_FIELDS = ("content", "text")
_MEANT = ("tools", "response_format", "text", "logprobs")
"""What clients rely on: an inferlet that has not declared it is not asked for it."""
_NOTHING: tuple[Any, ...] = (None, False, [], {"type": "text"}, {"format": {"type": "text"}})


class Conversation(msgspec.Struct, frozen=True):
    """What a request says, as inferlets get it."""

    messages: list[dict[str, Any]]
    """As in a chat completion."""
    prompt: str
    """The user's last message, or a completion's prompt."""
    n: int = 1
    """Choices that are asked for."""


class Published(msgspec.Struct, frozen=True):
    """A program with a name of its tenant's."""

    name: str
    """`name` or `name@version`."""
    program: ProgramRef
    facts: ProgramFacts
    created: float
    """When it got this name, in seconds since 1970."""

    @property
    def is_controller(self) -> bool:
        """Whether it is a controller alone."""
        return self.facts.is_controller and not self.facts.is_inferlet


class PublishedPrograms(Protocol):
    """What tenants have published."""

    async def all_of(self, tenant: str) -> Sequence[Published]:
        """All of a tenant's names."""
        ...

    async def find(self, tenant: str, name: str) -> Published | None:
        """What a tenant calls by a name, with or without a version."""
        ...


class NothingPublished:
    """Nobody has published anything. Implements `PublishedPrograms`."""

    async def all_of(self, tenant: str) -> Sequence[Published]:
        """Nothing."""
        return ()

    async def find(self, tenant: str, name: str) -> Published | None:
        """Nothing."""
        return None


class InferletAnswering:
    """A run of a published inferlet: what it prints is the answer, or what it returns if it prints nothing.

    Implements `Answering`.
    """

    def __init__(self, run: LiveRun) -> None:
        self.run = run
        self._text = ""

    async def pieces(self) -> AsyncGenerator[Piece, None]:
        """What it prints as it comes; what it returns at the end."""
        async for event in events_of(self.run):
            if isinstance(event, Output):
                self._text += event.text
                yield Piece(0, event.text)
        returned = result_text(await self.run.result_json())
        if not self._text:
            self._text = returned
            yield Piece(0, returned)
        yield Piece(0, finish="stop")

    async def answer(self) -> Answer:
        """All of it; what is known of its use are the sums over its generations."""
        if not self._text:
            async for _ in self.pieces():
                pass
        usage = self.run.usage
        figures = Usage(usage.prompt_tokens, usage.cached_tokens, usage.generated_tokens)
        return Answer([Choice(self._text)], figures)


def inferlet_input(request: Sampling, published: Published, conversation: Conversation) -> dict[str, Any]:
    """The input of an inferlet: the conversation, and those of the request's parameters that it has declared.

    A client may add parameters that only the inferlet knows. An inferlet whose parameters cannot be told, as of a
    component, gets all that the request sets.

    Raises: ApiError if it cannot take the conversation, or something that matters of the request.
    """
    own = request.model_dump(exclude_none=True, by_alias=True, exclude_unset=True)  # with what the client has added
    given = {**own, "messages": conversation.messages, "prompt": conversation.prompt}
    if published.facts.parameters is None:
        return {name: value for name, value in given.items() if name not in ("model", "stream", "prompt", "input")}
    names = {parameter.name for parameter in published.facts.parameters}
    if not names & {"messages", "prompt"}:
        message = f"{published.name} declares neither `messages` nor `prompt`, so it cannot be used as a model"
        hint = f"Declare one of them, or run it with POST /v1/inferlets/{published.name}/runs."
        raise ApiError(400, "not_a_model", message, hint=hint, param="model")
    if "messages" in names:
        names.discard("prompt")
    if conversation.n > 1 and "n" not in names:
        raise ApiError(400, "unsupported", f"{published.name} gives one choice", param="n")
    for name in _MEANT:
        if own.get(name) not in _NOTHING and name not in names:
            message = f"{published.name} does not take {name}: it has not declared it"
            raise ApiError(400, "unsupported", message, param=name)
    refuse_unknown(request, known=names)
    return {name: given[name] for name in sorted(names) if name in given}


def controller_input(given: dict[str, Any], config: Any) -> dict[str, Any]:
    """The input of a program in `inferlets`, whose generations are steered by a controller with this config."""
    settings = given["settings"]
    for name, value in (("logprobs", settings["logprobs"]), ("prediction", settings["prediction"])):
        if value is not None:
            raise ApiError(400, "unsupported", f"a controller does not go with {name}", param=name)
    if given.get("forced"):
        raise ApiError(
            400, "unsupported", "a controller does not go with a tool that must be called", param="tool_choice"
        )
    return {**given, "settings": {**settings, "controller": CONTROLLER, "config": config}}


def result_text(result_json: str) -> str:
    """The text that a result stands for: a text, or an object's `content` or `text`; others are given as JSON."""
    result = json.loads(result_json)
    if isinstance(result, dict):
        result = next((result[name] for name in _TEXT_FIELDS if isinstance(result.get(name), str)), result)
    if result is None:
        return ""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
