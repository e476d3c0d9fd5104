"""Runs models of the Llama family in C, a whole step in one call: `model_runner.ModelRunner` for CPUs with AVX2.

Several times as fast as torch's operators on the same cores. Within a weight format a token's logits are the same bits
whatever it is computed with: alone or in any batch, its prompt whole or in chunks, over pages of its own or shared, on
any number of threads. They differ between formats, and in the last bits between instruction sets.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import torch

from tartlet_engine.adapter_file import Adapter
from tartlet_engine.batch import PrefillSegment, StepBatch, TreeMask
from tartlet_engine.fused_adapter import FusedAdapter, module_sizes
from tartlet_engine.fused_pages import PAGE_SIZE, FusedPages
from tartlet_engine.huge_memory import huge_zeros
from tartlet_engine.kernel_structs import ModelStruct, pointer
from tartlet_engine.kernels.build import Kernels, load_kernels
from tartlet_engine.llama_shape import LlamaShape
from tartlet_engine.llama_weights import VECTOR
from tartlet_engine.packed_model import PackedModel
from tartlet_engine.packing import WeightFormat, round_up
from tartlet_engine.page_table import SlotMoves

# The workspace grows in these steps, so that it is not made anew for every longer context.
_ROWS_STEP = 64
_CONTEXT_STEP = 1024


def fused_page_bytes(shape: LlamaShape, weight_format: WeightFormat) -> int:
    """Return the bytes that one page takes in all layers."""
    element_bytes = 4 if weight_format is WeightFormat.FLOAT32 else 2
    heads_dim = shape.num_kv_heads * round_up(shape.head_dim, VECTOR)
    return shape.num_layers * 2 * heads_dim * PAGE_SIZE * element_bytes


class FusedRunner:
    """A model of the Llama family with its KV cache, run by the kernels of `kernels/`."""

    device = logits_device = torch.device("cpu")
    is_batch_invariant = True

    def __init__(
        self, model: PackedModel, num_pages: int, num_threads: int, instruction_set: str | None = None
    ) -> None:
        """Compile the kernels if need be, and start the threads.

        Args:
            model: its keys and values are float32 if its weights are, and else bfloat16.
            num_pages: pages of the KV cache, of 16 tokens each; memory is taken as they are first written.
            num_threads: that compute, the calling one included.
            instruction_set: see `kernels.build.load_kernels`.

        Raises:
            KernelsUnavailableError: the kernels cannot be compiled or run on this machine.
        """
        shape = model.shape
        kernels = load_kernels(instruction_set)
        self.instruction_set = kernels.instruction_set
        self._kernels: Kernels = kernels
        self._vocabulary_size = shape.vocabulary_size
        self._context_len = model.context_len
        self._shape, self._format = shape, model.weight_format
        self._adapters: dict[str, FusedAdapter] = {}
        self._num_threads = num_threads
        self._kv_pool = huge_zeros(num_pages * fused_page_bytes(shape, model.weight_format))
        self._pages = self._kv_pool.view(shape.num_layers, num_pages, -1)  # uint8
        self._slots = FusedPages(
            self._kv_pool,
            shape.num_layers,
            num_pages,
            shape.num_kv_heads,
            is_float32=model.weight_format is WeightFormat.FLOAT32,
        )
        self._logits_size = model.weights.head.matrix.num_outputs
        self._model = ModelStruct(kernels, model, self._kv_pool, num_pages)
        self._workspace = torch.empty(0, dtype=torch.uint8)
        self._capacity = (0, 0)  # rows, tokens of context
        self._team = kernels.lib.tartlet_team_start(num_threads)
        if self._team == kernels.ffi.NULL:
            raise MemoryError(f"the system has no memory or no threads left to start {num_threads}")
        self._stop_threads = weakref.finalize(self, kernels.lib.tartlet_team_stop, self._team)

    def close(self) -> None:
        """Stop the threads. Idempotent; also happens when the runner is collected."""
        self._stop_threads()

    def forward(self, batch: StepBatch) -> torch.Tensor:
        """Compute a step: `ModelRunner.forward`. One call at a time, from any thread; releases the GIL."""
        self._copy_pages(batch)
        num_rows, num_logit_rows = len(batch.token_ids), len(batch.logit_rows)
        logits = torch.empty(num_logit_rows, self._logits_size)
        if num_rows == 0:
            return logits[:, : self._vocabulary_size]
        last_position = int(batch.positions.max())
        if last_position >= self._context_len:
            raise ValueError(f"a position is {last_position:,}; this model has {self._context_len:,}")
        slots = batch.slots
        segments = self._segments(batch)
        step = self._kernels.ffi.new("tartlet_step *")
        step.num_rows, step.num_segments, step.num_logit_rows = num_rows, len(segments), num_logit_rows
        for name in ("token_ids", "positions", "page_ids", "offsets", "logit_rows"):
            setattr(step, name, pointer(self._kernels, "int64_t *", getattr(batch, name)))
        step.slots = pointer(self._kernels, "int64_t *", slots)
        step.segments = segments
        spans = [(span.first_row, span.num_rows, self._adapters[span.adapter].layers) for span in batch.adapter_spans]
        adapter_spans = self._kernels.ffi.new("tartlet_adapter_span[]", spans)
        step.num_adapter_spans, step.adapter_spans = len(spans), adapter_spans
        step.logits = pointer(self._kernels, "float *", logits)
        most_tail = max((s.tree.visible.shape[1] for s in batch.prefill_segments if s.tree is not None), default=0)
        self._reserve(max(num_rows, most_tail), int(slots.max()) + 1)
        workspace = pointer(self._kernels, "void *", self._workspace)
        self._kernels.lib.tartlet_compute_step(self._model.pointer, step, self._team, workspace, *self._capacity)
        return logits[:, : self._vocabulary_size]

    def move_slots(self, moves: SlotMoves) -> None:
        """Move keys and values of tokens: `ModelRunner.move_slots`."""
        self._slots.move(moves)

    def add_adapter(self, adapter: Adapter) -> int:
        """Hold a LoRA adapter, in float32 if the model's weights are, and else in bfloat16: `ModelRunner.add_adapter`.

        A row without an adapter has the same bits as without any; one with an adapter has the same in any batch.
        """
        sizes = module_sizes(self._shape)
        adapter.require_modules(sizes)
        fused = FusedAdapter(self._kernels, adapter, self._shape, self._format, sizes)
        self._adapters[adapter.name] = fused
        self._model.pointer.max_rank = max(self._model.pointer.max_rank, fused.max_rank)
        self._capacity = (0, 0)  # the workspace has no room for such a rank yet
        return fused.num_bytes

    def read_pages(self, page_ids: Sequence[int]) -> torch.Tensor:
        """Return the contents of pages: `ModelRunner.read_pages`."""
        index = torch.tensor(page_ids, dtype=torch.int64)
        return self._pages.index_select(1, index).transpose(0, 1).reshape(len(page_ids), -1)

    def write_pages(self, page_ids: Sequence[int], contents: torch.Tensor) -> None:
        """Put contents back into pages: `ModelRunner.write_pages`."""
        num_layers, _, layer_bytes = self._pages.shape
        if contents.shape != (len(page_ids), num_layers * layer_bytes) or contents.dtype != torch.uint8:
            expected = f"uint8[{len(page_ids)}, {num_layers * layer_bytes}]"
            raise ValueError(f"contents must be {expected}, got {contents.dtype}{[*contents.shape]}")
        index = torch.tensor(page_ids, dtype=torch.int64)
        self._pages[:, index] = contents.view(len(page_ids), num_layers, layer_bytes).transpose(0, 1)

    def _copy_pages(self, batch: StepBatch) -> None:
        """Carry out copies on write in all layers. All sources are read before any target is written."""
        if batch.page_copies:
            sources = [copy.source_page_id for copy in batch.page_copies]
            targets = [copy.target_page_id for copy in batch.page_copies]
            self._pages[:, targets] = self._pages[:, sources]

    def _segments(self, batch: StepBatch) -> Any:
        """Return the batch's rows as `tartlet_segment[]`, which points into its page tables and tree masks."""
        entries: list[tuple[Any, ...]] = []
        cast = self._kernels.ffi.cast
        for group in batch.decode_groups:
            address, row_bytes = group.page_tables.data_ptr(), group.page_tables.stride(0) * 8
            entries += [
                (group.first_row + row, 1, cast("int64_t *", address + row * row_bytes))
                for row in range(len(group.page_tables))
            ]
        for segment in batch.prefill_segments:
            entry = (segment.first_row, segment.num_rows, cast("int64_t *", segment.page_table.data_ptr()))
            tree = () if segment.tree is None else self._tree(segment, segment.tree)
            entries.append((*entry, *tree))
        return self._kernels.ffi.new("tartlet_segment[]", entries)

    def _tree(self, segment: PrefillSegment, tree: TreeMask) -> tuple[Any, int, int]:
        """Return what a `tartlet_segment` holds of a tree."""
        num_rows, num_tail = tree.visible.shape
        fits = tree.first_slot >= 0 and tree.first_slot + num_tail == segment.context_len
        if num_rows != segment.num_rows or not fits:
            raise ValueError(
                f"a tree of {num_rows} rows over the slots {tree.first_slot} to {tree.first_slot + num_tail} does not "
                f"fit a segment of {segment.num_rows} rows that ends with slot {segment.context_len}"
            )
        return pointer(self._kernels, "uint8_t *", tree.visible), tree.first_slot, num_tail

    def _reserve(self, num_rows: int, context_len: int) -> None:
        """Make the workspace large enough."""
        if num_rows <= self._capacity[0] and context_len <= self._capacity[1]:
            return
        rows = max(self._capacity[0], round_up(num_rows, _ROWS_STEP))
        context = max(self._capacity[1], round_up(context_len, _CONTEXT_STEP))
        num_bytes = self._kernels.lib.tartlet_workspace_bytes(self._model.pointer, rows, context, self._num_threads)
        self._workspace = huge_zeros(num_bytes)
        self._capacity = (rows, context)
