"""LoRA adapters in the engine, all the way: the merged model's tokens and logits, whoever else is in the batch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from tartlet_engine.api import ErrorCode
from tartlet_engine.tiny import make_tiny_adapter, make_tiny_model
from tartlet_engine.weights import ModelLoadError

# A name, and what is special about each: all modules; a few; a scale by the root of the rank, and a rank above a panel.
ADAPTERS: dict[str | None, dict[str, Any]] = {
    "all": {"seed": 1},
    "few": {"seed": 2, "rank": 3, "target_modules": ["v_proj", "up_proj"]},
    "rslora": {"seed": 3, "rank": 40, "use_rslora": True, "lora_alpha": 9},
}
RUNNERS = ["fused", "transformers"]
NAMES = [None, *ADAPTERS]


@pytest.fixture(scope="module")
def folders(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of the adapters, by name."""
    home = tmp_path_factory.mktemp("adapters")
    return {name: make_tiny_adapter(home / name, tiny_folder, **ADAPTERS[name]) for name in ADAPTERS if name}


@pytest.fixture(scope="module")
def merged(tiny_folder: Path, folders: dict[str, Path]) -> dict[str | None, Any]:
    """transformers' model with each adapter merged into its weights; under None, as it is."""
    models: dict[str | None, Any] = {None: AutoModelForCausalLM.from_pretrained(tiny_folder, dtype=torch.float32)}
    models |= {name: merge(tiny_folder, folder) for name, folder in folders.items()}
    return models


def merge(model_folder: Path, adapter_folder: Path) -> Any:
    """Add `scale * B @ A` to the weights, in float64."""
    model = AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32)
    config = json.loads((adapter_folder / "adapter_config.json").read_text())
    scale = config["lora_alpha"] / config["r"] ** (0.5 if config["use_rslora"] else 1)
    tensors = load_file(adapter_folder / "adapter_model.safetensors")
    with torch.no_grad():
        for name in tensors:
            if name.endswith("lora_A.weight"):
                module = model.get_submodule(name.removeprefix("base_model.model.").removesuffix(".lora_A.weight"))
                up = tensors[name.replace("lora_A", "lora_B")].double()
                delta = scale * up @ tensors[name].double()
                module.weight += delta if isinstance(module, torch.nn.Linear) else delta.T
    return model.eval()


def greedy(model: Any, token_ids: Sequence[int], count: int) -> list[int]:
    prompt = torch.tensor([list(token_ids)])
    output = model.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=count, do_sample=False, eos_token_id=None
    )
    continuation: list[int] = output[0, prompt.shape[1] :].tolist()
    return continuation


def prompt(length: int, seed: int = 0) -> list[int]:
    return torch.randint(3, 300, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def given_adapters(folders: dict[str, Path]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(folder)) for name, folder in folders.items())


@pytest.mark.parametrize("runner", RUNNERS)
def test_mixed_batches_equal_the_merged_models(
    tiny_engine: Any, folders: dict[str, Path], merged: dict[str | None, Any], runner: str
) -> None:
    """Three adapters and none, twice each, with prompts in chunks, in one batch: everybody's own tokens."""
    driver = tiny_engine(adapters=given_adapters(folders), runner=runner, max_batch_tokens=24)
    run = driver.open_run()
    assert driver.info.adapters == tuple(folders)
    prompts = {(name, length): prompt(length, seed=length) for name in NAMES for length in (37, 9)}
    generations = {
        key: driver.generate(driver.create(run, token_ids, key[0]), max_tokens=12) for key, token_ids in prompts.items()
    }
    driver.settle()

    for key, generation in generations.items():
        assert driver.tokens(generation) == greedy(merged[key[0]], prompts[key], 12), key


