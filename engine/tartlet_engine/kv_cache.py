"""The tensors behind the pages: keys and values of every slot, in every layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psutil
import torch

from tartlet_engine.page_table import PageCopy, SlotMoves

# Without a number of pages from the operator: this part of the memory that is available ...
MEMORY_SHARE = {"cpu": 0.25, "cuda": 0.8}
# ... but no more than this many contexts of full length would take.
MAX_FULL_CONTEXTS = 64


@dataclass(frozen=True, slots=True)
class LayerShape:
    """Sizes of one layer's keys and values per token."""

    num_kv_heads: int
    key_dim: int
    value_dim: int
    sliding_window: int | None = None  # tokens that a query sees; None: all


class KvCache:
    """Keys and values by layer: `[num_pages, num_kv_heads, page_size, dim]`.

    Heads come before slots, so that one head's part of a page lies in one piece: a gather over pages copies whole
    pieces, and its result is what a batched matrix product reads without another copy (half the time of attention on
    CPU against `[num_pages, page_size, num_kv_heads, dim]`).
    """

    def __init__(
        self,
        layer_shapes: Sequence[LayerShape],
        num_pages: int,
        page_size: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        """Reserve the tensors. On a CPU, memory is taken from the system as pages are first written."""
        self.num_pages = num_pages
        self.page_size = page_size
        self.keys = [
            _lazy_zeros((num_pages, shape.num_kv_heads, page_size, shape.key_dim), dtype, device)
            for shape in layer_shapes
        ]
        self.values = [
            _lazy_zeros((num_pages, shape.num_kv_heads, page_size, shape.value_dim), dtype, device)
            for shape in layer_shapes
        ]

    def copy_pages(self, copies: Sequence[PageCopy]) -> None:
        """Carry out copies on write in all layers. All sources are read before any target is written."""
        if not copies:
            return
        device = self.keys[0].device
        sources = torch.tensor([copy.source_page_id for copy in copies], device=device)
        targets = torch.tensor([copy.target_page_id for copy in copies], device=device)
        for tensor in (*self.keys, *self.values):
            tensor[targets] = tensor[sources]

    def clear_pages(self, page_ids: torch.Tensor) -> None:
        """Write zeros into pages, int64[F], in all layers, so that nothing of an earlier owner is left in them.

        Slots not yet written are read and then masked; zero times what another sequence left there, such as NaN, need
        not be zero.
        """
        for tensor in (*self.keys, *self.values):
            tensor.index_fill_(0, page_ids, 0)

    def move_slots(self, moves: SlotMoves) -> None:
        """Carry out moves of tokens in all layers."""
        device = self.keys[0].device
        sources, source_offsets, targets, target_offsets = (
            torch.tensor(numbers, dtype=torch.int64, device=device)
            for numbers in (moves.source_page_ids, moves.source_offsets, moves.target_page_ids, moves.target_offsets)
        )
        for tensor in (*self.keys, *self.values):
            moved = tensor[sources, :, source_offsets]
            tensor.index_fill_(0, targets, 0)
            tensor[targets, :, target_offsets] = moved

    def read_pages(self, page_ids: Sequence[int]) -> torch.Tensor:
        """Return the contents of pages, all layers: uint8[len(page_ids), page_bytes] in the host's memory."""
        index = torch.tensor(page_ids, dtype=torch.int64, device=self.keys[0].device)
        parts = [tensor[index].flatten(1).view(torch.uint8) for tensor in (*self.keys, *self.values)]
        return torch.cat(parts, dim=1).cpu()

    def write_pages(self, page_ids: Sequence[int], contents: torch.Tensor) -> None:
        """Put back what `read_pages` returned, into the same or other pages. Raises ValueError for another shape."""
        tensors = (*self.keys, *self.values)
        sizes = [tensor[0].nbytes for tensor in tensors]
        if contents.shape != (len(page_ids), sum(sizes)) or contents.dtype != torch.uint8:
            raise ValueError(
                f"contents must be uint8[{len(page_ids)}, {sum(sizes)}], got {contents.dtype}{[*contents.shape]}"
            )
        index = torch.tensor(page_ids, dtype=torch.int64, device=self.keys[0].device)
        for tensor, part in zip(tensors, torch.split(contents, sizes, dim=1), strict=True):
            part = part.to(tensor.device).contiguous().view(tensor.dtype)
            tensor[index] = part.view(len(page_ids), *tensor.shape[1:])


def page_bytes(layer_shapes: Sequence[LayerShape], page_size: int, dtype: torch.dtype) -> int:
    """Return the bytes that one page takes in all layers."""
    elements = sum(shape.num_kv_heads * (shape.key_dim + shape.value_dim) for shape in layer_shapes)
    return elements * page_size * dtype.itemsize


def default_num_pages(bytes_per_page: int, page_size: int, context_len: int, device: torch.device) -> int:
    """Choose how many pages to have, by the memory that is available now."""
    if device.type == "cuda":
        available, _ = torch.cuda.mem_get_info(device)
    else:
        available = psutil.virtual_memory().available
    by_memory = int(available * MEMORY_SHARE[device.type]) // bytes_per_page
    by_use = MAX_FULL_CONTEXTS * -(-context_len // page_size)
    return max(1, min(by_memory, by_use))


def _lazy_zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return zeros that take no memory before they are written, where the system can do that.

    `torch.zeros` writes all of the memory at once; a private mapping, which NumPy's calloc makes, does not.
    """
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    import numpy

    num_bytes = torch.Size(shape).numel() * dtype.itemsize
    return torch.from_numpy(numpy.zeros(num_bytes, dtype=numpy.uint8)).view(dtype).view(shape)
