"""A step's input as flat tensors: what the model computes, and where its keys and values go.

The chunks of all sequences stand one behind the other in one row of tokens; each has its position. Those of a single
token (decode) come first, sorted by the pages they read, because they are computed together.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tartlet_engine.page_table import PageCopy
from tartlet_engine.step_plan import Chunk

# Decodes of fewer pages than this are computed together; beyond, those within a factor of two, so that short
# sequences are not padded to the length of a long one.
SMALL_PAGE_TABLE = 32


@dataclass(frozen=True, slots=True, eq=False)
class DecodeGroup:
    """Rows of one token each, whose page tables are padded to the same length."""

    first_row: int
    page_tables: torch.Tensor  # int64[B, P], padded with the sequence's first page
    context_lens: torch.Tensor  # int64[B], the row's own token included


@dataclass(frozen=True, slots=True, eq=False)
class TreeMask:
    """What the rows of a segment see of each other, where they are not one line of tokens but branches.

    A row sees all slots below `first_slot` and, of the slots `first_slot + j`, those with `visible[row, j]`: the tokens
    that it follows, and itself, which is the last of them. `first_slot` is not greater than the segment's `start`, and
    the last of the slots is that of the segment's last row. A sliding window leaves the last of the slots that the row
    sees. What no row sees may hold anything, also what is no number.
    """

    first_slot: int
    visible: torch.Tensor  # bool[num_rows, context_len - first_slot]


@dataclass(frozen=True, slots=True, eq=False)
class PrefillSegment:
    """Rows that are consecutive tokens of one sequence, or branches that follow it."""

    first_row: int
    num_rows: int
    start: int  # slot of the first row: that many tokens are in the pages already
    page_table: torch.Tensor  # int64[P]
    tree: TreeMask | None = None  # None: each row sees all slots up to its own

    @property
    def context_len(self) -> int:
        """Tokens that the last row sees, itself included."""
        return self.start + self.num_rows


@dataclass(frozen=True, slots=True)
class AdapterSpan:
    """Consecutive rows of sequences that have the same LoRA adapter."""

    adapter: str
    first_row: int
    num_rows: int

    @property
    def rows(self) -> slice:
        """The rows, to index with."""
        return slice(self.first_row, self.first_row + self.num_rows)


@dataclass(frozen=True, slots=True)
class StepBatch:
    """One step's input. T is the number of tokens, R that of the rows whose logits are wanted."""

    token_ids: torch.Tensor  # int64[T]
    positions: torch.Tensor  # int64[T]
    page_ids: torch.Tensor  # int64[T]: the page that takes the token's key and value
    offsets: torch.Tensor  # int64[T]: the place in that page
    logit_rows: torch.Tensor  # int64[R]
    decode_groups: tuple[DecodeGroup, ...]
    prefill_segments: tuple[PrefillSegment, ...]
    page_copies: tuple[PageCopy, ...] = ()
    adapter_spans: tuple[AdapterSpan, ...] = ()  # of the rows that have an adapter, in order

    @property
    def slots(self) -> torch.Tensor:
        """Each row's place in its sequence, int64[T]: its position, unless tokens before it were evicted."""
        parts = [group.context_lens - 1 for group in self.decode_groups]
        parts += [torch.arange(s.start, s.context_len, device=self.token_ids.device) for s in self.prefill_segments]
        return parts[0] if len(parts) == 1 else torch.cat(parts)


