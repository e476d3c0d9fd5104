"""What the formats of weights do to a model's predictions: every token of a fixed text, against float32.

Perplexity is the exponential of the mean negative log-probability of the text's tokens. The divergence is that of
Kullback and Leibler, of a format's distribution from that of float32, in nats, mean over all positions.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path

import torch
from transformers import AutoConfig

from benchmarks.report import Row
from benchmarks.settings import Settings
from tartlet import models
from tartlet_engine.accounts import RunAccount
from tartlet_engine.batch import build_batch
from tartlet_engine.fused_runner import PAGE_SIZE, FusedRunner
from tartlet_engine.packed_model import pack_model
from tartlet_engine.packing import WeightFormat
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Sequence
from tartlet_engine.step_plan import Chunk
from tartlet_engine.tokenizer import ModelTokenizer

TEXT = Path(__file__).parent / "texts" / "quality.txt"


def measure(settings: Settings) -> Iterator[Row]:
    """Give perplexity and divergence of each format."""
    folder = Path(models.local_path(settings.model))
    token_ids = ModelTokenizer(str(folder)).encode(TEXT.read_text(encoding="utf-8"))[: settings.scaled(2000, 40)]
    targets = torch.tensor(token_ids[1:])
    reference = torch.empty(0)
    for weight_format in WeightFormat:
        logits = compute_logits(folder, token_ids, weight_format, settings.threads)
        predicted = torch.log_softmax(logits.double(), dim=-1)[:-1]
        name = weight_format.name.lower()
        loss = -predicted.gather(1, targets.unsqueeze(1)).mean().item()
        yield Row(f"{name}: perplexity", [math.exp(loss)], "")
        if weight_format is WeightFormat.FLOAT32:
            reference = predicted
        else:
            divergence = (reference.exp() * (reference - predicted)).sum(-1).mean().item()
            agreement = (reference.argmax(-1) == predicted.argmax(-1)).double().mean().item()
            yield Row(f"{name}: divergence from float32", [divergence], "nats")
            yield Row(f"{name}: same most likely token as float32", [100 * agreement], "%")


def compute_logits(folder: Path, token_ids: list[int], weight_format: WeightFormat, threads: int) -> torch.Tensor:
    """The logits after every token of a text: float32[T, V]."""
    num_pages = -(-len(token_ids) // PAGE_SIZE)
    runner = FusedRunner(pack_model(folder, AutoConfig.from_pretrained(folder), weight_format), num_pages, threads)
    account = RunAccount(1, "local", None, None)
    page_table = PageTable(PagePool(num_pages, PAGE_SIZE), account)
    page_table.reserve(0, len(token_ids))
    sequence = Sequence(1, account, page_table, token_ids)
    batch = build_batch([Chunk(sequence, 0, len(token_ids))], [], PAGE_SIZE, runner.device)
    logits = runner.forward(dataclasses.replace(batch, logit_rows=torch.arange(len(token_ids))))
    runner.close()
    return logits
