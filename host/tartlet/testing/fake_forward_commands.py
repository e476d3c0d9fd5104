"""What the fake engine does with commands about forward passes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tartlet.testing.fake_state import FakeState
from tartlet_engine.api import (
    CommitForward,
    DiscardForward,
    EngineError,
    ErrorCode,
    Forward,
    Forwarded,
    RowRequest,
    RowResult,
    TokenLogprob,
)

LIKELY = 0.5
"""The probability of the token that follows a token by number; the others share the rest."""


class FakeForwardCommands:
    """Answer passes at once. Provisional tokens take no pages."""

    def __init__(self, state: FakeState) -> None:
        self._state = state
        self._passes: dict[int, tuple[int, ...]] = {}  # by context: tokens
        self.handlers: dict[type, Callable[[Any], None]] = {
            Forward: self._forward,
            CommitForward: self._commit,
            DiscardForward: self._discard,
        }

    def _forward(self, command: Forward) -> None:
        state = self._state
        context = state.contexts[command.context_id]
        if len(context.token_ids) + len(command.token_ids) > state.info.context_len:
            error = EngineError(ErrorCode.CONTEXT_OVERFLOW, f"the pass needs more than {state.info.context_len} tokens")
            state.answer(command.operation_id, error)
            return
        state.num_generated[context.run_id] += sum(each.sampling is not None for each in command.requests)
        if not state.prefill_within_limits(context, command.operation_id):
            return
        self._passes[command.context_id] = command.token_ids
        tokens = (*command.token_ids, context.token_ids[-1])  # the last one is row -1
        parents = command.parents or range(-1, len(command.token_ids) - 1)
        logprobs: tuple[float, ...] = ()
        if command.logprobs:
            pairs = zip(command.token_ids, parents, strict=True)
            logprobs = tuple(self._logprob(tokens[parent], token_id) for token_id, parent in pairs)
        rows = tuple(self._row(request, tokens[request.row]) for request in command.requests)
        state.events.append(Forwarded(command.operation_id, logprobs, rows))

    def _commit(self, command: CommitForward) -> None:
        token_ids = self._passes.pop(command.context_id)
        self._state.contexts[command.context_id].token_ids.extend(token_ids[row] for row in command.path)

    def _discard(self, command: DiscardForward) -> None:
        self._passes.pop(command.context_id, None)

    def _row(self, request: RowRequest, token_id: int) -> RowResult:
        size = self._state.info.vocabulary_size
        best = (token_id + 1) % size
        order = [best, *(each for each in range(size) if each != best)]
        top = tuple(TokenLogprob(each, self._logprob(token_id, each)) for each in order[: request.top])
        other = (1 - LIKELY) / (size - 1)
        return RowResult(
            row=request.row,
            sampled=None if request.sampling is None else TokenLogprob(best, self._logprob(token_id, best)),
            top=top,
            logprobs=tuple(self._logprob(token_id, each) for each in request.token_ids),
            entropy=-LIKELY * math.log(LIKELY) - (1 - LIKELY) * math.log(other) if request.entropy else None,
            logits=b"\0\0\0\0" * size if request.logits else b"",
        )

    def _logprob(self, before: int, token_id: int) -> float:
        size = self._state.info.vocabulary_size
        is_best = token_id == (before + 1) % size
        return math.log(LIKELY if is_best else (1 - LIKELY) / (size - 1))
