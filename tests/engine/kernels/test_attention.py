"""Attention over pages: equal to torch's for any heads, dimensions, windows and page boundaries."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tartlet_engine.huge_memory import huge_zeros
from tartlet_engine.kernel_structs import pointer
from tartlet_engine.kernels.build import Kernels

NUM_PAGES = 24


class Attention:
    """One layer's attention, with rotary positions, over pages that begin full of NaN."""

    def __init__(self, kernels: Kernels, is_float32: bool, heads: int, kv_heads: int, dim: int, window: int) -> None:
        self.kernels, self.heads, self.kv_heads, self.dim, self.window = kernels, heads, kv_heads, dim, window
        self.padded_dim = -(-dim // 16) * 16
        self.angles = torch.arange(512).unsqueeze(1) * torch.linspace(0.5, 0.01, dim // 2)
        self.tables = [self.angles.cos().contiguous(), self.angles.sin().contiguous()]
        self.is_float32 = is_float32
        element = torch.float32 if is_float32 else torch.bfloat16
        size = NUM_PAGES * kv_heads * 2 * 16 * self.padded_dim
        self.pool = huge_zeros(size * element.itemsize)
        self.pool.view(element).fill_(float("nan"))
        self.layers = kernels.ffi.new("tartlet_layer[1]")
        layer, model = self.layers[0], kernels.ffi.new("tartlet_model *")
        layer.qkv.num_outputs = (heads + 2 * kv_heads) * self.padded_dim
        layer.qkv.num_inputs = layer.down.num_inputs = 32
        layer.attention_output.num_inputs = -(-heads * self.padded_dim // 32) * 32
        layer.sliding_window = window
        model.format = kernels.lib.TARTLET_FLOAT32 if is_float32 else kernels.lib.TARTLET_BFLOAT16
        model.num_layers, model.num_heads, model.num_kv_heads, model.head_dim = 1, heads, kv_heads, dim
        model.num_pages, model.attention_scale = NUM_PAGES, dim**-0.5
        model.layers, model.kv_pool = self.layers, pointer(kernels, "void *", self.pool)
        model.cosines, model.sines = (pointer(kernels, "float *", table) for table in self.tables)
        self.model = model

    def run(self, qkv: torch.Tensor, segments: list[tuple[int, int, list[int]]]) -> torch.Tensor:
        """Attend: segments are (start, rows, page table). Returns float[T, H, D]."""
        ffi, lib = self.kernels.ffi, self.kernels.lib
        positions = torch.cat([torch.arange(start, start + rows) for start, rows, _ in segments])
        tables = [torch.tensor(table) for *_, table in segments]
        page_ids = torch.cat(
            [table[torch.arange(s, s + rows) // 16] for (s, rows, _), table in zip(segments, tables, strict=True)]
        )
        offsets = positions % 16
        entries, first_row = [], 0
        for (_, rows, _), table in zip(segments, tables, strict=True):
            entries.append((first_row, rows, pointer(self.kernels, "int64_t *", table)))
            first_row += rows
        kept = ffi.new("tartlet_segment[]", entries)
        step = ffi.new("tartlet_step *")
        step.num_rows, step.num_segments, step.segments = len(positions), len(segments), kept
        for name, tensor in (
            ("positions", positions),
            ("slots", positions),
            ("page_ids", page_ids),
            ("offsets", offsets),
        ):
            setattr(step, name, pointer(self.kernels, "int64_t *", tensor))
        context_len = int(positions.max()) + 1
        workspace = huge_zeros(lib.tartlet_workspace_bytes(self.model, len(positions), context_len, 1))
        attended = torch.empty(len(positions), self.layers[0].attention_output.num_inputs)
        lib.tartlet_attend_alone(
            self.model, step, pointer(self.kernels, "float *", qkv), pointer(self.kernels, "void *", workspace),
            len(positions), context_len, pointer(self.kernels, "float *", attended),
        )  # fmt: skip
        heads = attended[:, : self.heads * self.padded_dim].unflatten(1, (self.heads, -1))
        return heads[:, :, : self.dim]

    def random_qkv(self, rows: int, seed: int) -> torch.Tensor:
        """Queries, keys and values with zeros where heads are padded."""
        generator = torch.Generator().manual_seed(seed)
        values = torch.randn(rows, self.heads + 2 * self.kv_heads, self.dim, generator=generator)
        return F.pad(values, (0, self.padded_dim - self.dim)).flatten(1).contiguous()

    def expected(self, qkv: torch.Tensor) -> torch.Tensor:
        """What torch makes of one sequence's rows, all at once and without pages: float64[T, H, D]."""
        every = qkv.unflatten(1, (-1, self.padded_dim))[:, :, : self.dim].double().transpose(0, 1)
        query, key, value = every.split([self.heads, self.kv_heads, self.kv_heads])
        angles = self.angles[: len(qkv)].double().repeat(1, 2)

        def rotated(x: torch.Tensor) -> torch.Tensor:
            first, second = x.chunk(2, dim=-1)
            return x * angles.cos() + torch.cat([-second, first], dim=-1) * angles.sin()

        distance = torch.arange(len(qkv)).unsqueeze(1) - torch.arange(len(qkv))
        mask = (distance >= 0) & (distance < (self.window or len(qkv)))
        repeats = self.heads // self.kv_heads
        key, value = (x.repeat_interleave(repeats, dim=0) for x in (rotated(key), value))
        output = F.scaled_dot_product_attention(rotated(query), key, value, attn_mask=mask, scale=self.dim**-0.5)
        return output.transpose(0, 1)


CASES: list[dict[str, Any]] = [
    {"heads": 9, "kv_heads": 3, "dim": 64, "window": 0},
    {"heads": 4, "kv_heads": 4, "dim": 32, "window": 0},
    {"heads": 14, "kv_heads": 2, "dim": 64, "window": 0},
    {"heads": 8, "kv_heads": 2, "dim": 128, "window": 20},
    {"heads": 5, "kv_heads": 1, "dim": 80, "window": 1},
    {"heads": 32, "kv_heads": 2, "dim": 16, "window": 0},
    {"heads": 6, "kv_heads": 3, "dim": 100, "window": 33},
    {"heads": 2, "kv_heads": 1, "dim": 6, "window": 0},
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
@pytest.mark.parametrize("is_float32", [True, False], ids=["float32", "bfloat16"])
def test_attention_equals_torch(kernels: Kernels, is_float32: bool, case: dict[str, Any]) -> None:
    """Rows one by one, a few, and many, each continuing what is in the pages, at and around page boundaries."""
    attention = Attention(kernels, is_float32, **case)
    qkv = attention.random_qkv(83, seed=1)
    page_table = [11, 2, 7, 0, 23, 4]
    ends = [1, 2, 15, 16, 17, 18, 31, 32, 33, 64, 80, 83]
    outputs = [
        attention.run(qkv[start:end].contiguous(), [(start, end - start, page_table)])
        for start, end in zip([0, *ends], ends, strict=False)
    ]
    tolerance = 2e-5 if is_float32 else 0.04

    torch.testing.assert_close(torch.cat(outputs).double(), attention.expected(qkv), atol=tolerance, rtol=0)


@pytest.mark.parametrize("is_float32", [True, False], ids=["float32", "bfloat16"])
def test_a_row_has_the_same_bits_in_any_step(kernels: Kernels, is_float32: bool) -> None:
    """Whole, in chunks, token by token, and mixed with other sequences."""
    qkv_by_sequence = {}
    for num_heads in (9, 14):
        attention = Attention(kernels, is_float32, num_heads, num_heads // (3 if num_heads == 9 else 7), 64, 0)
        first, second = attention.random_qkv(50, seed=2), attention.random_qkv(29, seed=3)
        qkv_by_sequence[num_heads] = (first, second)
        whole = attention.run(first, [(0, 50, [3, 9, 1, 6])])
        by_token = [attention.run(first[i : i + 1], [(i, 1, [8, 10, 2, 4])]) for i in range(50)]
        mixed = [attention.run(torch.cat([second, first[:21]]), [(0, 29, [12, 13]), (0, 21, [14, 15, 16, 17])])[29:]]
        mixed.append(
            attention.run(torch.cat([first[21:], second[:1]]), [(21, 29, [14, 15, 16, 17]), (0, 1, [18])])[:29]
        )

        assert torch.equal(whole, torch.cat(by_token))
        assert torch.equal(whole, torch.cat(mixed))
