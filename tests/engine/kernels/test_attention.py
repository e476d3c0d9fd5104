"""Attention over pages: equal to torch's for any heads, dimensions, windows, page boundaries and trees."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tartlet_engine.huge_memory import huge_zeros
from tartlet_engine.kernel_structs import pointer
from tartlet_engine.kernels.build import Kernels

NUM_PAGES = 24


@dataclass(frozen=True)
class Tree:
    """What a segment's rows see from `first_slot` on, and where they stand."""

    first_slot: int
    visible: torch.Tensor  # bool[rows, tail]
    positions: torch.Tensor  # int64[rows]


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

    def run(
        self, qkv: torch.Tensor, segments: list[tuple[int, int, list[int]]], trees: dict[int, Tree] | None = None
    ) -> torch.Tensor:
        """Attend: segments are (start, rows, page table); some, by number, are trees. Returns float[T, H, D]."""
        ffi, lib = self.kernels.ffi, self.kernels.lib
        trees = trees or {}
        slots_of = [torch.arange(start, start + rows) for start, rows, _ in segments]
        slots = torch.cat(slots_of)
        positions = torch.cat([trees[i].positions if i in trees else each for i, each in enumerate(slots_of)])
        tables = [torch.tensor(table) for *_, table in segments]
        page_ids = torch.cat(
            [table[torch.arange(s, s + rows) // 16] for (s, rows, _), table in zip(segments, tables, strict=True)]
        )
        offsets = slots % 16
        entries: list[tuple[Any, ...]] = []
        first_row, most_tail = 0, 0
        for number, ((_, rows, _), table) in enumerate(zip(segments, tables, strict=True)):
            entry = (first_row, rows, pointer(self.kernels, "int64_t *", table))
            if (tree := trees.get(number)) is not None:
                num_tail = tree.visible.shape[1]
                entry = (*entry, pointer(self.kernels, "uint8_t *", tree.visible), tree.first_slot, num_tail)
                most_tail = max(most_tail, num_tail)
            entries.append(entry)
            first_row += rows
        kept = ffi.new("tartlet_segment[]", entries)
        step = ffi.new("tartlet_step *")
        step.num_rows, step.num_segments, step.segments = len(positions), len(segments), kept
        for name, tensor in (
            ("positions", positions),
            ("slots", slots),
            ("page_ids", page_ids),
            ("offsets", offsets),
        ):
            setattr(step, name, pointer(self.kernels, "int64_t *", tensor))
        context_len = int(slots.max()) + 1
        num_rows = max(len(slots), most_tail)
        workspace = huge_zeros(lib.tartlet_workspace_bytes(self.model, num_rows, context_len, 1))
        attended = torch.empty(len(positions), self.layers[0].attention_output.num_inputs)
        lib.tartlet_attend_alone(
            self.model, step, pointer(self.kernels, "float *", qkv), pointer(self.kernels, "void *", workspace),
            num_rows, context_len, pointer(self.kernels, "float *", attended),
        )  # fmt: skip
        heads = attended[:, : self.heads * self.padded_dim].unflatten(1, (self.heads, -1))
        return heads[:, :, : self.dim]

    def random_qkv(self, rows: int, seed: int) -> torch.Tensor:
        """Queries, keys and values with zeros where heads are padded."""
        generator = torch.Generator().manual_seed(seed)
        values = torch.randn(rows, self.heads + 2 * self.kv_heads, self.dim, generator=generator)
        return F.pad(values, (0, self.padded_dim - self.dim)).flatten(1).contiguous()

    def expected(
        self, qkv: torch.Tensor, mask: torch.Tensor | None = None, positions: torch.Tensor | None = None
    ) -> torch.Tensor:
        """What torch makes of one sequence's rows, all at once and without pages: float64[T, H, D]."""
        every = qkv.unflatten(1, (-1, self.padded_dim))[:, :, : self.dim].double().transpose(0, 1)
        query, key, value = every.split([self.heads, self.kv_heads, self.kv_heads])
        angles = self.angles[torch.arange(len(qkv)) if positions is None else positions].double().repeat(1, 2)

        def rotated(x: torch.Tensor) -> torch.Tensor:
            first, second = x.chunk(2, dim=-1)
            return x * angles.cos() + torch.cat([-second, first], dim=-1) * angles.sin()

        if mask is None:
            mask = torch.ones(len(qkv), len(qkv), dtype=torch.bool).tril()
        num_from_there = mask.flip(1).cumsum(1).flip(1)  # slots that the row sees there and after
        mask = mask & (num_from_there <= (self.window or len(qkv)))
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


def random_tree(prompt_len: int, num_nodes: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What each of a prompt's tokens and of a random tree's nodes after it sees, bool[T, T], and its position."""
    rng = random.Random(seed)
    size = prompt_len + num_nodes
    mask = torch.eye(size, dtype=torch.bool)
    positions = torch.arange(size)
    for row in range(1, size):
        parent = row - 1 if row < prompt_len else rng.choice([prompt_len - 1, rng.randrange(prompt_len - 1, row)])
        mask[row] |= mask[parent]
        positions[row] = positions[parent] + 1
    return mask, positions


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
@pytest.mark.parametrize("is_float32", [True, False], ids=["float32", "bfloat16"])
def test_trees_equal_torch(kernels: Kernels, is_float32: bool, case: dict[str, Any]) -> None:
    """Random trees, begun anywhere in a page, computed whole or in two chunks, beside rows without a tree."""
    attention = Attention(kernels, is_float32, **case)
    page_table = [11, 2, 7, 0, 23, 4]
    tolerance = 2e-5 if is_float32 else 0.04
    for seed, (prompt_len, num_nodes, num_first) in enumerate([(1, 9, 9), (16, 30, 1), (29, 50, 20), (47, 17, 5)]):
        size = prompt_len + num_nodes
        mask, positions = random_tree(prompt_len, num_nodes, seed)
        qkv, other = attention.random_qkv(size, seed), attention.random_qkv(21, 100 + seed)
        outputs = [attention.run(qkv[:prompt_len].contiguous(), [(0, prompt_len, page_table)])]
        for start, end in [(prompt_len, prompt_len + num_first), (prompt_len + num_first, size)]:
            if start == end:
                continue
            tree = Tree(prompt_len, mask[start:end, prompt_len:end].contiguous(), positions[start:end].contiguous())
            both = [(0, 21, [5, 9]), (start, end - start, page_table)]
            output = attention.run(torch.cat([other, qkv[start:end]]), both, {1: tree})
            assert torch.equal(output[:21], attention.run(other, [(0, 21, [5, 9])]))
            outputs.append(output[21:])

        expected = attention.expected(qkv, mask, positions)
        torch.testing.assert_close(torch.cat(outputs).double(), expected, atol=tolerance, rtol=0)


@pytest.mark.parametrize("window", [0, 1, 20])
@pytest.mark.parametrize("is_float32", [True, False], ids=["float32", "bfloat16"])
def test_a_tree_that_is_a_line_has_the_same_bits(kernels: Kernels, is_float32: bool, window: int) -> None:
    """Rows that see all that comes before them are the rows of a plain segment, wherever the tail begins."""
    attention = Attention(kernels, is_float32, 9, 3, 64, window)
    qkv = attention.random_qkv(70, seed=4)
    plain = attention.run(qkv, [(0, 70, [3, 9, 1, 6, 2])])
    for first_slot, start in [(30, 30), (32, 32), (47, 60), (0, 0), (0, 69)]:
        visible = torch.ones(70, 70, dtype=torch.bool).tril()[start:, first_slot:].contiguous()
        tree = Tree(first_slot, visible, torch.arange(start, 70))
        rows = attention.run(qkv[start:].contiguous(), [(start, 70 - start, [3, 9, 1, 6, 2])], {0: tree})

        assert torch.equal(rows, plain[start:])


@pytest.mark.parametrize("is_float32", [True, False], ids=["float32", "bfloat16"])
def test_what_a_tree_hides_may_be_no_number(kernels: Kernels, is_float32: bool) -> None:
    """Keys and values of NaN in hidden slots, of this step and of an earlier one, change no bit of the other rows."""
    attention = Attention(kernels, is_float32, 14, 2, 80, 0)
    prompt_len, size = 21, 60
    mask, positions = random_tree(prompt_len, size - prompt_len, seed=5)
    qkv = attention.random_qkv(size, seed=6)
    table = [3, 9, 1, 6]

    def outputs(rows: torch.Tensor) -> torch.Tensor:
        attention.run(rows[:prompt_len].contiguous(), [(0, prompt_len, table)])
        parts = []
        for start, end in [(prompt_len, 40), (40, size)]:
            tree = Tree(prompt_len, mask[start:end, prompt_len:end].contiguous(), positions[start:end].contiguous())
            parts.append(attention.run(rows[start:end].contiguous(), [(start, end - start, table)], {0: tree}))
        return torch.cat(parts)

    clean = outputs(qkv)
    for spoilt in (prompt_len, 30, 45, size - 1):
        qkv_spoilt = qkv.clone()
        qkv_spoilt[spoilt] = float("nan")
        rows = outputs(qkv_spoilt)
        sees = mask[prompt_len:, spoilt]

        assert torch.equal(rows[~sees], clean[~sees])
        assert bool(rows[sees].isnan().flatten(1).any(1).all())
