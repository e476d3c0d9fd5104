"""The fused runner's pages token by token, as tensors; `kernels/heads.c` draws how they are laid out."""

from __future__ import annotations

import torch

from tartlet_engine.page_table import SlotMoves

PAGE_SIZE = 16


class FusedPages:
    """Views of a pool of pages in which single tokens can be found."""

    def __init__(
        self, pool: torch.Tensor, num_layers: int, num_pages: int, num_kv_heads: int, *, is_float32: bool
    ) -> None:
        """View `pool`, uint8: [layer][page][key-value head]{ keys, values }, in float32 or else bfloat16."""
        self._pages = pool.view(num_layers, num_pages, -1)  # uint8
        shape = (num_layers, num_pages, num_kv_heads)
        blocks = self._pages.view(torch.int32).view(*shape, 2, -1)
        # Four bytes at a time: a float32, or two bfloat16. They are bits, and need not be numbers.
        self._keys = blocks[:, :, :, 0].view(*shape, -1, PAGE_SIZE)  # [dimension or pair][token]
        if is_float32:
            self._values = blocks[:, :, :, 1].view(*shape, PAGE_SIZE, -1)  # [token][dimension]
        else:
            pairs = self._pages.view(torch.int16).view(*shape, 2, -1)[:, :, :, 1]
            values = pairs.view(*shape, PAGE_SIZE // 2, -1, 2)  # [pair of tokens][dimension][2]
            self._values = values.transpose(-1, -2)  # [pair of tokens][2][dimension]
        self._is_float32 = is_float32

    def move(self, moves: SlotMoves) -> None:
        """Carry out moves of tokens in all layers."""
        sources, source_offsets, targets, target_offsets = (
            torch.tensor(numbers, dtype=torch.int64)
            for numbers in (moves.source_page_ids, moves.source_offsets, moves.target_page_ids, moves.target_offsets)
        )
        keys = self._keys[:, sources, :, :, source_offsets]
        values = self._values[self._value_index(sources, source_offsets)]
        self._pages[:, targets] = 0
        self._keys[:, targets, :, :, target_offsets] = keys
        self._values[self._value_index(targets, target_offsets)] = values

    def _value_index(self, page_ids: torch.Tensor, offsets: torch.Tensor) -> tuple[slice | torch.Tensor, ...]:
        """Return where the values of tokens are, in all layers and heads."""
        every = slice(None)
        return (every, page_ids, every, *((offsets,) if self._is_float32 else (offsets // 2, offsets % 2)))
