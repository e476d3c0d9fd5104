"""Whether the fused runner serves a model on this machine; if it does, load it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from tartlet_engine.api import EngineConfig
from tartlet_engine.fused_pages import PAGE_SIZE
from tartlet_engine.fused_runner import FusedRunner, fused_page_bytes
from tartlet_engine.kernels.build import KernelsUnavailableError, load_kernels
from tartlet_engine.kv_cache import default_num_pages
from tartlet_engine.llama_shape import read_shape
from tartlet_engine.model_runner import ModelRunner
from tartlet_engine.packed_cache import find_packed, make_packed
from tartlet_engine.packed_model import PackedModel
from tartlet_engine.packing import GROUP_BYTES, WeightFormat
from tartlet_engine.weights import ModelLoadError, read_config

_log = logging.getLogger("tartlet_engine")


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A runner, and what there is to tell of it."""

    runner: ModelRunner
    architecture: str
    context_len: int
    vocabulary_size: int
    num_pages: int
    dtype: str
    backend: str
    can_evict: bool  # no layer attends within a window of positions


def load_fused(
    config: EngineConfig, device: torch.device, progress: Callable[[str, float], None] | None
) -> LoadedModel | None:
    """Load the model into a fused runner; None, with a line in the log, if there is a reason to take another one.

    Raises ModelLoadError, with that reason, if the configuration asks for what only this runner has.
    """
    is_required = config.runner == "fused" or config.quantize != "none"
    try:
        return _load(config, device, progress or (lambda _stage, _done: None))
    except (NotImplementedError, KernelsUnavailableError) as error:
        if is_required:
            asked = f"runner is {config.runner!r} and quantize is {config.quantize!r}"
            raise ModelLoadError(f"{asked}, but {error}", "Leave both settings out to run it with torch") from error
        _log.info("runner=transformers reason=%r", str(error))
        return None


def weight_format(config: EngineConfig) -> WeightFormat:
    """Return the format for the settings. Unless float32 is asked for, weights are bfloat16: half the bytes to read."""
    if config.quantize != "none":
        return WeightFormat[config.quantize.upper()]
    return WeightFormat.FLOAT32 if config.dtype == "float32" else WeightFormat.BFLOAT16


def _load(config: EngineConfig, device: torch.device, report: Callable[[str, float], None]) -> LoadedModel:
    if config.runner in ("transformers", "triton"):
        raise NotImplementedError(f"runner is {config.runner!r}")
    if device.type != "cpu":
        raise NotImplementedError(f"the fused runner is for CPUs, not for {device.type}")
    if config.page_size != PAGE_SIZE:
        raise NotImplementedError(f"the fused runner has pages of {PAGE_SIZE} tokens, not of {config.page_size}")
    model = _find_or_pack(Path(config.model_path), weight_format(config), report)
    bytes_per_page = fused_page_bytes(model.shape, model.weight_format)
    num_pages = config.kv_pages or default_num_pages(bytes_per_page, PAGE_SIZE, model.context_len, device)
    runner = FusedRunner(model, num_pages, config.threads or torch.get_num_threads())
    report("ready", 1.0)
    return LoadedModel(
        runner=runner,
        architecture=model.shape.name,
        context_len=model.context_len,
        vocabulary_size=model.shape.vocabulary_size,
        num_pages=num_pages,
        dtype=model.weight_format.name.lower(),
        backend=f"cpu ({runner.instruction_set})",
        can_evict=not any(model.shape.sliding_windows),
    )


def _find_or_pack(folder: Path, chosen: WeightFormat, report: Callable[[str, float], None]) -> PackedModel:
    """Return the packed model. Nothing is packed in vain: what stands against the fused runner is looked for before."""
    report("reading weights", 0.0)
    model = find_packed(folder, chosen)
    if model is None:
        report("importing transformers", 0.0)
        model_config = read_config(folder)
        read_shape(model_config)
        report("compiling kernels", 0.1)
        load_kernels()
        model = make_packed(folder, model_config, chosen, lambda done: report("packing weights", 0.2 + 0.7 * done))
    if chosen in GROUP_BYTES:
        error = model.weights.rounding_error
        _log.info("weights=%s rounding_error=%.4f (root mean square, of the weights' own)", chosen.name.lower(), error)
    return model
