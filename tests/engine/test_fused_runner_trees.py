"""Branches in the fused runner: a path of a tree gives the logits of the same tokens as a line."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig

from tartlet_engine.batch import PrefillSegment, StepBatch, TreeMask
from tartlet_engine.fused_runner import FusedRunner
from tartlet_engine.packed_model import pack_model
from tartlet_engine.packing import WeightFormat
from tartlet_engine.tiny import make_tiny_model

VARIANTS: dict[str, dict[str, Any]] = {
    "llama": {},
    "many-heads": {"num_heads": 32, "num_kv_heads": 2, "head_dim": 8},
    "windows": {"architecture": "mistral", "sliding_window": 19},
}
# Pages that two sequences use in turn, in no order.
TABLES = torch.tensor([[7, 2, 5, 0, 9], [1, 8, 3, 6, 4]])


@pytest.fixture(scope="module", params=VARIANTS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random model."""
    return make_tiny_model(tmp_path_factory.mktemp("trees"), **VARIANTS[request.param])


def make_runner(folder: Path, weight_format: WeightFormat, num_threads: int = 1) -> FusedRunner:
    return FusedRunner(pack_model(folder, AutoConfig.from_pretrained(folder), weight_format), 10, num_threads)


def compute(
    runner: FusedRunner,
    token_ids: list[int],
    start: int,
    table: torch.Tensor,
    tree: TreeMask | None = None,
    positions: list[int] | None = None,
) -> torch.Tensor:
    """Compute tokens behind `start` others, as one segment. Returns the logits of all of them."""
    slots = torch.arange(start, start + len(token_ids))
    return runner.forward(
        StepBatch(
            token_ids=torch.tensor(token_ids),
            positions=slots if positions is None else torch.tensor(positions),
            page_ids=table[slots // 16],
            offsets=slots % 16,
            logit_rows=torch.arange(len(token_ids)),
            decode_groups=(),
            prefill_segments=(PrefillSegment(0, len(token_ids), start, table, tree),),
        )
    ).clone()


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("weight_format", [WeightFormat.FLOAT32, WeightFormat.INT8], ids=lambda f: f.name)
def test_a_path_equals_the_line_of_its_tokens(folder: Path, weight_format: WeightFormat, num_threads: int) -> None:
    """Each node of random trees, computed whole or in two parts, has the logits of its path written out."""
    runner = make_runner(folder, weight_format, num_threads)
    rng = random.Random(1)
    tolerance = 2e-4 if weight_format is WeightFormat.FLOAT32 else 0.1
    for prompt_len, num_nodes, num_first in [(14, 21, 21), (32, 18, 7)]:
        prompt = [rng.randrange(400) for _ in range(prompt_len)]
        tokens = [rng.randrange(400) for _ in range(num_nodes)]
        parents = [rng.randrange(-1, max(node, 0)) if node else -1 for node in range(num_nodes)]
        paths: list[list[int]] = []
        for node, parent in enumerate(parents):
            paths.append([*(paths[parent] if parent >= 0 else []), node])
        visible = torch.tensor([[node in path for node in range(num_nodes)] for path in paths])
        compute(runner, prompt, 0, TABLES[0])
        rows = []
        for first, last in [(0, num_first), (num_first, num_nodes)]:
            if first == last:
                continue
            mask = TreeMask(prompt_len, visible[first:last, :last].contiguous())
            positions = [prompt_len + len(path) - 1 for path in paths[first:last]]
            rows.append(compute(runner, tokens[first:last], prompt_len + first, TABLES[0], mask, positions))
        logits = torch.cat(rows)
        for node, path in enumerate(paths):
            line = compute(runner, prompt + [tokens[each] for each in path], 0, TABLES[1])
            torch.testing.assert_close(logits[node], line[-1], atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("weight_format", [WeightFormat.FLOAT32, WeightFormat.INT4], ids=lambda f: f.name)
def test_a_tree_that_is_a_line_has_its_bits(folder: Path, weight_format: WeightFormat) -> None:
    """Visibility that says what goes without saying changes nothing."""
    runner = make_runner(folder, weight_format)
    tokens = [(7 * i + 3) % 400 for i in range(50)]
    plain = compute(runner, tokens, 0, TABLES[0])
    compute(runner, tokens[:30], 0, TABLES[1])
    tree = TreeMask(30, torch.ones(20, 20, dtype=torch.bool).tril())

    assert torch.equal(compute(runner, tokens[30:], 30, TABLES[1], tree), plain[30:])


def test_a_tree_of_another_shape_is_refused(folder: Path) -> None:
    """A mask that does not fit its segment is an error, and not read beyond its end."""
    runner = make_runner(folder, WeightFormat.FLOAT32)
    for first_slot, shape in [(0, (2, 3)), (0, (3, 4)), (1, (3, 3)), (-1, (3, 4))]:
        with pytest.raises(ValueError, match="does not fit a segment"):
            compute(runner, [1, 2, 3], 0, TABLES[0], TreeMask(first_slot, torch.ones(shape, dtype=torch.bool)))
