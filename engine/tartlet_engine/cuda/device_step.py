"""A step's input on the device: one copy takes everything over.

Batches for a GPU are made in the host's memory. What the kernels need of one is packed into a single pinned buffer and
copied at once, without waiting for the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from tartlet_engine.batch import PrefillSegment, StepBatch


@dataclass(frozen=True, slots=True)
class DecodeRows:
    """The first B rows of a step: one token each."""

    tables: torch.Tensor  # int64[B, P]
    context_lens: torch.Tensor  # int64[B], the row's own token included; 0: padding
    longest: int  # no context is longer


@dataclass(frozen=True, slots=True)
class PrefillRows:
    """The rows after them: S segments of consecutive tokens."""

    tables: torch.Tensor  # int64[S, P]
    segments: torch.Tensor  # int64[S, 3]: first row, number of rows, slot of the first row
    most_rows: int  # no segment has more


@dataclass(frozen=True, slots=True)
class TreeRows:
    """The N rows of segments that are trees."""

    tables: torch.Tensor  # int64[S, P]
    rows: torch.Tensor  # int64[N, 4]: row of the step, number of its table, first slot of the tail, context length
    visible: torch.Tensor  # bool[N, longest tail]: what it sees of the tail


@dataclass(frozen=True, slots=True)
class DeviceStep:
    """One step's input. T is the number of tokens, R that of the rows whose logits are wanted."""

    token_ids: torch.Tensor  # int64[T]
    positions: torch.Tensor  # int64[T]
    page_ids: torch.Tensor  # int64[T]; negative: padding, nothing is written
    offsets: torch.Tensor  # int64[T]
    logit_rows: torch.Tensor  # int64[R]
    decode: DecodeRows | None
    prefill: PrefillRows | None
    trees: TreeRows | None = None


def to_device(batch: StepBatch, device: torch.device) -> DeviceStep:
    """Take a batch in the host's memory over to the device. Does not wait for the copy."""
    parts = [batch.token_ids, batch.positions, batch.page_ids, batch.offsets, batch.logit_rows]
    longest, most_rows = 0, 0
    if batch.decode_groups:
        tables, context_lens = decode_tables(batch)
        longest = int(context_lens.max())
        parts += [tables, context_lens]
    segments = [segment for segment in batch.prefill_segments if segment.tree is None]
    trees = [segment for segment in batch.prefill_segments if segment.tree is not None]
    if segments:
        most_rows = max(segment.num_rows for segment in segments)
        parts += [
            _padded([segment.page_table[None] for segment in segments]),
            torch.tensor([[segment.first_row, segment.num_rows, segment.start] for segment in segments]),
        ]
    if trees:
        parts += [_padded([segment.page_table[None] for segment in trees]), *_tree_rows(trees)]
    moved = iter(move_together(parts, device))
    return DeviceStep(
        token_ids=next(moved),
        positions=next(moved),
        page_ids=next(moved),
        offsets=next(moved),
        logit_rows=next(moved),
        decode=DecodeRows(next(moved), next(moved), longest) if batch.decode_groups else None,
        prefill=PrefillRows(next(moved), next(moved), most_rows) if segments else None,
        trees=TreeRows(next(moved), next(moved), next(moved).bool()) if trees else None,
    )


def _tree_rows(segments: Sequence[PrefillSegment]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `TreeRows.rows` and `TreeRows.visible`, both int64, of segments that are trees."""
    rows, visible = [], []
    for number, segment in enumerate(segments):
        assert segment.tree is not None
        place = [number, segment.tree.first_slot, segment.context_len]
        rows += [[segment.first_row + row, *place] for row in range(segment.num_rows)]
        visible.append(segment.tree.visible.long())
    return torch.tensor(rows), _padded(visible)


def decode_tables(batch: StepBatch) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the page tables int64[B, P] and context lengths int64[B] of all decode groups, in the order of rows."""
    groups = batch.decode_groups
    return _padded([group.page_tables for group in groups]), torch.cat([group.context_lens for group in groups])


def move_together(parts: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    """Copy tensors of one dtype to the device in one piece. Does not wait for the copy."""
    sizes = [part.numel() for part in parts]
    # Pinned memory comes from torch's caching allocator, which hands it out again only when the copy has been made.
    staging = torch.empty(sum(sizes), dtype=parts[0].dtype, pin_memory=device.type == "cuda")
    torch.cat([part.reshape(-1) for part in parts], out=staging)
    moved = staging.to(device, non_blocking=True)
    return [piece.view(part.shape) for piece, part in zip(torch.split(moved, sizes), parts, strict=True)]


def _padded(tables: Sequence[torch.Tensor]) -> torch.Tensor:
    """Put tables of different widths one below the other. What is padded is not read."""
    width = max(table.shape[1] for table in tables)
    return torch.cat([F.pad(table, (0, width - table.shape[1])) for table in tables])
