"""Adapters on a transformers model's modules: added to their own rows, while they are on, and to nothing else."""

from __future__ import annotations

import pytest
import torch

from tartlet_engine.adapter_file import Adapter, LoraMatrices
from tartlet_engine.batch import AdapterSpan
from tartlet_engine.module_adapters import ModuleAdapters


@pytest.fixture
def model() -> torch.nn.Sequential:
    """Two linear modules, "0" and "1"."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Linear(5, 4)).requires_grad_(False)


def make_adapter(name: str, seed: int) -> Adapter:
    """One for the module "1", of rank 2."""
    generator = torch.Generator().manual_seed(seed)
    down, up = torch.randn(2, 5, generator=generator), torch.randn(4, 2, generator=generator)
    return Adapter(name, "", {"1": LoraMatrices(down, up)})


def test_rows_get_what_their_adapter_adds(model: torch.nn.Sequential) -> None:
    """Two adapters and none in one call; the rows of none keep their bits, and afterwards all do."""
    adapters = ModuleAdapters(model)
    inputs = torch.randn(1, 7, 6)
    plain = model(inputs)
    red, blue = make_adapter("red", 1), make_adapter("blue", 2)
    num_bytes = [adapters.add(red), adapters.add(blue)]
    with adapters.on([AdapterSpan("red", 1, 2), AdapterSpan("blue", 4, 1), AdapterSpan("red", 5, 1)]):
        adapted = model(inputs)

    hidden = model[0](inputs)[0]
    expected = plain.clone()
    for adapter, rows in ((red, [1, 2, 5]), (blue, [4])):
        matrices = adapter.modules["1"]
        expected[0, rows] += hidden[rows] @ matrices.down.T @ matrices.up.T
    torch.testing.assert_close(adapted, expected)
    assert torch.equal(adapted[0, [0, 3, 6]], plain[0, [0, 3, 6]])
    assert torch.equal(model(inputs), plain)
    assert num_bytes == [4 * (2 * 5 + 4 * 2)] * 2


def test_weights_have_the_models_dtype(model: torch.nn.Sequential) -> None:
    """In bfloat16 they take half the bytes."""
    adapters = ModuleAdapters(model.bfloat16())

    assert adapters.add(make_adapter("red", 1)) == 2 * (2 * 5 + 4 * 2)
    with adapters.on([AdapterSpan("red", 0, 3)]):
        assert model(torch.ones(1, 3, 6, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_a_failing_step_turns_them_off(model: torch.nn.Sequential) -> None:
    """The next step, without adapters, is not adapted."""
    adapters = ModuleAdapters(model)
    adapters.add(make_adapter("red", 1))
    inputs = torch.randn(1, 3, 6)
    plain = model(inputs)
    with pytest.raises(RuntimeError), adapters.on([AdapterSpan("red", 0, 3)]):
        model(torch.randn(1, 3, 7))

    assert torch.equal(model(inputs), plain)
