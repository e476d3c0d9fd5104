"""Paged attention, as an attention implementation of transformers: the reference in plain torch.

transformers calls the registered function once per layer with the step's queries, keys and values. Everything else that
it needs to know (where keys and values go, which pages each row reads) comes along as the keyword argument
`attention_step`, which the model hands through from its own `forward`. Nothing is kept in module state, so two models
can run in one process.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
import torch.nn.functional as F

from tartlet_engine.batch import DecodeGroup, PrefillSegment, StepBatch
from tartlet_engine.kv_cache import KvCache, LayerShape

ATTENTION_NAME = "tartlet_paged"

# Arguments of other implementations that change nothing of what is computed here.
_HARMLESS_ARGUMENTS = {"is_causal", "output_attentions", "use_cache", "position_ids", "cache", "past_key_values"}


class AttentionStep(Protocol):
    """What is passed to the model as `attention_step`."""

    def attend(
        self,
        layer_index: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scaling: float,
        sliding_window: int | None,
        softcap: float | None,
    ) -> torch.Tensor:
        """Return float[T, H, value_dim] for a query float[H, T, D], a key and a value float[K, T, D]."""
        ...


def register_attention() -> None:
    """Make `ATTENTION_NAME` known to transformers. Models that use it get no attention mask made. Idempotent."""
    from transformers import AttentionInterface

    # There is no function of this name in AttentionMaskInterface, which is how mask making is turned off.
    AttentionInterface.register(ATTENTION_NAME, _attention_forward)


def _attention_forward(
    module: torch.nn.Module,
    query: torch.Tensor,  # [1, H, T, D]
    key: torch.Tensor,  # [1, K, T, D]
    value: torch.Tensor,  # [1, K, T, D]
    attention_mask: torch.Tensor | None,
    *,
    attention_step: AttentionStep,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Attend in one layer: the function that transformers calls. Returns [1, T, H, D].

    Raises NotImplementedError if the model asks for something that would be left out.
    """
    asked_for = {name for name, argument in others.items() if argument is not None} - _HARMLESS_ARGUMENTS
    if asked_for or attention_mask is not None:
        raise NotImplementedError(f"paged attention does not know: {', '.join(sorted(asked_for)) or 'attention_mask'}")
    if scaling is None:
        scaling = query.shape[-1] ** -0.5
    layer_index: Any = module.layer_idx
    output = attention_step.attend(layer_index, query[0], key[0], value[0], scaling, sliding_window, softcap)
    return output.unsqueeze(0), None


