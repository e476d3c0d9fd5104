"""The runner for GPUs: greedy tokens equal transformers', step by step and by graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton")

from tartlet_engine.api import Speculation
from tartlet_engine.tiny import make_tiny_adapter, make_tiny_model

ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama-one-kv-head": {"num_kv_heads": 1},
    "mistral": {"sliding_window": 9},
    "gemma2": {"sliding_window": 7, "attn_logit_softcapping": 5.0, "query_pre_attn_scalar": 16},
    "gpt2": {},
}


@pytest.mark.parametrize(("name", "has_graphs"), [("llama", False), *[(name, True) for name in ARCHITECTURES]])
def test_architectures_give_transformers_tokens(
    name: str,
    has_graphs: bool,
    cuda_engine: Callable[..., Any],
    graph_backend: Any,
    reference: Callable[..., list[int]],
    tmp_path: Path,
) -> None:
    """Greedy tokens equal transformers', with prompts in chunks beside decodes, and sequences that begin and end."""
    architecture = name.split("-")[0]
    folder = make_tiny_model(tmp_path / name, architecture=architecture, context_len=128, **ARCHITECTURES[name])
    driver = cuda_engine(folder, graph_backend=graph_backend if has_graphs else None, max_batch_tokens=13, page_size=4)
    run_id = driver.open_run()
    prompts = [[5 + (7 * i + k) % 400 for i in range(length)] for k, length in enumerate((1, 12, 30))]
    lengths = (12, 5, 9)
    generations = [
        driver.generate(driver.create(run_id, prompt), max_tokens=length)
        for prompt, length in zip(prompts, lengths, strict=True)
    ]
    driver.settle()

    for prompt, length, generation in zip(prompts, lengths, generations, strict=True):
        assert driver.tokens(generation) == reference(prompt, length, folder)
    runner = driver.core._stepper._runner
    assert driver.num_ahead > 5
    assert runner.graphs is None or runner.graphs.num_graphs > 1


def test_drafts_are_checked_beside_decodes(
    cuda_engine: Callable[..., Any], graph_backend: Any, reference: Callable[..., list[int]]
) -> None:
    """A generation with guesses, right and wrong ones, and one without get transformers' tokens."""
    driver = cuda_engine(graph_backend=graph_backend, page_size=4)
    run_id = driver.open_run()
    prompt, other = list(range(20, 31)), list(range(50, 57))
    text = reference(prompt, 16)
    guess = [7 if i == 9 else token_id for i, token_id in enumerate(text)]
    drafted = driver.generate(
        driver.create(run_id, prompt), max_tokens=16, speculation=Speculation(expected_token_ids=tuple(guess))
    )
    plain = driver.generate(driver.create(run_id, other), max_tokens=16)
    driver.settle()

    assert driver.tokens(drafted) == text
    assert driver.tokens(plain) == reference(other, 16)
    assert 5 < driver.finished(drafted).usage.accepted_tokens < driver.finished(drafted).usage.draft_tokens


def test_pages_are_copied_before_they_are_written(
    cuda_engine: Callable[..., Any], graph_backend: Any, reference: Callable[..., list[int]]
) -> None:
    """Forks that share a half filled page go on by graphs, each in a copy of its own."""
    driver = cuda_engine(graph_backend=graph_backend, page_size=4)
    prompt = list(range(20, 30))
    parent = driver.create(driver.open_run(), prompt)
    forks = [driver.fork(parent, len(prompt)) for _ in range(3)]
    driver.settle()
    for number, fork in enumerate(forks):
        driver.append(fork, [100 + number])
    generations = [driver.generate(fork, max_tokens=4) for fork in forks]
    driver.settle()

    for number, generation in enumerate(generations):
        assert driver.tokens(generation) == reference([*prompt, 100 + number], 4)


def test_evicted_tokens_are_not_seen(cuda_engine: Callable[..., Any], tiny_engine: Callable[..., Any]) -> None:
    """Where tokens were evicted, positions and slots part: the tokens that follow are those of attention in torch."""
    told = []
    for driver in (cuda_engine(page_size=4), tiny_engine(page_size=4, runner="transformers")):
        context = driver.create(driver.open_run(), list(range(40, 61)))
        driver.flush(context)
        driver.settle()
        driver.evict(context, 2, 9)
        driver.settle()
        driver.append(context, [7, 8, 9])
        generation = driver.generate(context, max_tokens=6)
        driver.settle()
        assert driver.failures == []
        told.append(driver.tokens(generation))

    assert len(told[0]) == 6
    assert told[0] == told[1]


def test_sampling_on_the_device_in_the_engine(
    cuda_engine: Callable[..., Any], tiny_engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sampled, penalised and greedy generations beside each other get what the same seeds give on the CPU."""
    from tartlet_engine import step
    from tartlet_engine.cuda.device_sampler import launch_sampling

    samplings: list[dict[str, Any]] = [
        {"temperature": 0.9, "top_p": 0.9, "seed": 3},
        {"temperature": 1.5, "top_k": 20, "repetition_penalty": 1.3, "seed": 4},
        {},
    ]
    told = []
    for driver in (cuda_engine(), tiny_engine(runner="transformers")):
        if not told:
            monkeypatch.setattr(step, "launch_sampling", launch_sampling)
        run_id = driver.open_run()
        generations = [driver.generate(driver.create(run_id, [9, 8, 7]), max_tokens=5, **s) for s in samplings]
        driver.settle()
        told.append([driver.tokens(generation) for generation in generations])
        monkeypatch.undo()

    assert told[0] == told[1]


def test_adapters_beside_graphs(
    cuda_engine: Callable[..., Any],
    tiny_engine: Callable[..., Any],
    graph_backend: Any,
    tiny_folder: Path,
    tmp_path: Path,
) -> None:
    """Steps in which some row has an adapter are no graphs, others are; everybody has the reference's tokens."""
    adapters = tuple(
        (f"a{seed}", str(make_tiny_adapter(tmp_path / f"a{seed}", tiny_folder, seed=seed))) for seed in (1, 2)
    )
    prompt = list(range(20, 30))
    tokens = []
    num_graphs = 0
    for engine, settings in (
        (cuda_engine, {"graph_backend": graph_backend}),
        (tiny_engine, {"runner": "transformers"}),
    ):
        driver = engine(adapters=adapters, **settings)
        run_id = driver.open_run()
        plain = driver.generate(driver.create(run_id, prompt), max_tokens=9)
        adapted = [driver.generate(driver.create(run_id, prompt, name), max_tokens=4) for name, _ in adapters]
        driver.settle()
        tokens.append([driver.tokens(generation) for generation in (plain, *adapted)])
        num_graphs += driver.core._stepper._runner.graphs.num_graphs if engine is cuda_engine else 0

    assert tokens[0] == tokens[1]
    assert len({tuple(each[:4]) for each in tokens[0]}) == 3
    assert num_graphs > 0