def order_chunks(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks in the order of their rows: decodes by adapter and page table length, prefills by adapter."""
    decodes = [chunk for chunk in chunks if chunk.num_tokens == 1]
    decodes.sort(key=lambda chunk: (chunk.sequence.adapter or "", len(chunk.sequence.page_table.page_ids)))
    prefills = [chunk for chunk in chunks if chunk.num_tokens > 1]
    prefills.sort(key=lambda chunk: chunk.sequence.adapter or "")
    return decodes + prefills


def build_batch(
    chunks: Sequence[Chunk], page_copies: Sequence[PageCopy], page_size: int, device: torch.device
) -> StepBatch:
    """Lay out chunks that `order_chunks` has ordered. Logits are wanted where `Chunk.logit_slots` says so."""
    token_ids: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    page_ids: list[int] = []
    logit_rows: list[int] = []
    segments: list[PrefillSegment] = []
    decodes: list[Chunk] = []
    for chunk in chunks:
        table = chunk.sequence.page_table.page_ids
        if chunk.num_tokens == 1:
            decodes.append(chunk)
        else:
            num_pages = -(-chunk.end // page_size)
            page_table = torch.tensor(table[:num_pages], device=device)
            tree = _tree_mask(chunk, device)
            segments.append(PrefillSegment(len(token_ids), chunk.num_tokens, chunk.start, page_table, tree))
        logit_rows.extend(len(token_ids) + slot - chunk.start for slot in chunk.logit_slots)
        token_ids.extend(chunk.token_ids)
        positions.extend(chunk.positions)
        slots.extend(range(chunk.start, chunk.end))
        page_ids.extend(table[slot // page_size] for slot in range(chunk.start, chunk.end))
    return StepBatch(
        token_ids=torch.tensor(token_ids, dtype=torch.int64).to(device),
        positions=torch.tensor(positions, dtype=torch.int64).to(device),
        page_ids=torch.tensor(page_ids, dtype=torch.int64).to(device),
        offsets=(torch.tensor(slots, dtype=torch.int64) % page_size).to(device),
        logit_rows=torch.tensor(logit_rows, dtype=torch.int64).to(device),
        decode_groups=tuple(_decode_groups(decodes, page_size, device)),
        prefill_segments=tuple(segments),
        page_copies=tuple(page_copies),
        adapter_spans=tuple(_adapter_spans(chunks)),
    )


def _tree_mask(chunk: Chunk, device: torch.device) -> TreeMask | None:
    """Return what the rows of a chunk see of each other; None if it ends before a tree or there is none."""
    lookahead = chunk.sequence.lookahead
    if lookahead is None or lookahead.parents is None or chunk.num_own == chunk.num_tokens:
        return None
    return TreeMask(chunk.start, torch.from_numpy(lookahead.visible(chunk.num_own)).to(device))


def _adapter_spans(chunks: Sequence[Chunk]) -> list[AdapterSpan]:
    """Put together the rows of neighbours with the same adapter."""
    spans: list[AdapterSpan] = []
    row = 0
    for adapter, group in itertools.groupby(chunks, lambda chunk: chunk.sequence.adapter):
        num_rows = sum(chunk.num_tokens for chunk in group)
        if adapter is not None:
            spans.append(AdapterSpan(adapter, row, num_rows))
        row += num_rows
    return spans


def _decode_groups(chunks: Sequence[Chunk], page_size: int, device: torch.device) -> list[DecodeGroup]:
    """Group decode rows whose page tables are of similar length, and which are sorted by that: of one adapter."""
    groups: list[DecodeGroup] = []
    first = 0
    num_pages = [-(-chunk.end // page_size) for chunk in chunks]
    while first < len(chunks):
        limit = max(SMALL_PAGE_TABLE, 2 * num_pages[first])
        last = first
        adapter = chunks[first].sequence.adapter
        while last + 1 < len(chunks) and num_pages[last + 1] <= limit and chunks[last + 1].sequence.adapter == adapter:
            last += 1
        longest = max(num_pages[first : last + 1])
        tables = []
        for chunk, used in zip(chunks[first : last + 1], num_pages[first : last + 1], strict=True):
            page_ids = chunk.sequence.page_table.page_ids
            tables.append(page_ids[:used] + [page_ids[0]] * (longest - used))
        context_lens = [chunk.end for chunk in chunks[first : last + 1]]
        groups.append(DecodeGroup(first, torch.tensor(tables).to(device), torch.tensor(context_lens).to(device)))
        first = last + 1
    return groups
