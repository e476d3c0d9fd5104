"""A step's input on the device."""

from __future__ import annotations

import pytest
import torch

from tartlet_engine.batch import DecodeGroup, PrefillSegment, StepBatch, TreeMask
from tartlet_engine.cuda.device_step import decode_tables, move_together, to_device


def make_batch(groups: tuple[DecodeGroup, ...], segments: tuple[PrefillSegment, ...]) -> StepBatch:
    rows = torch.arange(8)
    return StepBatch(rows, rows + 10, rows + 20, rows + 30, rows[:3], groups, segments)


GROUPS = (
    DecodeGroup(0, torch.tensor([[4], [5]]), torch.tensor([3, 2])),
    DecodeGroup(2, torch.tensor([[6, 7, 8]]), torch.tensor([40])),
)
SEGMENTS = (PrefillSegment(3, 2, 0, torch.tensor([1])), PrefillSegment(5, 3, 20, torch.tensor([2, 3])))


def test_a_mixed_step(device: torch.device) -> None:
    """Rows come over as they are; decode groups become one table, segments another, each padded to its longest."""
    step = to_device(make_batch(GROUPS, SEGMENTS), device)

    assert step.token_ids.tolist() == list(range(8))
    assert step.positions.tolist() == list(range(10, 18))
    assert step.page_ids.tolist() == list(range(20, 28))
    assert step.offsets.tolist() == list(range(30, 38))
    assert step.logit_rows.tolist() == [0, 1, 2]
    assert step.decode is not None
    assert [table[:count] for table, count in zip(step.decode.tables.tolist(), (1, 1, 3), strict=True)] == [
        [4],
        [5],
        [6, 7, 8],
    ]
    assert step.decode.context_lens.tolist() == [3, 2, 40]
    assert step.decode.longest == 40
    assert step.prefill is not None
    assert step.prefill.tables[0, 0] == 1
    assert step.prefill.tables[1].tolist() == [2, 3]
    assert step.prefill.segments.tolist() == [[3, 2, 0], [5, 3, 20]]
    assert step.prefill.most_rows == 3


@pytest.mark.parametrize("kind", ["decode", "prefill"])
def test_steps_of_one_kind(kind: str, device: torch.device) -> None:
    """What a step does not have is None, and no kernel is launched for it."""
    is_decode = kind == "decode"
    step = to_device(make_batch(GROUPS if is_decode else (), () if is_decode else SEGMENTS), device)

    assert (step.decode is not None, step.prefill is not None) == (is_decode, not is_decode)


def test_trees_are_apart(device: torch.device) -> None:
    """Rows of trees name their tables and what they see; plain segments stay as they are."""
    first = torch.tensor([[False, True, False], [True, False, True]])
    second = torch.tensor([[True], [True]])[:1]
    segments = (
        PrefillSegment(0, 2, 20, torch.tensor([2, 3]), TreeMask(19, first)),
        PrefillSegment(2, 3, 0, torch.tensor([1])),
        PrefillSegment(5, 1, 7, torch.tensor([4]), TreeMask(7, second)),
    )
    step = to_device(make_batch((), segments), device)

    assert step.prefill is not None
    assert step.prefill.segments.tolist() == [[2, 3, 0]]
    assert step.trees is not None
    assert step.trees.tables[0].tolist() == [2, 3]
    assert step.trees.tables[1, 0] == 4
    assert step.trees.rows.tolist() == [[0, 0, 19, 22], [1, 0, 19, 22], [5, 1, 7, 8]]
    assert step.trees.visible.tolist() == [[False, True, False], [True, False, True], [True, False, False]]


def test_pages_of_all_groups_are_together() -> None:
    """Tables of different widths become one, in the order of rows."""
    tables, context_lens = decode_tables(make_batch(GROUPS, ()))

    assert tables.shape == (3, 3)
    assert context_lens.tolist() == [3, 2, 40]


def test_tensors_move_together(device: torch.device) -> None:
    """Tensors of any shape, also empty ones and views, arrive as they were."""
    parts = [torch.arange(6.0).view(2, 3).T, torch.zeros(0), torch.tensor(7.0)]
    moved = move_together(parts, device)

    assert all(torch.equal(part, arrived.cpu()) for part, arrived in zip(parts, moved, strict=True))
    assert moved[0].device.type == device.type
