"""Forward passes that programs ask for: tokens after a context's own, what the model says of them, and what is kept.

A pass is a lookahead of its context. What is wanted of a row is worked out as soon as its logits are there, so that
those of a long pass are never held all at once.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tartlet_engine.accounts import RunAccount
from tartlet_engine.api import (
    CommitForward,
    DiscardForward,
    EngineError,
    ErrorCode,
    Forward,
    Forwarded,
    ModelInfo,
    RowRequest,
    RowResult,
    TokenLogprob,
)
from tartlet_engine.command_error import CommandError
from tartlet_engine.contexts import ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.distribution import Distribution
from tartlet_engine.forward_checks import check_forward
from tartlet_engine.logits import LogitsProcessor, needs_processor
from tartlet_engine.lookahead import LAST_TOKEN, Lookahead, simplified, tree_positions
from tartlet_engine.prefix_cache import PrefixCache
from tartlet_engine.sampler import SamplingRow, sample
from tartlet_engine.sequence import Sequence
from tartlet_engine.side_work import SideWork

if TYPE_CHECKING:
    from torch import Tensor


class ForwardPasses:
    """Carries out `Forward`, `CommitForward` and `DiscardForward`. On the engine's thread."""

    def __init__(
        self,
        info: ModelInfo,
        contexts: ContextTable,
        demands: Demands,
        prefix_cache: PrefixCache | None,
        side_work: SideWork,
        require_computable: Callable[[Sequence, int], None],
        max_batch_tokens: int,
    ) -> None:
        """Carry out passes.

        Args:
            info: the model's facts.
            contexts: all contexts.
            demands: where passes are begun, and events collect.
            prefix_cache: hears of what is kept.
            side_work: charges for what is worked out of logits.
            require_computable: raises CommandError for a context that can never fit with so many tokens more.
            max_batch_tokens: of a step, in which a tree must fit.
        """
        self._info = info
        self._contexts = contexts
        self._demands = demands
        self._prefix_cache = prefix_cache
        self._side_work = side_work
        self._require_computable = require_computable
        self._max_batch_tokens = max_batch_tokens
        self.handlers: dict[type, Callable[[Any, int], None]] = {
            Forward: self._begin,
            CommitForward: self._commit,
            DiscardForward: self._discard,
        }

    def _begin(self, command: Forward, arrived_ns: int) -> None:
        sequence = self._contexts.get(command.context_id)
        self._contexts.require_idle(sequence)
        if not sequence.token_ids:
            message = f"context {command.context_id} is empty"
            raise CommandError(ErrorCode.INVALID_ARGUMENT, message, "Fill it with at least one token first.")
        parents = simplified(command.parents)
        check_forward(command, self._info, sequence.next_position, self._max_batch_tokens)
        self._require_computable(sequence, len(command.token_ids))
        positions = command.positions or tree_positions(sequence.next_position, parents, len(command.token_ids))
        answer = _Answer(command, sequence, self._side_work)
        lookahead = Lookahead(
            token_ids=list(command.token_ids),
            parents=parents,
            positions=list(positions),
            rows=answer.rows,
            take_logits=answer.take,
            then=lambda: self._demands.events.append(answer.event()),
            weight=_weight(command),
            operation_id=command.operation_id,
        )
        self._demands.look_ahead(sequence, lookahead)

    def _commit(self, command: CommitForward, arrived_ns: int) -> None:
        sequence = self._contexts.get(command.context_id)
        lookahead = sequence.lookahead
        if lookahead is None or not lookahead.is_done or sequence.generation is not None:
            message = f"context {command.context_id} has no forward pass that has been answered"
            raise CommandError(ErrorCode.INVALID_ARGUMENT, message)
        for index, row in enumerate(command.path):
            if not lookahead.follows(row, command.path[:index]):
                message = f"path[{index}] is {row}, which does not follow what comes before it"
                raise CommandError(ErrorCode.INVALID_ARGUMENT, message)
        sequence.keep(command.path)
        if self._prefix_cache is not None:
            self._prefix_cache.note_computed(sequence)

    def _discard(self, command: DiscardForward, arrived_ns: int) -> None:
        sequence = self._contexts.sequences.get(command.context_id)
        if sequence is not None and sequence.generation is None and sequence.lookahead is not None:
            self._demands.discard_lookahead(sequence)