class PagedAttentionStep:
    """Attention of one step over the pages of a KV cache."""

    def __init__(self, batch: StepBatch, kv_cache: KvCache) -> None:
        """Prepare what is the same in all layers."""
        self._batch = batch
        self._cache = kv_cache
        self._indices: dict[tuple[object, int], torch.Tensor] = {}
        self._masks: dict[tuple[object, int | None], torch.Tensor] = {}

    def attend(
        self,
        layer_index: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scaling: float,
        sliding_window: int | None,
        softcap: float | None,
    ) -> torch.Tensor:
        """Write the step's keys and values into their slots, then attend: `AttentionStep.attend`."""
        keys, values = self._cache.keys[layer_index], self._cache.values[layer_index]
        keys[self._batch.page_ids, :, self._batch.offsets] = key.transpose(0, 1)
        values[self._batch.page_ids, :, self._batch.offsets] = value.transpose(0, 1)
        num_heads, num_tokens, _ = query.shape
        output = query.new_empty(num_tokens, num_heads, value.shape[-1])
        for group in self._batch.decode_groups:
            rows = slice(group.first_row, group.first_row + len(group.context_lens))
            mask = self._decode_mask(group, sliding_window)
            output[rows] = self._decode(group, query[:, rows], keys, values, mask, scaling, softcap)
        for segment in self._batch.prefill_segments:
            rows = slice(segment.first_row, segment.first_row + segment.num_rows)
            fresh = (key[:, rows], value[:, rows]) if segment.start == 0 else None
            context = fresh or self._gather_segment(segment, keys, values)
            visible = self._prefill_mask(segment, sliding_window)
            if segment.tree is not None and visible is not None:
                context = _without_unseen(*context, visible)
            output[rows] = _prefill(query[:, rows], *context, visible, scaling, softcap).transpose(0, 1)
        return output

    def _decode(
        self,
        group: DecodeGroup,
        query: torch.Tensor,  # [H, B, D]
        keys: torch.Tensor,
        values: torch.Tensor,
        mask: torch.Tensor,  # [B, 1, 1, C], added to the scores
        scaling: float,
        softcap: float | None,
    ) -> torch.Tensor:
        """Attend with one query token per sequence. Returns [B, H, D].

        The query heads that share a KV head are the rows of one matrix product, one per sequence and KV head. On CPU
        this takes a fifth of the time of `scaled_dot_product_attention` with grouped heads in 16 bit.
        """
        num_kv_heads = keys.shape[1]
        num_rows = len(group.page_tables)
        index = self._page_index(group, group.page_tables, num_kv_heads)
        context_keys = _gather(keys, index, num_rows * num_kv_heads)
        context_values = _gather(values, index, num_rows * num_kv_heads)
        num_heads, _, dim = query.shape
        heads_per_kv = num_heads // num_kv_heads
        grouped = query.transpose(0, 1).reshape(num_rows * num_kv_heads, heads_per_kv, dim)
        scores = torch.bmm(grouped, context_keys.transpose(1, 2)).float().mul_(scaling)
        if softcap is not None:
            scores = scores.div_(softcap).tanh_().mul_(softcap)
        scores.view(num_rows, num_kv_heads, heads_per_kv, -1).add_(mask)
        weights = scores.softmax(-1).to(context_values.dtype)
        return torch.bmm(weights, context_values).view(num_rows, num_heads, -1)

    def _gather_segment(
        self, segment: PrefillSegment, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values [K, C, D] of everything that the segment's last row sees."""
        num_kv_heads = keys.shape[1]
        index = self._page_index(segment, segment.page_table.unsqueeze(0), num_kv_heads)
        context_keys = _gather(keys, index, num_kv_heads)[:, : segment.context_len]
        context_values = _gather(values, index, num_kv_heads)[:, : segment.context_len]
        return context_keys, context_values

    def _page_index(self, part: object, page_tables: torch.Tensor, num_kv_heads: int) -> torch.Tensor:
        """Return where each row, head and page lies among the (page, head) pieces of a layer: int64[B * K * P]."""
        index = self._indices.get((part, num_kv_heads))
        if index is None:
            heads = torch.arange(num_kv_heads, device=page_tables.device)
            index = (page_tables[:, None, :] * num_kv_heads + heads[None, :, None]).flatten()
            self._indices[part, num_kv_heads] = index
        return index

    def _decode_mask(self, group: DecodeGroup, sliding_window: int | None) -> torch.Tensor:
        """Return float32[B, 1, 1, C]: 0 where the row may look, else minus infinity."""
        mask = self._masks.get((group, sliding_window))
        if mask is None:
            num_slots = group.page_tables.shape[1] * self._cache.page_size
            slots = torch.arange(num_slots, device=group.context_lens.device)
            ends = group.context_lens[:, None]
            visible = slots < ends
            if sliding_window is not None:
                visible &= slots >= ends - sliding_window
            mask = torch.zeros(visible.shape, device=visible.device).masked_fill_(~visible, float("-inf"))
            mask = mask[:, None, None, :]
            self._masks[group, sliding_window] = mask
        return mask

    def _prefill_mask(self, segment: PrefillSegment, sliding_window: int | None) -> torch.Tensor | None:
        """Return bool[T, C], True where a row may look; None if that is plainly causal from the first token on."""
        tree = segment.tree
        if segment.start == 0 and tree is None and (sliding_window is None or segment.num_rows <= sliding_window):
            return None
        cached = self._masks.get((segment, sliding_window))
        if cached is not None:
            return cached
        device = segment.page_table.device
        rows = torch.arange(segment.start, segment.context_len, device=device)[:, None]
        slots = torch.arange(segment.context_len, device=device)
        mask = slots <= rows
        if tree is not None:
            mask[:, tree.first_slot :] = tree.visible
        if sliding_window is not None and tree is None:
            mask &= slots > rows - sliding_window
        elif sliding_window is not None:
            num_from_there = mask.flip(1).cumsum(1).flip(1)  # slots that the row sees there and after
            mask &= num_from_there <= sliding_window
        self._masks[segment, sliding_window] = mask
        return mask


class ShapeProbe:
    """Notes the sizes of every layer's keys and values instead of attending: tells what cache a model needs."""

    def __init__(self) -> None:
        """Start with no layer seen."""
        self.layer_shapes: dict[int, LayerShape] = {}

    def attend(
        self,
        layer_index: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scaling: float,
        sliding_window: int | None,
        softcap: float | None,
    ) -> torch.Tensor:
        """Note the layer's sizes, and return zeros: `AttentionStep.attend`."""
        self.layer_shapes[layer_index] = LayerShape(key.shape[0], key.shape[2], value.shape[2], sliding_window)
        return query.new_zeros(query.shape[1], query.shape[0], value.shape[2])


def _gather(cache: torch.Tensor, index: torch.Tensor, num_sets: int) -> torch.Tensor:
    """Return the pieces that `index` names, [num_sets, C, D], out of a cache [pages, K, page_size, D]."""
    num_pages, num_kv_heads, page_size, dim = cache.shape
    pieces = cache.view(num_pages * num_kv_heads, page_size * dim).index_select(0, index)
    return pieces.view(num_sets, -1, dim)


def _without_unseen(key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return keys and values [K, C, D] with zeros where no row of bool[T, C] looks: what is there may be no number."""
    is_unseen = ~mask.any(0)[None, :, None]
    return key.masked_fill(is_unseen, 0), value.masked_fill(is_unseen, 0)


def _prefill(
    query: torch.Tensor,  # [H, T, D]
    key: torch.Tensor,  # [K, C, D]
    value: torch.Tensor,  # [K, C, D]
    mask: torch.Tensor | None,
    scaling: float,
    softcap: float | None,
) -> torch.Tensor:
    """Attend with consecutive tokens of one sequence, causally if there is no mask. Returns [H, T, D]."""
    if softcap is None:
        is_grouped = query.shape[0] != key.shape[0]
        return F.scaled_dot_product_attention(
            query[None],
            key[None],
            value[None],
            attn_mask=mask,
            is_causal=mask is None,
            scale=scaling,
            enable_gqa=is_grouped,
        )[0]
    num_heads, num_tokens, dim = query.shape
    if mask is None:
        mask = torch.ones(num_tokens, num_tokens, dtype=torch.bool, device=query.device).tril_()
    grouped = query.reshape(key.shape[0], -1, dim)  # the query heads of one KV head, one below the other
    scores = torch.bmm(grouped, key.transpose(1, 2)).float().mul_(scaling).div_(softcap).tanh_().mul_(softcap)
    scores = scores.view(num_heads, num_tokens, -1).masked_fill_(~mask, float("-inf"))
    weights = scores.softmax(-1).to(value.dtype)
    return torch.bmm(weights.view(key.shape[0], -1, weights.shape[-1]), value).view(num_heads, num_tokens, -1)
