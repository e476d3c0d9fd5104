"""Programs in Rust on the real model: they generate what the same programs in Python do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tartlet import sync
from tartlet.languages.rust import build_component
from tartlet.languages.rust_toolchain import INSTALL, find_toolchain

pytestmark = [
    pytest.mark.model,
    pytest.mark.runner,
    pytest.mark.slow,
    pytest.mark.skipif(find_toolchain() is None, reason=f"Rust for WebAssembly is not installed. {INSTALL}"),
]

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "languages" / "rust"
FORK_TREE = """
from tartlet_sdk import Model, Sampler, inferlet

@inferlet
async def main(branches: int, depth: int) -> list:
    root = Model.default().context()
    root.fill("Once upon a time")
    level = [root]
    for each in range(1, depth + 1):
        level = [context.fork() for context in level for _ in range(branches)]
        samplers = [Sampler.temperature(0.9, seed=1000 * each + k) for k in range(len(level))]
        for context, sampler in zip(level, samplers):
            await context.generate(sampler, max_tokens=6)
    return [context.tokens for context in level]
"""
PROGRAM = """
use inferlet::stop_condition::max_len;
use inferlet::*;

#[inferlet::main]
async fn main(_args: Args) -> Result<(Vec<u32>, u8)> {
    let model = get_auto_model();
    let mut context = model.create_context();
    context.fill_user("Name a tart.");
    let sampler = Sampler::top_p(0.8, 0.95).with_repetition_penalty(1.1);
    let named = context.generate(sampler, max_len(12)).draft().await?;
    context.fill_user("How many stars?");
    let stars = Constraint::json_schema(r#"{"enum": [1, 2, 3, 4, 5]}"#);
    let rated = context.generate(Sampler::temperature(1.0), StopCondition::default()).constraint(stars).draft().await?;
    Ok((named.tokens, rated.json()?))
}
"""
SAME_IN_PYTHON = """
from tartlet_sdk import Model, Sampler, inferlet

@inferlet
async def main() -> list:
    context = Model.default().context()
    context.user("Name a tart.")
    named = await context.generate(Sampler.top_p(0.8, 0.95, repetition_penalty=1.1), max_tokens=12)
    context.user("How many stars?")
    rated = await context.generate(Sampler.temperature(1.0), json_schema={"enum": [1, 2, 3, 4, 5]})
    return [named.tokens, rated.value]
"""


def test_a_tree_of_forks_has_the_same_tokens(real_host: sync.Host, tmp_path: Path) -> None:
    """Each sampled with a seed of its own."""
    build_component(EXAMPLES / "fork_tree", tmp_path / "tree.wasm")
    sizes = {"branches": 2, "depth": 2}
    ours = real_host.run(tmp_path / "tree.wasm", sizes)

    assert len(ours) == 4
    assert len({tuple(each) for each in ours}) > 1
    assert ours == real_host.run(FORK_TREE, sizes)


def test_what_the_run_draws_is_the_same(real_host: sync.Host, tmp_path: Path) -> None:
    """Penalties, top-p and a constraint, with the seed of the run."""
    (tmp_path / "program.rs").write_text(PROGRAM)
    build_component(tmp_path / "program.rs", tmp_path / "program.wasm")
    ours = real_host.run(tmp_path / "program.wasm", seed=7)

    assert len(ours[0]) > 2
    assert ours == real_host.run(SAME_IN_PYTHON, seed=7)