@pytest.mark.parametrize("runner", RUNNERS)
def test_logits_equal_the_merged_models(
    tiny_engine: Any, folders: dict[str, Path], merged: dict[str | None, Any], runner: str
) -> None:
    """To 1e-4 in float32, at prompts of one token and of several pages, all in one batch."""
    driver = tiny_engine(adapters=given_adapters(folders), runner=runner, max_batch_tokens=50)
    run = driver.open_run()
    cases = [(name, length) for length in (1, 16, 45) for name in NAMES]
    contexts = [driver.create(run, prompt(length), name) for name, length in cases]
    for context in contexts:
        driver.flush(context)
    driver.settle()

    for (name, length), context in zip(cases, contexts, strict=True):
        with torch.inference_mode():
            expected = merged[name](torch.tensor([prompt(length)])).logits[0, -1]
        torch.testing.assert_close(driver.logits(context), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("quantize", ["none", "int8", "int4"])
def test_rows_without_an_adapter_have_the_bits_of_a_model_without(
    tiny_engine: Any, folders: dict[str, Path], quantize: str
) -> None:
    """And rows with one have their bits alone, in every format of the weights, in whatever company."""
    given_all = {"runner": "fused", "dtype": "auto", "quantize": quantize, "adapters": given_adapters(folders)}
    plain = tiny_engine(**given_all | {"adapters": ()})
    alone = {name: logits_after(tiny_engine(**given_all), [(name, prompt(41))])[0] for name in NAMES}
    mixed = tiny_engine(**given_all, max_batch_tokens=20, threads=2)
    together = logits_after(mixed, [(name, prompt(length)) for length in (41, 8) for name in NAMES])

    assert torch.equal(logits_after(plain, [(None, prompt(41))])[0], alone[None])
    for name, row in zip(NAMES, together, strict=False):
        assert torch.equal(alone[name], row), name
    assert len({tuple(row.tolist()) for row in alone.values()}) == len(NAMES)


def logits_after(driver: Any, prompts: Sequence[tuple[str | None, list[int]]]) -> list[torch.Tensor]:
    """The logits after each prompt, computed together."""
    run = driver.open_run()
    contexts = [driver.create(run, token_ids, name) for name, token_ids in prompts]
    for context in contexts:
        driver.flush(context)
    driver.settle()
    return [driver.logits(context) for context in contexts]


@pytest.mark.parametrize("runner", RUNNERS)
def test_forks_and_found_pages_keep_the_adapter(
    tiny_engine: Any, folders: dict[str, Path], merged: dict[str | None, Any], runner: str
) -> None:
    """A fork goes on as its parent would; a second context finds the first one's pages, if its adapter is the same."""
    driver = tiny_engine(adapters=given_adapters(folders), runner=runner)
    run = driver.open_run()
    token_ids = prompt(40)
    for number, name in enumerate(NAMES):
        assert driver.core.stats().found_tokens == 32 * number
        first = driver.generate(driver.fork(driver.create(run, token_ids, name), 35), max_tokens=5)
        driver.settle()
        again = driver.generate(driver.create(run, token_ids, name), max_tokens=5)
        driver.settle()

        assert driver.tokens(first) == greedy(merged[name], token_ids[:35], 5)
        assert driver.tokens(again) == greedy(merged[name], token_ids, 5)
    assert driver.core.stats().found_tokens == 32 * len(NAMES)


@pytest.mark.parametrize("runner", RUNNERS)
def test_saved_contexts_keep_the_adapter(
    tiny_engine: Any, folders: dict[str, Path], merged: dict[str | None, Any], tmp_path: Path, runner: str
) -> None:
    """A restarted engine goes on with it; without it, or with other weights under its name, it is not opened."""
    settings = {"runner": runner, "saved_path": str(tmp_path)}
    driver = tiny_engine(adapters=given_adapters(folders), **settings)
    driver.save(driver.create(driver.open_run(), prompt(20), "all"))
    driver.settle()
    driver.core.close()
    other = (("all", str(folders["few"])),)
    for adapters, problem in ((given_adapters(folders), None), ((), "has not been given"), (other, "are others now")):
        again = tiny_engine(adapters=adapters, **settings)
        operation, context = again.open_saved(again.open_run())
        again.settle()
        if problem is None:
            generation = again.generate(context, max_tokens=6)
            again.settle()
            assert again.tokens(generation) == greedy(merged["all"], prompt(20), 6)
        else:
            assert again.failure(operation).code == ErrorCode.UNSUPPORTED
            assert problem in again.failure(operation).message
            assert again.core.stats().contexts == 0


def test_other_architectures(tiny_engine: Any, tmp_path: Path) -> None:
    """GPT-2, whose linear modules are written another way, with one matrix for queries, keys and values."""
    model = make_tiny_model(tmp_path / "model", architecture="gpt2")
    adapter = make_tiny_adapter(tmp_path / "adapter", model, target_modules=["c_attn", "c_fc", "c_proj"])
    driver = tiny_engine(model, adapters=(("all", str(adapter)),))
    run = driver.open_run()
    generations = [driver.generate(driver.create(run, prompt(20), name), max_tokens=8) for name in ("all", None)]
    driver.settle()
    plain = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)

    assert driver.tokens(generations[0]) == greedy(merge(model, adapter), prompt(20), 8)
    assert driver.tokens(generations[1]) == greedy(plain, prompt(20), 8)


