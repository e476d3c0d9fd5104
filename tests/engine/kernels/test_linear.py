"""Matrix products in every format: equal to torch's on the rounded weights, and the same bits in any batch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tartlet_engine.kernel_structs import fill_matrix, pointer
from tartlet_engine.kernels.build import Kernels
from tartlet_engine.llama_weights import Linear
from tartlet_engine.packing import WeightFormat, pack, round_up, rounded

SHAPES = [(32, 32), (96, 576), (50, 77), (1, 33), (160, 1536)]
ROWS = [1, 2, 3, 4, 5, 7, 8, 12, 13, 25, 40, 129]


class Product:
    """A random matrix with a bias, and its product with rows of inputs."""

    def __init__(self, kernels: Kernels, weight_format: WeightFormat, num_outputs: int, num_inputs: int) -> None:
        generator = torch.Generator().manual_seed(num_outputs * num_inputs)
        self.weights = torch.randn(num_outputs, num_inputs, generator=generator)
        matrix = pack(self.weights, weight_format)
        bias = F.pad(torch.randn(num_outputs, generator=generator), (0, matrix.num_outputs - num_outputs))
        self.linear = Linear(matrix, bias)
        self.kernels, self.format = kernels, weight_format
        self.matrix = kernels.ffi.new("tartlet_matrix *")
        fill_matrix(kernels, self.matrix, self.linear)

    def inputs(self, num_rows: int) -> torch.Tensor:
        """Random rows, padded."""
        generator = torch.Generator().manual_seed(num_rows)
        rows = torch.randn(num_rows, self.weights.shape[1], generator=generator)
        return F.pad(rows, (0, -rows.shape[1] % 32))

    def run(self, inputs: torch.Tensor, mode: int, outputs: torch.Tensor) -> torch.Tensor:
        """Multiply; return the outputs, or what was gated."""
        lib, num_rows = self.kernels.lib, len(inputs)
        element_dtype = torch.float32 if lib.tartlet_element_bytes(self.format) == 4 else torch.bfloat16
        elements = inputs.to(element_dtype).contiguous()
        gated = torch.zeros(num_rows, self.linear.matrix.num_outputs // 2, dtype=element_dtype)
        scratch = torch.zeros(lib.tartlet_multiply_scratch_floats(self.matrix, num_rows))

        def address(tensor: torch.Tensor, c_type: str = "float *") -> Any:
            return pointer(self.kernels, c_type, tensor)

        lib.tartlet_multiply(
            self.matrix, address(elements, "void *"), num_rows, mode, address(outputs), address(gated, "void *"),
            address(scratch),
        )  # fmt: skip
        return gated.float() if mode == lib.TARTLET_GATE else outputs

    def expected(self, inputs: torch.Tensor) -> torch.Tensor:
        """The product as torch has it, in float64."""
        if self.kernels.lib.tartlet_element_bytes(self.format) == 2:
            inputs = inputs.bfloat16()
        product = inputs[:, : self.weights.shape[1]].double() @ rounded(self.weights, self.format).double().T
        assert self.linear.bias is not None
        return F.pad(product, (0, -product.shape[1] % 32)) + self.linear.bias.double()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("weight_format", list(WeightFormat), ids=lambda each: each.name)
def test_products_equal_torch(kernels: Kernels, weight_format: WeightFormat, shape: tuple[int, int]) -> None:
    """Stored, or added to what is there, for any number of rows."""
    product = Product(kernels, weight_format, *shape)
    for num_rows in ROWS:
        inputs = product.inputs(num_rows)
        expected = product.expected(inputs)
        before = torch.randn(num_rows, round_up(shape[0], 32))
        stored = product.run(inputs, kernels.lib.TARTLET_STORE, before.clone())
        added = product.run(inputs, kernels.lib.TARTLET_ADD, before.clone())

        torch.testing.assert_close(stored.double(), expected, atol=2e-4, rtol=1e-5)
        torch.testing.assert_close(added, before + stored, atol=0, rtol=0)


@pytest.mark.parametrize("weight_format", list(WeightFormat), ids=lambda each: each.name)
def test_gates_equal_torch(kernels: Kernels, weight_format: WeightFormat) -> None:
    """The first half of each panel goes through silu and multiplies the second."""
    product = Product(kernels, weight_format, 192, 96)
    inputs = product.inputs(9)
    gate, up = product.expected(inputs).unflatten(1, (-1, 2, 16)).unbind(2)
    gated = product.run(inputs, kernels.lib.TARTLET_GATE, torch.empty(0))
    tolerance = 1e-5 if kernels.lib.tartlet_element_bytes(weight_format) == 4 else 2**-8

    torch.testing.assert_close(gated.double(), (F.silu(gate) * up).flatten(1), atol=1e-3, rtol=tolerance)


@pytest.mark.parametrize("weight_format", list(WeightFormat), ids=lambda each: each.name)
def test_a_row_has_the_same_bits_in_any_batch(kernels: Kernels, weight_format: WeightFormat) -> None:
    """Each row alone equals itself among others."""
    product = Product(kernels, weight_format, 96, 576)
    for num_rows in ROWS:
        inputs = product.inputs(num_rows)
        together = product.run(inputs, kernels.lib.TARTLET_STORE, torch.zeros(num_rows, 96))
        for row in range(0, num_rows, 3):
            alone = product.run(inputs[row : row + 1], kernels.lib.TARTLET_STORE, torch.zeros(1, 96))

            assert torch.equal(alone[0], together[row])
