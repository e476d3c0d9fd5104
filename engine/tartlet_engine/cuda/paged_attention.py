"""Paged attention of a step on the device: `attention.AttentionStep` over the kernels of `paged_kernels`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton

from tartlet_engine.cuda.device_step import DecodeRows, DeviceStep, PrefillRows, TreeRows
from tartlet_engine.cuda.paged_kernels import combine_kernel, decode_kernel, prefill_kernel, write_kernel
from tartlet_engine.cuda.tree_kernels import tree_kernel
from tartlet_engine.kv_cache import KvCache

# Slots of a decode row's context that one program goes through. Fixed, and not chosen by the number of rows, so that
# the order of summation, and so the result's last bits, do not depend on the batch.
SPLIT_LEN = 256
_BLOCK_SPLITS = 16  # that are combined at once
_MIN_TILE = 16  # the least rows and dims that tensor cores multiply


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer's tensors of a step, and the numbers that all kernels want."""

    query: torch.Tensor  # [H, T, D], dense in the last
    keys: torch.Tensor  # [pages, K, page_size, D]
    values: torch.Tensor  # [pages, K, page_size, value_dim]
    output: torch.Tensor  # [T, H, value_dim]
    scaling: float
    sliding_window: int | None
    softcap: float | None

    @property
    def num_kv_heads(self) -> int:
        return self.keys.shape[1]

    @property
    def heads_per_kv(self) -> int:
        return self.query.shape[0] // self.num_kv_heads

    def constants(self) -> dict[str, int | float | None]:
        """What the attention kernels are compiled for, by their names."""
        key_dim, value_dim = self.keys.shape[3], self.values.shape[3]
        return {
            "heads_per_kv": self.heads_per_kv,
            "softcap": self.softcap,
            "window": self.sliding_window,
            "page_size": self.keys.shape[2],
            "key_dim": key_dim,
            "value_dim": value_dim,
            "key_block": _round_up(key_dim),
            "value_block": _round_up(value_dim),
        }

    @property
    def block_slots(self) -> int:
        """Slots that a program looks at together: fewer where they take more of the memory next to the processor."""
        row_bytes = max(self.keys.shape[3], self.values.shape[3]) * self.keys.dtype.itemsize
        return 64 if row_bytes <= 256 else 32


