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
        self._num_kv_heads = num_kv_heads
        self._is_float32 = is_float32

    def move(self, moves: SlotMoves) -> None:
        """Carry out moves of tokens in all layers.

        Cost: the pages are copied as a whole into an order in which tokens are rows, and back, since what a page has of
        one token lies in pieces of a few bytes.
        """
        sources, source_slots = _slots(moves.source_page_ids, moves.source_offsets)
        targets, target_slots = _slots(moves.target_page_ids, moves.target_offsets)
        keys, values = self._tokens(self._pages.index_select(1, sources))
        moved_keys, moved_values = keys.index_select(3, source_slots), values.index_select(2, source_slots)
        num_target_slots = len(targets) * PAGE_SIZE
        keys = moved_keys.new_zeros(*moved_keys.shape[:3], num_target_slots).index_copy_(3, target_slots, moved_keys)
        values = moved_values.new_zeros(*moved_values.shape[:2], num_target_slots, moved_values.shape[3])
        values.index_copy_(2, target_slots, moved_values)
        written = torch.empty(len(self._pages), len(targets), self._pages.shape[2], dtype=torch.uint8)
        written_keys, written_values = self._blocks(written)
        written_keys.copy_(keys.view(*keys.shape[:3], -1, PAGE_SIZE).permute(0, 3, 1, 2, 4))
        values = values.view(*values.shape[:2], -1, PAGE_SIZE, values.shape[3]).permute(0, 2, 1, 3, 4)
        written_values.copy_(values.reshape(written_values.shape))
        self._pages.index_copy_(1, targets, written)

    def _blocks(self, pages: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """View pages, uint8[layers, pages, bytes], as keys and values.

        Four bytes at a time, or for values in bfloat16 two: they are bits, and need not be numbers.

        Shape: keys int32[layers, pages, heads, dimension or pair of them, token]; values int32[layers, pages, heads,
        token, dimension], or int16[layers, pages, heads, pair of tokens, 2, dimension].
        """
        shape = (*pages.shape[:2], self._num_kv_heads)
        blocks = pages.view(torch.int32).view(*shape, 2, -1)
        keys = blocks[:, :, :, 0].view(*shape, -1, PAGE_SIZE)
        if self._is_float32:
            return keys, blocks[:, :, :, 1].view(*shape, PAGE_SIZE, -1)
        pairs = pages.view(torch.int16).view(*shape, 2, -1)[:, :, :, 1]
        return keys, pairs.view(*shape, PAGE_SIZE // 2, -1, 2).transpose(-1, -2)

    def _tokens(self, pages: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Copy keys and values into the order of tokens: [layers, heads, .., slots] and [layers, heads, slots, ..]."""
        keys, values = self._blocks(pages)
        values = values.reshape(*values.shape[:3], PAGE_SIZE, -1)
        return keys.permute(0, 2, 3, 1, 4).flatten(3), values.permute(0, 2, 1, 3, 4).flatten(2, 3)


def _slots(page_ids: list[int], offsets: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the distinct pages, and where the slots are in these, one behind the other."""
    places = {page_id: place for place, page_id in enumerate(dict.fromkeys(page_ids))}
    slots = [places[page_id] * PAGE_SIZE + offset for page_id, offset in zip(page_ids, offsets, strict=True)]
    return torch.tensor(list(places), dtype=torch.int64), torch.tensor(slots, dtype=torch.int64)
