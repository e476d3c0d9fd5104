"""Forward passes: what the model says of tokens after a context's last one, before any of them is kept."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from tartlet_sdk import checks, event_loop, wit
from tartlet_sdk.draft import TokenLogprob
from tartlet_sdk.errors import InvalidArgument
from tartlet_sdk.host_call import call
from tartlet_sdk.sampler import Sampler

if TYPE_CHECKING:
    from wit_world.imports import forward as wit_forward

    from tartlet_sdk.context import Context

CALL = "Context.forward"
LAST = -1
"""As a row or a parent: the context's last token."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What to ask about the token that comes after a row.

    Args:
        row: The index of a token of the pass, or -1 for the context's last token.
        sample: Sample a token so.
        sample_index: Which number of the sampler's seed to use: a generation's first token has 0, the next 1, ...
        top: So many most likely tokens.
        given: The log-probabilities of these tokens.
        entropy: The entropy of the distribution.
        logits: All logits: 8 rows of a pass at most.
    """

    row: int = LAST
    sample: Sampler | None = None
    sample_index: int = 0
    top: int = 0
    given: Sequence[int] = ()
    entropy: bool = False
    logits: bool = False

    def to_wit(self) -> wit_forward.Request:
        """The contract's record. Raises `InvalidArgument`."""
        if not isinstance(self.sample, Sampler | None):
            raise InvalidArgument(f"sample must be a Sampler, not {type(self.sample).__name__}", call=CALL)
        return wit.forward.Request(
            row=checks.whole(self.row, "row", CALL, LAST, checks.U32 - 1) + 1,
            sampling=None if self.sample is None else self.sample.to_wit(),
            sample_index=checks.whole(self.sample_index, "sample_index", CALL),
            top=checks.whole(self.top, "top", CALL),
            given=checks.tokens(self.given, "given", CALL),
            entropy=bool(self.entropy),
            logits=bool(self.logits),
        )


@dataclass(frozen=True, slots=True)
class Row:
    """The answer to an `Ask`. Log-probabilities and entropy are in nats."""

    sampled: TokenLogprob | None
    top: tuple[TokenLogprob, ...]
    """The most likely tokens, most likely first."""
    given: tuple[float, ...]
    """The log-probability of each token given."""
    entropy: float | None
    logits: tuple[float, ...]

    @classmethod
    def of(cls, row: wit_forward.Row, vocabulary_size: int) -> Row:
        """From the contract's record."""
        packed = struct.pack(f"<{len(row.logits)}Q", *row.logits)
        logits = struct.unpack(f"<{2 * len(row.logits)}f", packed)[:vocabulary_size]
        return cls(
            None if row.sampled is None else TokenLogprob(row.sampled.token, row.sampled.log_probability),
            tuple(TokenLogprob(each.token, each.log_probability) for each in row.top),
            tuple(row.given),
            row.entropy,
            logits,
        )


class Pass:
    """A forward pass that has been computed: what it found. Commit a path of it, or discard it.

    Left as a `with` block, or no longer referred to, it discards itself.
    """

    def __init__(self, handle: wit_forward.Pass, found: wit_forward.Findings, vocabulary_size: int) -> None:
        self._handle: wit_forward.Pass | None = handle
        self.logprobs = tuple(found.log_probabilities)
        """The log-probability of each token after what it follows, if asked for."""
        self.rows = tuple(Row.of(row, vocabulary_size) for row in found.rows)
        """The answers, in the order of what was asked."""

    def commit(self, path: Iterable[int]) -> None:
        """Append the tokens of a path, by their indexes in the pass, to the context; `()` keeps nothing.

        The first follows the context's last token, each other the one before it. Raises `InvalidArgument` for another
        path, and the pass can still be committed.
        """
        if self._handle is None:
            raise InvalidArgument("the pass was committed or discarded before", call="Pass.commit")
        rows = [checks.whole(row, "a row of the path", "Pass.commit", 0, checks.U32 - 1) + 1 for row in path]
        call("Pass.commit", self._handle.commit, rows)
        self._drop()

    def discard(self) -> None:
        """Forget the pass. No effect if it was committed."""
        if self._handle is not None:
            self._handle.discard()
            self._drop()

    def __enter__(self) -> Pass:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    def _drop(self) -> None:
        """Give the handle back."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.__exit__(None, None, None)


async def compute(
    context: Context,
    tokens: Iterable[int],
    *,
    parents: Iterable[int] | None,
    positions: Iterable[int] | None,
    ask: Iterable[Ask],
    logprobs: bool,
    name: str = CALL,
) -> Pass:
    """Let the host compute a pass, and read what it found: `Context.forward`, or for the call `name`."""
    rows = (
        None
        if parents is None
        else [checks.whole(each, "a parent", name, LAST, checks.U32 - 1) + 1 for each in parents]
    )
    asked = list(ask) if isinstance(ask, Iterable) else ask
    if not isinstance(asked, list) or not all(isinstance(each, Ask) for each in asked):
        raise InvalidArgument("ask must be several Ask", hint="Write ask=[Ask(...)].", call=name)
    options = wit.forward.Options(
        parents=rows,
        positions=None if positions is None else checks.tokens(positions, "positions", name),
        log_probabilities=bool(logprobs),
        requests=[each.to_wit() for each in asked],
    )
    ids = checks.tokens(tokens, "tokens", name)
    handle = call(name, wit.forward.forward, context._handle(name.partition(".")[2]), ids, options)
    try:
        await event_loop.wait(handle.ready())
        found = call(name, handle.read)
    except BaseException:
        handle.__exit__(None, None, None)
        raise
    return Pass(handle, found, context._model.info().vocabulary_size)
