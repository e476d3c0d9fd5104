"""Decode graphs: which steps they take, when they are captured, and what happens when they cannot be."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch

pytest.importorskip("triton")

from tartlet_engine.batch import DecodeGroup, PrefillSegment, StepBatch
from tartlet_engine.cuda.decode_graphs import DecodeGraphs, GraphCaptureError
from tartlet_engine.cuda.device_step import DeviceStep
from tartlet_engine.cuda.paged_attention import SPLIT_LEN

PAGE_SIZE = 16


def make_batch(context_lens: list[int], num_prefill: int = 0) -> StepBatch:
    """A step of decodes and one prefill. What is in it can be told from its numbers."""
    num_rows = len(context_lens) + num_prefill
    width = max(-(-length // PAGE_SIZE) for length in context_lens)
    tables = torch.arange(len(context_lens) * width).view(len(context_lens), width)
    segments = (PrefillSegment(len(context_lens), num_prefill, 0, torch.arange(1)),) if num_prefill else ()
    rows = torch.arange(num_rows)
    return StepBatch(
        token_ids=rows + 100,
        positions=rows,
        page_ids=rows,
        offsets=rows,
        logit_rows=rows,
        decode_groups=(DecodeGroup(0, tables, torch.tensor(context_lens)),),
        prefill_segments=segments,
    )


def compute(step: DeviceStep) -> torch.Tensor:
    """A model of the inputs: three "logits" a row, which depend on all of them."""
    assert step.decode is not None
    table_sums = step.decode.tables.sum(1)
    return torch.stack([step.token_ids, step.decode.context_lens, step.page_ids + 0 * table_sums], 1).float()


@pytest.fixture
def make_graphs(device: torch.device, graph_backend: Any) -> Callable[..., DecodeGraphs]:
    def make(function: Callable[[DeviceStep], torch.Tensor] = compute, **options: Any) -> DecodeGraphs:
        return DecodeGraphs(function, graph_backend, device, 4096, PAGE_SIZE, **options)

    return make


def test_a_bucket_is_captured_once(make_graphs: Callable[..., DecodeGraphs]) -> None:
    """Steps of one bucket use one graph, each with its own inputs and its own result; padding is cut off."""
    graphs = make_graphs()
    first = graphs.forward(make_batch([5, 9, 7]))
    second = graphs.forward(make_batch([6, 10, 8, 3]))
    graphs.forward(make_batch([50, 60, 70]))

    assert graphs.num_graphs == 1
    assert first is not None
    assert second is not None
    assert first.tolist() == [[100, 5, 0], [101, 9, 1], [102, 7, 2]]
    assert second.tolist() == [[100, 6, 0], [101, 10, 1], [102, 8, 2], [103, 3, 3]]


def test_longer_contexts_have_graphs_of_their_own(make_graphs: Callable[..., DecodeGraphs]) -> None:
    """A graph has programs for a fixed number of splits: contexts beyond them go to the next bucket, by fours."""
    seen: list[int] = []

    def note(step: DeviceStep) -> torch.Tensor:
        assert step.decode is not None
        seen.append(step.decode.longest)
        return compute(step)

    graphs = make_graphs(note)
    for length in (SPLIT_LEN, SPLIT_LEN + 1, 4 * SPLIT_LEN, 4 * SPLIT_LEN + 1):
        graphs.forward(make_batch([length]))

    assert graphs.num_graphs == 3
    assert sorted(set(seen)) == [SPLIT_LEN, 4 * SPLIT_LEN, 16 * SPLIT_LEN]


def test_other_steps_are_for_the_caller(make_graphs: Callable[..., DecodeGraphs]) -> None:
    """Prefill, rows without logits, and more rows than the greatest bucket: None, and nothing is captured."""
    graphs = make_graphs()
    unfinished = make_batch([5, 6])
    unfinished = StepBatch(
        unfinished.token_ids,
        unfinished.positions,
        unfinished.page_ids,
        unfinished.offsets,
        torch.tensor([1]),
        unfinished.decode_groups,
        (),
    )

    assert graphs.forward(make_batch([5], num_prefill=3)) is None
    assert graphs.forward(unfinished) is None
    assert graphs.forward(make_batch([5] * 257)) is None
    assert graphs.num_graphs == 0


def test_no_more_is_captured_than_memory_allows(
    make_graphs: Callable[..., DecodeGraphs], caplog: pytest.LogCaptureFixture
) -> None:
    """Beyond the limit, steps without a graph are for the caller, and the log says so once; captured ones go on."""
    graphs = make_graphs(max_bytes=1)
    with caplog.at_level(logging.WARNING, "tartlet_engine"):
        graphs.forward(make_batch([5]))
        if graphs._backend.held_bytes() == 0:
            pytest.skip("the graph took no new memory on this GPU")
        refused = [graphs.forward(make_batch([5] * 3)) for _ in range(2)]

    assert refused == [None, None]
    assert graphs.num_graphs == 1
    assert graphs.forward(make_batch([7])) is not None
    assert [record.message.split()[0] for record in caplog.records] == ["cuda_graphs=full"]


def test_a_failed_capture_is_an_error(
    make_graphs: Callable[..., DecodeGraphs], caplog: pytest.LogCaptureFixture
) -> None:
    """A model that waits for the device cannot be captured: every such step says why, the log once."""

    def wait(step: DeviceStep) -> torch.Tensor:
        return compute(step)[: int(step.token_ids.max())]

    graphs = make_graphs(wait)
    for _ in range(2):
        with pytest.raises(GraphCaptureError, match=r"1 rows cannot be captured.*cuda_graphs=False"):
            graphs.forward(make_batch([5]))

    assert [record.message.split()[0] for record in caplog.records] == ["cuda_graphs=failed"]
    assert graphs.num_graphs == 0
