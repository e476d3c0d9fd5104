"""Structs for the kernels: addresses of tensors, and sizes as the kernels read them."""

from __future__ import annotations

import pytest
import torch

from tartlet_engine.kernel_structs import fill_matrix, pointer
from tartlet_engine.kernels.build import Kernels, KernelsUnavailableError, load_kernels
from tartlet_engine.llama_weights import Linear
from tartlet_engine.packing import WeightFormat, pack


@pytest.fixture
def kernels() -> Kernels:
    """The kernels for the best instruction set."""
    try:
        return load_kernels()
    except KernelsUnavailableError as error:
        pytest.skip(str(error))


def test_pointers_are_addresses(kernels: Kernels) -> None:
    """Of the first element, or NULL for nothing."""
    tensor = torch.tensor([1.5, 2.5])

    assert pointer(kernels, "float *", tensor)[1] == 2.5
    assert pointer(kernels, "float *", None) == kernels.ffi.NULL


def test_only_contiguous_tensors_have_one(kernels: Kernels) -> None:
    """The kernels know no strides."""
    with pytest.raises(AssertionError):
        pointer(kernels, "float *", torch.zeros(4, 4).T)


def test_a_matrix_has_its_padded_sizes(kernels: Kernels) -> None:
    """And the address of its panels."""
    linear = Linear(pack(torch.ones(33, 65), WeightFormat.FLOAT32), None)
    matrix = kernels.ffi.new("tartlet_matrix *")
    fill_matrix(kernels, matrix, linear)

    assert (matrix.num_outputs, matrix.num_inputs) == (64, 96)
    assert kernels.ffi.cast("float *", matrix.panels)[0] == 1.0
    assert matrix.bias == kernels.ffi.NULL