class TritonAttentionStep:
    """Attention of one step over the pages of a KV cache, on the device."""

    def __init__(self, step: DeviceStep, kv_cache: KvCache) -> None:
        """Attend for the rows of `step`, which must be where the cache is."""
        self._step = step
        self._cache = kv_cache
        self._split_buffers: dict[tuple[int, ...], tuple[torch.Tensor, torch.Tensor]] = {}
        self._seen: dict[int | None, tuple[torch.Tensor, torch.Tensor]] = {}  # by sliding window, as `_see` returns it

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
        """Write the step's keys and values into their slots, then attend: `attention.AttentionStep.attend`."""
        keys, values = self._cache.keys[layer_index], self._cache.values[layer_index]
        self._write(_dense_rows(key), _dense_rows(value), keys, values)
        output = query.new_empty(query.shape[1], query.shape[0], value.shape[2])
        layer = _Layer(_dense_rows(query), keys, values, output, scaling, sliding_window, softcap)
        if self._step.decode is not None:
            self._decode(layer, self._step.decode)
        if self._step.prefill is not None:
            self._prefill(layer, self._step.prefill)
        if self._step.trees is not None:
            self._trees(layer, self._step.trees)
        return output

    def _write(self, key: torch.Tensor, value: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
        num_kv_heads, num_rows, key_dim = key.shape
        value_dim = value.shape[2]
        write_kernel[num_rows, num_kv_heads](
            key,
            value,
            keys,
            values,
            self._step.page_ids,
            self._step.offsets,
            key.stride(0),
            key.stride(1),
            value.stride(0),
            value.stride(1),
            num_kv_heads,
            page_size=keys.shape[2],
            key_dim=key_dim,
            value_dim=value_dim,
            key_block=_round_up(key_dim),
            value_block=_round_up(value_dim),
            num_warps=1,
        )

    def _decode(self, layer: _Layer, rows: DecodeRows) -> None:
        num_rows, num_heads, value_dim = len(rows.context_lens), layer.query.shape[0], layer.values.shape[3]
        num_splits = -(-rows.longest // SPLIT_LEN)
        is_split = num_splits > 1
        results, log_sums = layer.output, layer.output
        if is_split:
            results, log_sums = self._splits(num_rows, num_heads, num_splits, value_dim)
        decode_kernel[num_rows, layer.num_kv_heads, num_splits](
            layer.query,
            layer.keys,
            layer.values,
            rows.tables,
            rows.context_lens,
            results,
            log_sums,
            layer.query.stride(0),
            layer.query.stride(1),
            rows.tables.stride(0),
            layer.num_kv_heads,
            layer.scaling,
            num_splits,
            is_split=is_split,
            **layer.constants(),
            block_rows=_round_up(layer.heads_per_kv),
            block_slots=layer.block_slots,
            split_len=SPLIT_LEN,
            num_warps=4,
        )
        if is_split:
            combine_kernel[num_rows, num_heads](
                results,
                log_sums,
                rows.context_lens,
                layer.output,
                num_heads,
                num_splits,
                window=layer.sliding_window,
                value_dim=value_dim,
                value_block=_round_up(value_dim),
                block_splits=_BLOCK_SPLITS,
                split_len=SPLIT_LEN,
                num_warps=4,
            )

    def _prefill(self, layer: _Layer, rows: PrefillRows) -> None:
        block_rows = max(128 if layer.block_slots == 64 else 64, _round_up(layer.heads_per_kv))
        num_tiles = -(-rows.most_rows // (block_rows // layer.heads_per_kv))
        prefill_kernel[num_tiles, len(rows.segments), layer.num_kv_heads](
            layer.query,
            layer.keys,
            layer.values,
            rows.tables,
            rows.segments,
            layer.output,
            layer.query.stride(0),
            layer.query.stride(1),
            rows.tables.stride(0),
            layer.num_kv_heads,
            layer.scaling,
            **layer.constants(),
            block_rows=block_rows,
            block_slots=layer.block_slots,
            num_warps=8 if block_rows >= 128 else 4,
        )

    def _trees(self, layer: _Layer, trees: TreeRows) -> None:
        if layer.sliding_window not in self._seen:
            self._seen[layer.sliding_window] = _see(trees, layer.sliding_window)
        begins, visible = self._seen[layer.sliding_window]
        constants = layer.constants()
        del constants["window"]  # it is in what the rows see
        tree_kernel[len(trees.rows), layer.num_kv_heads](
            layer.query,
            layer.keys,
            layer.values,
            trees.tables,
            trees.rows,
            begins,
            visible,
            layer.output,
            layer.query.stride(0),
            layer.query.stride(1),
            trees.tables.stride(0),
            visible.stride(0),
            layer.num_kv_heads,
            layer.scaling,
            **constants,
            block_rows=_round_up(layer.heads_per_kv),
            block_slots=layer.block_slots,
            num_warps=4,
        )

    def _splits(self, *shape: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return float32[B, H, num_splits, value_dim] and float32[B, H, num_splits], the same for all layers."""
        if shape not in self._split_buffers:
            results = torch.empty(shape, dtype=torch.float32, device=self._step.token_ids.device)
            self._split_buffers[shape] = results, results.new_empty(shape[:3])
        return self._split_buffers[shape]


def _see(trees: TreeRows, window: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return from which slot on each row sees, int64[N], and what of the tail, uint8[N, longest tail].

    A window leaves the last of the slots that the row sees.
    """
    if window is None:
        return torch.zeros_like(trees.rows[:, 0]), trees.visible.to(torch.uint8)
    num_from_there = trees.visible.flip(1).cumsum(1).flip(1)
    num_left = (window - trees.visible.sum(1)).clamp(min=0)
    begins = (trees.rows[:, 2] - num_left).clamp(min=0)
    return begins, (trees.visible & (num_from_there <= window)).to(torch.uint8)


def _dense_rows(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor with its last dimension dense, copied if need be."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _round_up(number: int) -> int:
    """Return the size of the block that holds so many: a power of two."""
    return max(_MIN_TILE, int(triton.next_power_of_2(number)))
