"""The next decode step, launched before the host has read the last one's tokens.

On a device that works beside the host (a GPU), a step would otherwise wait until the host has read the tokens, told of
them and planned anew. Instead, once sampling is launched, the next forward pass is launched behind it, with the sampled
tokens as they are on the device. The step after then plans as always; what it plans and has been computed already is
taken, the rest is computed. So nothing depends on whether steps run ahead, except when they are done.

A row is computed in vain if its generation has ended meanwhile, or if its context was changed. Nothing has been noted
of it but pages reserved for its token, and these are given back. What it wrote lies in a slot that counts as not
computed: whoever gets that slot writes it before reading it, and the device carries out launches in their order.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from tartlet_engine.accounts import RunLimitError
from tartlet_engine.batch import StepBatch, build_batch, order_chunks
from tartlet_engine.generation import Generation
from tartlet_engine.model_runner import ModelRunner
from tartlet_engine.pages import PagePool
from tartlet_engine.sampler import PendingTokens
from tartlet_engine.sequence import Sequence
from tartlet_engine.step_plan import Chunk

_log = logging.getLogger("tartlet_engine")


@runtime_checkable
class AheadRunner(Protocol):
    """A `ModelRunner` whose device works beside the host."""

    @property
    def device(self) -> torch.device:
        """Where batches must be."""
        ...

    def forward(self, batch: StepBatch) -> torch.Tensor:
        """Compute a step: `ModelRunner.forward`."""
        ...

    def forward_ahead(self, batch: StepBatch, token_ids: torch.Tensor) -> torch.Tensor:
        """Compute a step of decodes whose tokens, int64[T], the host does not know yet: `ModelRunner.forward`."""
        ...


@dataclass(frozen=True, slots=True)
class _Row:
    """A token that has been computed ahead, and by what it can be told whether that is still wanted."""

    generation: Generation
    start: int  # its position
    page_id: int  # where its key and value went

    def is_for(self, chunk: Chunk) -> bool:
        """Tell whether the chunk is exactly this token."""
        sequence = chunk.sequence
        page_ids = sequence.page_table.page_ids
        return (
            sequence.generation is self.generation
            and (chunk.start, chunk.num_tokens) == (self.start, 1)
            and page_ids[self.start // sequence.page_table.page_size] == self.page_id
        )


class RunAhead:
    """Launches decode steps ahead, and gives out what they computed. On the engine's thread."""

    def __init__(self, pool: PagePool, runner: ModelRunner, max_batch_tokens: int) -> None:
        """Launch steps of at most `max_batch_tokens` on `runner`, if it can; otherwise nothing is ever ahead."""
        self._pool = pool
        self._max_batch_tokens = max_batch_tokens
        self._runner = runner if isinstance(runner, AheadRunner) else None
        self._rows: dict[Sequence, tuple[int, _Row]] = {}  # with the number of the row in `_logits`
        self._logits = torch.empty(0)

    @property
    def is_possible(self) -> bool:
        """Tell whether anything is ever computed ahead."""
        return self._runner is not None

    @property
    def is_ahead(self) -> bool:
        """Tell whether something has been computed that no step has taken yet."""
        return bool(self._rows)

    def launch(self, generations: Seq[Generation], tokens: PendingTokens, num_active: int) -> None:
        """Launch the next step of all generations, if it is certain what that would be.

        It is not if anybody else demands something, if penalties, a constraint, a draft or a program depend on that, or
        if pages are short.

        Args:
            generations: those that have just been sampled, whose tokens are not read yet.
            tokens: theirs.
            num_active: how many contexts demand something.
        """
        assert not self._rows, "what was launched ahead has not been taken"
        if self._runner is None or len(generations) != num_active:
            return
        numbers = {g.sequence: number for number, g in enumerate(generations) if not g.is_at_last_token}
        chunks = order_chunks([Chunk(sequence, sequence.num_computed, 1) for sequence in numbers])
        if not chunks or not self._can_launch(chunks):
            return
        try:
            for chunk in chunks:
                copy = chunk.sequence.page_table.reserve(chunk.start, chunk.end)
                assert copy is None
            batch = build_batch(chunks, (), self._pool.page_size, self._runner.device)
            token_ids = tokens.token_ids
            order = torch.tensor([numbers[chunk.sequence] for chunk in chunks]).to(token_ids.device, non_blocking=True)
            self._logits = self._runner.forward_ahead(batch, token_ids[order])
        except Exception:
            # The step itself will say so if it fails, to whom it concerns.
            _log.exception("rows=%d could not be computed ahead", len(chunks))
            for chunk in chunks:
                _give_back(chunk.sequence)
            return
        for number, chunk in enumerate(chunks):
            generation, page_ids = chunk.sequence.generation, chunk.sequence.page_table.page_ids
            assert generation is not None
            page_id = page_ids[chunk.start // self._pool.page_size]
            self._rows[chunk.sequence] = number, _Row(generation, chunk.start, page_id)

    def take(self, chunks: Seq[Chunk]) -> tuple[dict[Sequence, int], torch.Tensor]:
        """Return which of a step's chunks have been computed, by row of the logits float32[R, V] that follow.

        What the step does not want is given up, with the pages that it got. Those of the step's own chunks are theirs.
        """
        rows, logits, self._rows, self._logits = self._rows, self._logits, {}, torch.empty(0)
        taken = {}
        for chunk in chunks:
            number, row = rows.pop(chunk.sequence, (0, None))
            if row is not None and row.is_for(chunk):
                taken[chunk.sequence] = number
        for sequence in rows:
            _give_back(sequence)
        return taken, logits

    def _can_launch(self, chunks: Seq[Chunk]) -> bool:
        """Tell whether all of these tokens can be computed as things are, without a page taken from anybody."""
        num_new_pages = 0
        if len(chunks) > self._max_batch_tokens:
            return False
        for chunk in chunks:
            sequence, page_table = chunk.sequence, chunk.sequence.page_table
            generation = sequence.generation
            is_alone = not (sequence.followers or sequence.flushes or sequence.link or sequence.lookahead)
            if generation is None or generation.sampling_row.processor is not None or not is_alone:
                return False
            if generation.matcher is not None or generation.speculation is not None or generation.steps is not None:
                return False
            index = chunk.start // self._pool.page_size
            if chunk.start != len(sequence.token_ids) or index < len(page_table.page_ids) - 1 or page_table.num_swapped:
                return False
            if any(self._pool.is_shared(page) or page in self._pool.index for page in page_table.page_ids[index:]):
                return False  # it would be copied before it is written
            try:
                sequence.account.require_pages(num_new_pages + page_table.num_new_pages(chunk.start, chunk.end))
            except RunLimitError:
                return False
            num_new_pages += page_table.num_new_pages(chunk.start, chunk.end)
        return num_new_pages <= self._pool.num_free


def _give_back(sequence: Sequence) -> None:
    """Give back the page that was reserved for a token which is not to be computed."""
    sequence.page_table.truncate(sequence.num_filled)
