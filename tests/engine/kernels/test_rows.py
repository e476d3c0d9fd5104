"""Kernels on single rows: embeddings out of packed matrices, norms, exponentials."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tartlet_engine.kernel_structs import fill_matrix, pointer
from tartlet_engine.kernels.build import Kernels
from tartlet_engine.llama_weights import Linear
from tartlet_engine.packing import WeightFormat, pack, rounded


@pytest.mark.parametrize("weight_format", list(WeightFormat), ids=lambda each: each.name)
def test_embeddings_are_the_rounded_weights(kernels: Kernels, weight_format: WeightFormat) -> None:
    """Bit for bit, for every token."""
    weights = torch.randn(70, 100, generator=torch.Generator().manual_seed(0))
    linear = Linear(pack(weights, weight_format), None)
    matrix = kernels.ffi.new("tartlet_matrix *")
    fill_matrix(kernels, matrix, linear)
    row = torch.empty(128)
    expected = rounded(weights, weight_format)
    for token_id in range(70):
        kernels.lib.tartlet_embed(matrix, token_id, pointer(kernels, "float *", row))

        assert torch.equal(expected[token_id], row[:100])


@pytest.mark.parametrize("size", [16, 64, 77, 576])
def test_norms_equal_torch(kernels: Kernels, size: int) -> None:
    """In float32 to the last bits, in the other formats to the elements' precision."""
    row, weight = torch.randn(2, size, generator=torch.Generator().manual_seed(size)) * 3
    padding = (0, -size % 32)
    padded_row, padded_weight = F.pad(row, padding), F.pad(weight, padding)
    expected = F.pad(F.rms_norm(row, (size,), weight, 1e-5), padding)
    for weight_format in (WeightFormat.FLOAT32, WeightFormat.BFLOAT16):
        is_float = kernels.lib.tartlet_element_bytes(weight_format) == 4
        elements = torch.empty(len(padded_row), dtype=torch.float32 if is_float else torch.bfloat16)
        kernels.lib.tartlet_normalize(
            weight_format, pointer(kernels, "float *", padded_row), pointer(kernels, "float *", padded_weight),
            size, len(padded_row), 1e-5, pointer(kernels, "void *", elements),
        )  # fmt: skip

        torch.testing.assert_close(elements.float(), expected, atol=1e-6, rtol=1e-5 if is_float else 2**-8)


def exponentials(kernels: Kernels, values: torch.Tensor) -> torch.Tensor:
    results = torch.empty_like(values)
    address = [pointer(kernels, "float *", tensor) for tensor in (values, results)]
    kernels.lib.tartlet_exponentials(address[0], len(values), address[1])
    return results


def test_exponentials_equal_torch(kernels: Kernels) -> None:
    """To within a few units in the last place, and bounded beyond what a float can hold."""
    values = torch.linspace(-87, 88, 16 * 4096)
    torch.testing.assert_close(exponentials(kernels, values).double(), values.double().exp(), rtol=4e-7, atol=0)
    extremes = exponentials(kernels, torch.tensor([-1e30, -float("inf"), 0.0, 1e30] * 4))

    assert extremes[2] == 1.0
    assert extremes.isfinite().all()


def test_no_number_stays_none(kernels: Kernels) -> None:
    """A broken activation is not hidden by the exponential's bounds."""
    assert exponentials(kernels, torch.full((16,), float("nan"))).isnan().all()