def _weight(command: Forward) -> int:
    """Return how many tokens of a prompt take about as long as evaluating what is asked: a sample takes two of them."""
    num_samples = sum(request.sampling is not None for request in command.requests)
    return 2 * num_samples + len(command.requests) // 2


class _Answer:
    """Collects what a pass is answered, row by row."""

    def __init__(self, command: Forward, sequence: Sequence, side_work: SideWork) -> None:
        self._command = command
        self._sequence = sequence
        self._side_work = side_work
        self._logprobs = [0.0] * (len(command.token_ids) if command.logprobs else 0)
        self._results: list[RowResult | None] = [None] * len(command.requests)
        self._requests: defaultdict[int, list[int]] = defaultdict(list)  # by row
        for number, request in enumerate(command.requests):
            self._requests[request.row].append(number)
        self._followers: defaultdict[int, list[int]] = defaultdict(list)  # by row: tokens whose log-probability it has
        if command.logprobs:
            for index in range(len(command.token_ids)):
                self._followers[self._parent(index)].append(index)
        self.rows = frozenset((*self._requests, *self._followers))

    def take(self, rows: list[int], logits: Tensor) -> None:
        """Work out what is wanted of rows, from their logits float32[R, V].

        Raises RunLimitError if the run may sample no more, CommandError if a row holds no numbers.
        """
        began = time.monotonic()
        sampled = self._sample(rows, logits)
        for row, values in zip(rows, logits.float().cpu().numpy(), strict=True):
            distribution = Distribution(values)
            for index in self._followers[row]:
                self._logprobs[index] = distribution.logprob(self._command.token_ids[index])
            for number in self._requests[row]:
                request = self._command.requests[number]
                self._results[number] = RowResult(
                    row,
                    sampled.get(number),
                    distribution.top(request.top) if request.top else (),
                    distribution.logprobs(request.token_ids),
                    distribution.entropy() if request.entropy else None,
                    values.astype("<f4").tobytes() if request.logits else b"",
                )
        self._side_work.charge(self._sequence.account.share, time.monotonic() - began)

    def event(self) -> Forwarded:
        """Return the answer, now that all rows have been taken."""
        rows = tuple(result for result in self._results if result is not None)
        return Forwarded(self._command.operation_id, tuple(self._logprobs), rows)

    def _sample(self, rows: list[int], logits: Tensor) -> dict[int, TokenLogprob]:
        """Sample where that is asked for. Returns tokens by the request's number."""
        places = [(place, number) for place, row in enumerate(rows) for number in self._requests[row]]
        wanted = [(place, number) for place, number in places if self._command.requests[number].sampling is not None]
        if not wanted:
            return {}
        account: RunAccount = self._sequence.account
        sampling_rows = []
        for _, number in wanted:
            account.require_token()
            account.num_generated_tokens += 1
            sampling_rows.append(self._sampling_row(self._command.requests[number]))
        chosen: dict[int, TokenLogprob] = {}
        results = sample(logits[[place for place, _ in wanted]], sampling_rows)
        for (_, number), result in zip(wanted, results, strict=True):
            if isinstance(result, EngineError):
                raise CommandError(result.code, result.message, result.hint)
            assert result.logprobs is not None
            chosen[number] = result.logprobs.chosen
        return chosen

    def _sampling_row(self, request: RowRequest) -> SamplingRow:
        sampling = request.sampling
        assert sampling is not None
        processor = None
        if needs_processor(sampling):
            path: list[int] = []
            row = request.row
            while row != LAST_TOKEN:
                path.append(self._command.token_ids[row])
                row = self._parent(row)
            processor = LogitsProcessor(sampling, [*self._sequence.token_ids, *reversed(path)])
        return SamplingRow(sampling, request.sample_index, processor, num_logprobs=0)

    def _parent(self, row: int) -> int:
        return row - 1 if self._command.parents is None else self._command.parents[row]