def test_models_whose_sizes_are_padded(tiny_engine: Any, tmp_path: Path) -> None:
    """Heads, ranks and the MLP, in the fused runner."""
    sizes = {"hidden_size": 60, "num_heads": 6, "num_kv_heads": 1, "head_dim": 18, "intermediate_size": 77}
    model = make_tiny_model(tmp_path / "model", attention_bias=True, mlp_bias=True, **sizes)
    adapter = make_tiny_adapter(tmp_path / "adapter", model, rank=5)
    driver = tiny_engine(model, adapters=(("all", str(adapter)),), runner="fused")
    generation = driver.generate(driver.create(driver.open_run(), prompt(20), "all"), max_tokens=8)
    driver.settle()

    assert driver.tokens(generation) == greedy(merge(model, adapter), prompt(20), 8)


@pytest.mark.parametrize("runner", RUNNERS)
def test_what_does_not_fit_is_refused(tiny_engine: Any, folders: dict[str, Path], tmp_path: Path, runner: str) -> None:
    """Modules that the model has not, other sizes, two of one name, too many bytes: by name, at the start."""
    other_model = make_tiny_model(tmp_path / "other", hidden_size=32)
    size = make_tiny_adapter(tmp_path / "size", other_model)
    head = make_tiny_adapter(tmp_path / "head", other_model, target_modules=["lm_head"])
    everything = str(folders["all"])
    cases: list[tuple[dict[str, Any], str]] = [
        ({"adapters": (("size", str(size)),)}, r"'size'.*down_proj is 64x128 in this model, and 32x64 in the adapter"),
        ({"adapters": (("head", str(head)),)}, "'head'.*adapts lm_head.*down_proj, gate_proj"),
        ({"adapters": (("all", everything), ("all", everything))}, "'all'.*another one of this name"),
        ({"adapters": (("all", everything),), "adapter_bytes": 20_000}, "'all'.*more than the 20,000 bytes"),
        (
            {"adapters": given_adapters(folders), "adapter_bytes": 150_000},
            "bytes; 150,000 are allowed|more than the .* bytes left",
        ),
        ({"adapters": (("a b", everything),)}, "cannot be named 'a b'"),
    ]
    for settings_, message in cases:
        with pytest.raises(ModelLoadError, match=message):
            tiny_engine(runner=runner, **settings_)


def test_unknown_adapters_are_not_found(tiny_engine: Any, folders: dict[str, Path]) -> None:
    """The error names those that there are."""
    with_some, without = tiny_engine(adapters=given_adapters(folders)), tiny_engine()
    for driver, hint in ((with_some, "There are: all, few, rslora."), (without, "It was started without adapters.")):
        error = driver.failure(driver.create(driver.open_run(), adapter="nope"))

        assert (error.code, error.hint) == (ErrorCode.NOT_FOUND, hint)
        assert "'nope'" in error.message


def test_published_prefixes_have_an_adapter(hash_engine: Any, hash_text: Any) -> None:
    """Contexts with the same one find them, others do not."""
    driver = hash_engine()
    driver.publish(range(20, 42), "red")
    driver.settle()
    cached = {}
    for name in (None, "red", "blue"):
        run = driver.open_run(tenant=name or "none")
        generation = driver.generate(driver.create(run, range(20, 42), name), max_tokens=3)
        driver.settle()
        cached[name] = driver.finished(generation).usage.cached_tokens
        assert driver.tokens(generation) == hash_text(range(20, 42), 3, name)

    assert cached == {None: 0, "red": 20, "blue": 0}
    assert driver.failure(driver.publish(range(20, 42), "nope")).code == ErrorCode.NOT_FOUND


@given(data=st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_schedules(hash_engine: Any, hash_text: Any, data: st.DataObject) -> None:
    """Whatever is shared, forked, swapped and preempted: no row sees a page of another adapter, and books balance."""
    driver = hash_engine(num_pages=24, max_batch_tokens=16, swap_pages=8)
    run = driver.open_run()
    running: dict[int, tuple[str | None, list[int]]] = {}
    for _ in range(data.draw(st.integers(2, 8), label="actions")):
        name = data.draw(st.sampled_from([None, "red", "blue"]), label="adapter")
        token_ids = list(range(20, 20 + data.draw(st.integers(1, 40), label="length")))
        context = driver.create(run, token_ids, name)
        if data.draw(st.booleans(), label="fork"):
            token_ids = token_ids[: data.draw(st.integers(1, len(token_ids)), label="fork length")]
            parent, context = context, driver.fork(context, len(token_ids))
            driver.free(parent)
        generation = driver.generate(context, max_tokens=data.draw(st.integers(1, 9), label="tokens"))
        running[generation] = (name, token_ids)
        driver.step(data.draw(st.integers(0, 4), label="steps"))
        driver.core.check_integrity()
    driver.settle()

    for generation, (name, token_ids) in running.items():
        assert driver.finished(generation)
        assert driver.tokens(generation) == hash_text(token_ids, len(driver.tokens(generation)), name)
    driver.close_run(run)
    assert driver.num_held == 0
