"""Packed weights: sizes, rounding, and what GGUF files hold is held exactly."""

from __future__ import annotations

import pytest
import torch

from tartlet_engine.packing import WeightFormat, pack, packed_bytes, quantize_int4, quantize_int8, rounded

GENERATOR = torch.Generator().manual_seed(5)


def random_scales(num_outputs: int, num_groups: int) -> torch.Tensor:
    return (torch.rand(num_outputs, num_groups, 1, generator=GENERATOR) * 0.01 + 1e-4).half().float()


def numbers(least: int, greatest: int) -> torch.Tensor:
    """Random whole numbers for 64 x 8 groups, with the least in every group, as quantisers make them."""
    drawn = torch.randint(least, greatest + 1, (64, 8, 32), generator=GENERATOR)
    drawn[:, :, 3], drawn[:, :, 17] = least, greatest
    return drawn


@pytest.mark.parametrize("weight_format", list(WeightFormat), ids=lambda each: each.name)
@pytest.mark.parametrize("shape", [(1, 1), (32, 32), (33, 64), (100, 577)], ids=str)
def test_the_size_is_known_beforehand(weight_format: WeightFormat, shape: tuple[int, int]) -> None:
    """Panels take what `packed_bytes` says, in whole cache lines."""
    matrix = pack(torch.randn(shape), weight_format)

    assert matrix.panels.numel() == packed_bytes(weight_format, *shape)
    assert matrix.panels.numel() % 64 == 0
    assert (matrix.num_outputs, matrix.num_inputs) == tuple(-(-size // 32) * 32 for size in shape)


def test_the_values_of_q8_0_are_kept() -> None:
    """Whole numbers times a float16 scale, the greatest of them 127."""
    weights = (numbers(-127, 127) * random_scales(64, 8)).flatten(1)

    assert torch.equal(weights, quantize_int8(weights).dequantize())


def test_the_values_of_q4_1_are_kept() -> None:
    """0 to 15 times a float16 scale, plus a float16 minimum."""
    minima = torch.randn(64, 8, 1, generator=GENERATOR).mul(0.05).half().float()
    weights = (numbers(0, 15) * random_scales(64, 8) + minima).flatten(1)

    assert torch.equal(weights, quantize_int4(weights).dequantize())


@pytest.mark.parametrize("greatest", [7, 3])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_values_of_q4_0_are_kept(sign: int, greatest: int) -> None:
    """-8 to 7 times a float16 scale of either sign; 7 need not occur."""
    weights = (numbers(-8, greatest) * random_scales(64, 8) * sign).flatten(1)

    assert torch.equal(weights, quantize_int4(weights).dequantize())


def test_a_zero_matrix_stays_zero() -> None:
    """Groups without any range have a scale of zero."""
    for weight_format in WeightFormat:
        assert rounded(torch.zeros(32, 32), weight_format).abs().max() == 0


@pytest.mark.parametrize(("weight_format", "error"), [(WeightFormat.INT8, 1 / 254), (WeightFormat.INT4, 1 / 15)])
def test_other_weights_are_off_by_half_a_number_at_most(weight_format: WeightFormat, error: float) -> None:
    """Of their group's greatest magnitude, and a little for the scale's own rounding."""
    weights = torch.randn(64, 256, generator=GENERATOR)
    off = (rounded(weights, weight_format) - weights).abs().unflatten(1, (-1, 32)).amax(-1)
    magnitude = weights.abs().unflatten(1, (-1, 32)).amax(-1)

    assert (off <= magnitude * error * 1.02).all()
