"""What adapters add to a matrix product: equal to torch's, only in their rows, and the same bits in any batch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tartlet_engine.kernel_structs import fill_matrix, pointer
from tartlet_engine.kernels.build import Kernels
from tartlet_engine.llama_weights import Linear
from tartlet_engine.packing import WeightFormat, pack, rounded

NUM_OUTPUTS, NUM_INPUTS = 96, 77
RANKS = (3, 40)
Span = tuple[int, int, int]  # first row, number of rows, which adapter


class AdaptedProduct:
    """A random matrix, one adapter of each rank for it, and its product with rows of inputs."""

    def __init__(self, kernels: Kernels, weight_format: WeightFormat) -> None:
        generator = torch.Generator().manual_seed(1)
        self.kernels, self.format = kernels, weight_format
        self.adapter_format = min(weight_format, WeightFormat.BFLOAT16)
        self.weights = torch.randn(NUM_OUTPUTS, NUM_INPUTS, generator=generator)
        self.pairs = [
            (
                torch.randn(rank, NUM_INPUTS, generator=generator) / 8,
                torch.randn(NUM_OUTPUTS, rank, generator=generator),
            )
            for rank in RANKS
        ]
        self.matrix = kernels.ffi.new("tartlet_matrix *")
        self.linear = Linear(pack(self.weights, weight_format), None)
        fill_matrix(kernels, self.matrix, self.linear)
        self.layers = [kernels.ffi.new("tartlet_adapter_layer *") for _ in self.pairs]
        self.kept_alive = []
        for layer, pair in zip(self.layers, self.pairs, strict=True):
            lora = layer.loras[kernels.lib.TARTLET_LORA_DOWN]
            for target, weights in zip((lora.down, lora.up), pair, strict=True):
                linear = Linear(pack(weights, self.adapter_format), None)
                fill_matrix(kernels, target, linear)
                self.kept_alive.append(linear)

    def run(self, inputs: torch.Tensor, spans: list[Span], mode: int, outputs: torch.Tensor) -> torch.Tensor:
        """Multiply; return the outputs, or what was gated."""
        lib, num_rows = self.kernels.lib, len(inputs)
        elements, gated, scratch = self._buffers(inputs)
        sums, ranks = torch.zeros(num_rows, 64), torch.zeros(num_rows, 64, dtype=elements.dtype)
        gate_sums = torch.zeros(lib.tartlet_lora_gate_rows(), NUM_OUTPUTS)
        entries = self.kernels.ffi.new(
            "tartlet_adapter_span[]", [(first, count, self.layers[which]) for first, count, which in spans]
        )

        def address(tensor: torch.Tensor, c_type: str = "float *") -> Any:
            return pointer(self.kernels, c_type, tensor)

        # The adapters are those of the place `down`; for a gate, they are put where gates look for theirs.
        place = lib.TARTLET_LORA_DOWN
        if mode == lib.TARTLET_GATE:
            place = lib.TARTLET_LORA_GATE_UP
            for layer in self.layers:
                layer.loras[place] = layer.loras[lib.TARTLET_LORA_DOWN]
        lib.tartlet_multiply_adapted(
            self.matrix, place, entries, len(spans), address(elements, "void *"), num_rows, mode, address(outputs),
            address(gated, "void *"), address(scratch), 64, address(sums), address(ranks, "void *"),
            address(gate_sums),
        )  # fmt: skip
        return gated.float() if mode == lib.TARTLET_GATE else outputs

    def run_plain(self, inputs: torch.Tensor, mode: int, outputs: torch.Tensor) -> torch.Tensor:
        """Multiply with the kernel that knows nothing of adapters, which gates with the sums in registers."""
        elements, gated, scratch = self._buffers(inputs)
        self.kernels.lib.tartlet_multiply(
            self.matrix, pointer(self.kernels, "void *", elements), len(inputs), mode,
            pointer(self.kernels, "float *", outputs), pointer(self.kernels, "void *", gated),
            pointer(self.kernels, "float *", scratch),
        )  # fmt: skip
        return gated.float() if mode == self.kernels.lib.TARTLET_GATE else outputs

    def _buffers(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The inputs as elements, room for what is gated, and scratch."""
        lib = self.kernels.lib
        dtype = torch.float32 if lib.tartlet_element_bytes(self.format) == 4 else torch.bfloat16
        elements = F.pad(inputs, (0, -NUM_INPUTS % 32)).to(dtype)
        gated = torch.zeros(len(inputs), NUM_OUTPUTS // 2, dtype=dtype)
        return elements, gated, torch.zeros(lib.tartlet_multiply_scratch_floats(self.matrix, len(inputs)))

    def expected(self, inputs: torch.Tensor, spans: list[Span]) -> torch.Tensor:
        """The product as torch has it, in float64; ranks are rounded where activations are."""
        is_rounded = self.kernels.lib.tartlet_element_bytes(self.format) == 2

        def element(values: torch.Tensor) -> torch.Tensor:
            return values.bfloat16().double() if is_rounded else values.double()

        outputs = element(inputs) @ rounded(self.weights, self.format).double().T
        for first, count, which in spans:
            down, up = (rounded(weights, self.adapter_format).double() for weights in self.pairs[which])
            rows = slice(first, first + count)
            outputs[rows] += element(element(inputs[rows]) @ down.T) @ up.T
        return outputs


SPANS: list[list[Span]] = [[], [(0, 1, 0)], [(3, 4, 1), (7, 90, 0), (120, 10, 1)]]


def rows_of_inputs(num_rows: int) -> torch.Tensor:
    return torch.randn(num_rows, NUM_INPUTS, generator=torch.Generator().manual_seed(num_rows))


@pytest.mark.parametrize("weight_format", list(WeightFormat), ids=lambda each: each.name)
@pytest.mark.parametrize("spans", SPANS, ids=str)
def test_products_equal_torch(kernels: Kernels, weight_format: WeightFormat, spans: list[Span]) -> None:
    """Stored, or added to what is there; the adapters' part counts once."""
    product, inputs = AdaptedProduct(kernels, weight_format), rows_of_inputs(131)
    before = torch.randn(131, NUM_OUTPUTS)
    stored = product.run(inputs, spans, kernels.lib.TARTLET_STORE, before.clone())
    added = product.run(inputs, spans, kernels.lib.TARTLET_ADD, before.clone())
    # A rank that is nearly half way between two numbers of bfloat16 may be rounded to the other.
    tolerance = 2e-4 if kernels.lib.tartlet_element_bytes(weight_format) == 4 else 0.1

    torch.testing.assert_close(stored.double(), product.expected(inputs, spans), atol=tolerance, rtol=1e-5)
    torch.testing.assert_close(added, before + stored, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("weight_format", list(WeightFormat), ids=lambda each: each.name)
@pytest.mark.parametrize("spans", SPANS, ids=str)
def test_gates_equal_torch(kernels: Kernels, weight_format: WeightFormat, spans: list[Span]) -> None:
    """The adapters' part is there before the gate, over more rows than are gated at once."""
    product, inputs = AdaptedProduct(kernels, weight_format), rows_of_inputs(131)
    gate, up = product.expected(inputs, spans).unflatten(1, (-1, 2, 16)).unbind(2)
    gated = product.run(inputs, spans, kernels.lib.TARTLET_GATE, torch.empty(0))
    expected = (F.silu(gate) * up).flatten(1)
    error = (gated - expected).square().mean().sqrt() / expected.std()

    assert error < (1e-5 if kernels.lib.tartlet_element_bytes(weight_format) == 4 else 0.01)


@pytest.mark.parametrize("weight_format", list(WeightFormat), ids=lambda each: each.name)
@pytest.mark.parametrize("mode", ["STORE", "ADD", "GATE"])
def test_a_row_has_the_same_bits_in_any_batch(kernels: Kernels, weight_format: WeightFormat, mode: str) -> None:
    """Each row alone, with its adapter or without any, equals itself among others; so does the product without any."""
    product, inputs = AdaptedProduct(kernels, weight_format), rows_of_inputs(131)
    number = getattr(kernels.lib, f"TARTLET_{mode}")
    before = torch.randn(131, NUM_OUTPUTS)
    together = product.run(inputs, SPANS[2], number, before.clone())
    for row in (0, 2, 3, 6, 7, 50, 96, 97, 119, 125, 130):
        own = [(0, 1, which) for first, count, which in SPANS[2] if first <= row < first + count]
        alone = product.run(inputs[row : row + 1], own, number, before[row : row + 1].clone())

        assert torch.equal(alone[0], together[row])
    plain = product.run_plain(inputs, number, before.clone())
    assert torch.equal(plain[:3], together[:3])
    assert torch.equal(plain[-1], together[-1])
    assert not torch.equal(plain[3], together[3])
