"""Packing a whole model: what it says of itself, and what it leaves as it was."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoConfig

from tartlet_engine.packed_model import pack_model
from tartlet_engine.packing import WeightFormat


def test_a_model_is_described_by_its_configuration(tiny_folder: Path) -> None:
    """Its context, its format, and a row of angles for each position."""
    model = pack_model(tiny_folder, AutoConfig.from_pretrained(tiny_folder), WeightFormat.INT8)

    assert (model.context_len, model.weight_format, model.shape.vocabulary_size) == (2048, WeightFormat.INT8, 512)
    assert model.cosines.shape == model.sines.shape == (2048, 8)


def test_a_shorter_context_can_be_asked_for(tiny_folder: Path) -> None:
    """Then the tables end earlier."""
    config = AutoConfig.from_pretrained(tiny_folder)
    model = pack_model(tiny_folder, config, WeightFormat.FLOAT32, context_len=40)

    assert (model.context_len, len(model.cosines)) == (40, 40)


def test_progress_is_told_and_threads_are_given_back(tiny_folder: Path) -> None:
    """After each of two layers; torch computes with as many threads as before."""
    num_threads = torch.get_num_threads()
    told: list[float] = []
    pack_model(tiny_folder, AutoConfig.from_pretrained(tiny_folder), WeightFormat.BFLOAT16, told.append)

    assert told == [0.5, 1.0]
    assert torch.get_num_threads() == num_threads
