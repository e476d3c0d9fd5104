"""Decode steps as CUDA graphs: hundreds of kernels launched as one.

A graph repeats exact launches over exact memory. So there is one for each bucket of rows and of context lengths, and
all read their inputs from the same static buffers, into which each step's batch is copied; rows that fill up a bucket
are padding, which writes nothing. Graphs are captured when a bucket is first met. Steps with prefill in them, or larger
than the largest bucket, are not for graphs: they are launched kernel by kernel.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F

from tartlet_engine.batch import StepBatch
from tartlet_engine.cuda.device_step import DecodeRows, DeviceStep, decode_tables, move_together
from tartlet_engine.cuda.paged_attention import SPLIT_LEN

ROW_BUCKETS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256)
# Splits of a context that a graph has programs for. Programs without slots end at once, so the steps may be large.
_SPLIT_FACTOR = 4
# Graphs beyond this memory, which is theirs for good, are not captured.
MAX_GRAPH_BYTES = 4 << 30

_log = logging.getLogger("tartlet_engine")


class GraphCaptureError(RuntimeError):
    """A decode step cannot be captured as a CUDA graph: the model waits for the device in it, or memory is short."""


class Graph(Protocol):
    """A captured computation."""

    @property
    def output(self) -> torch.Tensor:
        """What it computed, in memory of its own."""
        ...

    def replay(self) -> None:
        """Compute again, from what is now in the buffers that were read, into `output`."""
        ...


class GraphBackend(Protocol):
    """What captures: `CudaGraphs`, or a stand-in where there is no GPU."""

    def capture(self, compute: Callable[[], torch.Tensor]) -> Graph:
        """Compute once or more, and return the graph of it."""
        ...

    def held_bytes(self) -> int:
        """Return how much memory the captured graphs hold."""
        ...


@dataclass(frozen=True, slots=True)
class _Capture:
    """A graph of CUDA."""

    graph: torch.cuda.CUDAGraph
    output: torch.Tensor

    def replay(self) -> None:
        self.graph.replay()


class CudaGraphs:
    """Captures CUDA graphs, all of which share one pool of memory. Untested on hardware."""

    def __init__(self, device: torch.device) -> None:
        """Capture on `device`."""
        self._device = device
        self._pool = torch.cuda.graph_pool_handle()
        self._held_bytes = 0

    def capture(self, compute: Callable[[], torch.Tensor]) -> Graph:
        """Compute once for real, which compiles kernels and lets libraries set themselves up, then capture."""
        current = torch.cuda.current_stream(self._device)
        side: torch.cuda.Stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        side.wait_stream(current)
        with torch.cuda.stream(side):
            compute()
        current.wait_stream(side)
        reserved = torch.cuda.memory_reserved(self._device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            output = compute()
        self._held_bytes += max(0, torch.cuda.memory_reserved(self._device) - reserved)
        return _Capture(graph, output)

    def held_bytes(self) -> int:
        """Return by how much memory has grown in captures."""
        return self._held_bytes


class DecodeGraphs:
    """Decode steps by graphs. One call at a time."""

    def __init__(
        self,
        compute: Callable[[DeviceStep], torch.Tensor],
        backend: GraphBackend,
        device: torch.device,
        context_len: int,
        page_size: int,
        max_bytes: int = MAX_GRAPH_BYTES,
    ) -> None:
        """Make the static buffers.

        Args:
            compute: the eager step, from an input on the device to logits float32[R, V]; it waits for nothing.
            backend: what captures it.
            device: where it computes.
            context_len: the model's; no page table is longer.
            page_size: tokens of a page.
            max_bytes: graphs beyond this memory are not captured; their steps are then for the caller, as mixed ones.
        """
        self._compute = compute
        self._backend = backend
        self._device = device
        self._page_size = page_size
        self._max_bytes = max_bytes
        self._graphs: dict[tuple[int, int], Graph] = {}
        self._failure: GraphCaptureError | None = None
        self._is_full = False
        most_rows = ROW_BUCKETS[-1]
        self._rows = torch.zeros(5 * most_rows, dtype=torch.int64, device=device)
        self._logit_rows = torch.arange(most_rows, device=device)
        self._tables = torch.zeros(most_rows, -(-context_len // page_size), dtype=torch.int64, device=device)

    @property
    def num_graphs(self) -> int:
        """Graphs captured up to now."""
        return len(self._graphs)

    def forward(self, batch: StepBatch, token_ids: torch.Tensor | None = None) -> torch.Tensor | None:
        """Compute a step: float32[R, V]; None if it is not one for graphs, and nothing has been done.

        Args:
            batch: in the host's memory.
            token_ids: int64[T], on the device, in place of the batch's.

        Raises:
            GraphCaptureError: a capture fails now or failed before.
        """
        num_rows = len(batch.token_ids)
        is_decode = not batch.prefill_segments and len(batch.logit_rows) == num_rows
        if not is_decode or not 0 < num_rows <= ROW_BUCKETS[-1]:
            return None
        tables, context_lens = decode_tables(batch)
        key = _bucket(num_rows, int(context_lens.max()))
        if key not in self._graphs and not self._has_room():
            return None
        step = self._fill(batch, tables, context_lens, key)
        if token_ids is not None:
            step.token_ids[:num_rows].copy_(token_ids)
        if key not in self._graphs:
            self._graphs[key] = self._capture(step)
        graph = self._graphs[key]
        graph.replay()
        return graph.output[:num_rows].clone()  # the graph's own memory is written again by its next replay

    def _fill(
        self, batch: StepBatch, tables: torch.Tensor, context_lens: torch.Tensor, key: tuple[int, int]
    ) -> DeviceStep:
        """Copy the batch into the static buffers, and return them as the bucket's input."""
        bucket_rows, num_splits = key
        padding = bucket_rows - len(context_lens)
        rows = [
            F.pad(batch.token_ids, (0, padding)),
            F.pad(batch.positions, (0, padding)),
            F.pad(batch.page_ids, (0, padding), value=-1),
            F.pad(batch.offsets, (0, padding)),
            F.pad(context_lens, (0, padding)),
        ]
        packed, device_tables = move_together([torch.cat(rows), tables], self._device)
        static_rows = self._rows[: 5 * bucket_rows]
        static_rows.copy_(packed)
        self._tables[: tables.shape[0], : tables.shape[1]].copy_(device_tables)
        token_ids, positions, page_ids, offsets, static_lens = static_rows.view(5, bucket_rows)
        return DeviceStep(
            token_ids=token_ids,
            positions=positions,
            page_ids=page_ids,
            offsets=offsets,
            logit_rows=self._logit_rows[:bucket_rows],
            decode=DecodeRows(self._tables[:bucket_rows], static_lens, num_splits * SPLIT_LEN),
            prefill=None,
        )

    def _capture(self, step: DeviceStep) -> Graph:
        if self._failure is not None:
            raise self._failure
        try:
            return self._backend.capture(lambda: self._compute(step))
        except Exception as error:
            self._failure = GraphCaptureError(
                f"a decode step of {len(step.token_ids)} rows cannot be captured as a CUDA graph: "
                f"{type(error).__name__}: {error}; run without graphs (cuda_graphs=False)"
            )
            _log.error("cuda_graphs=failed reason=%r", str(error))
            raise self._failure from error

    def _has_room(self) -> bool:
        """Tell whether one more graph may be captured. Logs once when it may not."""
        held = self._backend.held_bytes()
        if held < self._max_bytes:
            return True
        if not self._is_full:
            self._is_full = True
            _log.warning(
                "cuda_graphs=full graphs=%d bytes=%d allowed=%d: other decode steps are launched kernel by kernel",
                len(self._graphs),
                held,
                self._max_bytes,
            )
        return False


def _bucket(num_rows: int, longest: int) -> tuple[int, int]:
    """Return the rows and splits of the least bucket that a step fits into."""
    num_splits = 1
    while num_splits * SPLIT_LEN < longest:
        num_splits *= _SPLIT_FACTOR
    return next(rows for rows in ROW_BUCKETS if rows >= num_rows), num_splits
