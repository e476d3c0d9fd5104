"""What the programs that carry out requests tell of their choices, piece by piece and at the end."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol, TypeAlias

import msgspec

from tartlet.errors import UnavailableError
from tartlet.events import Output, RunEvent
from tartlet.server.front.errors import ApiError
from tartlet.server.front.live_run import LiveRun
from tartlet.server.front.run_events import Dropped

TokenEntry: TypeAlias = tuple[int, str, float, list[tuple[str, float]]]
"""See `inferlets/tokens.py`."""

_CODES = {"context-overflow": "context_length_exceeded", "not-found": "model_not_found"}
_STATUSES = {"not-found": 404, "program-failed": 422}


class Piece(msgspec.Struct, frozen=True):
    """What a choice has more than before."""

    index: int
    """Of the choice."""
    text: str = ""
    logprobs: list[TokenEntry] | None = None
    call: str | None = None
    """A tool's call begins: the tool's name."""
    arguments: str = ""
    """More of the last call's arguments."""
    finish: str | None = None
    """It has ended: `stop`, `length` or `tool_calls`."""


class Call(msgspec.Struct, frozen=True):
    """A tool's call."""

    name: str
    arguments: str


class Choice(msgspec.Struct, frozen=True):
    """A whole choice."""

    text: str
    calls: list[Call] = []
    logprobs: list[TokenEntry] = []
    finish: str = "stop"


class Usage(msgspec.Struct, frozen=True):
    """What the whole request has used, in tokens. A prompt counts once, whatever the number of its choices."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    drafted_tokens: int = 0
    accepted_tokens: int = 0


class Answer(msgspec.Struct, frozen=True):
    """The whole answer."""

    choices: list[Choice]
    usage: Usage


class Refusal(msgspec.Struct, frozen=True):
    """Why a request could not be carried out."""

    code: str
    message: str
    hint: str = ""
    param: str | None = None
    """What is wrong in the request, if that is known: `schema` or `tools`."""

    def to_error(self, schema_param: str) -> ApiError:
        """The error for the client, in whose request that parameter has the schema of the answer."""
        code = _CODES.get(self.code, self.code.replace("-", "_"))
        param = schema_param if self.param == "schema" else self.param
        return ApiError(_STATUSES.get(self.code, 400), code, self.message, hint=self.hint, param=param)


class _Result(msgspec.Struct, frozen=True):
    choices: list[Choice] = []
    usage: Usage | None = None
    error: Refusal | None = None


class Answering(Protocol):
    """A run that answers a request."""

    @property
    def run(self) -> LiveRun:
        """The run."""
        ...

    def pieces(self) -> AsyncGenerator[Piece, None]:
        """Give what comes, until all choices have ended. If the request asked for a stream."""
        ...

    async def answer(self) -> Answer:
        """Wait for the end. Raises ApiError for what is wrong with the request, and what the run ended with."""
        ...


class EndpointAnswering:
    """A run of one of the programs in `inferlets`. Implements `Answering`.

    Args:
        run: of the program.
        schema_param: the parameter of the request that has the schema of the answer.
    """

    def __init__(self, run: LiveRun, schema_param: str) -> None:
        self.run = run
        self._schema_param = schema_param
        self._decoder = msgspec.json.Decoder(Piece)

    async def pieces(self) -> AsyncGenerator[Piece, None]:
        """Each line that the program prints is one."""
        rest = ""
        async for event in events_of(self.run):
            if isinstance(event, Output):
                *lines, rest = (rest + event.text).split("\n")
                for line in lines:
                    yield self._decoder.decode(line)

    async def answer(self) -> Answer:
        """What the program returns."""
        result = msgspec.json.decode(await self.run.result_json(), type=_Result)
        if result.error is not None:
            raise result.error.to_error(self._schema_param)
        assert result.usage is not None
        return Answer(result.choices, result.usage)


async def events_of(run: LiveRun) -> AsyncGenerator[RunEvent, None]:
    """Give a run's events. Raises UnavailableError if they came faster than they were read, so that some are lost."""
    async for read in run.follow():
        if isinstance(read, Dropped):
            run.cancel()
            raise UnavailableError("the answer was read too slowly: parts of it are lost")
        yield read.event
