"""From a configuration to an engine that is ready to be driven: device, dtype, weights, KV cache, text side."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch

from tartlet_engine.adapter_file import read_adapter
from tartlet_engine.api import EngineConfig, ModelInfo
from tartlet_engine.attention import ATTENTION_NAME, register_attention
from tartlet_engine.constraints.compiler import ConstraintCompiler
from tartlet_engine.constraints.vocabulary import Vocabulary
from tartlet_engine.core import EngineCore
from tartlet_engine.fused_loading import LoadedModel, load_fused
from tartlet_engine.kv_cache import KvCache, default_num_pages, page_bytes
from tartlet_engine.model_fingerprint import model_fingerprint
from tartlet_engine.model_runner import ModelRunner, TransformersRunner, probe_layer_shapes
from tartlet_engine.saved_contexts import SavedContexts
from tartlet_engine.tokenizer import ModelTokenizer
from tartlet_engine.weights import ModelLoadError, load_model

_log = logging.getLogger("tartlet_engine")

Progress = Callable[[str, float], None]

# Without a number from the operator, swapped pages may take this part of the memory that is available.
SWAP_SHARE = 0.1

# A step's budget of tokens, unless the configuration says otherwise: what a device takes some hundred milliseconds for,
# at most, with models that suit it.
_BATCH_TOKENS = {"cpu": 512, "cuda": 4096}

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class LoadedEngine:
    """What an engine's thread needs."""

    core: EngineCore
    info: ModelInfo
    text: ModelTokenizer
    prepare_thread: Callable[[], None]  # torch settings of the thread that steps


def load_engine(config: EngineConfig, progress: Progress | None) -> LoadedEngine:
    """Load everything, on the calling thread. Raises ModelLoadError, or ValueError for a setting out of its range."""
    _check_config(config)
    device = choose_device(config.device)
    try:
        return _load_folder(config, device, progress)
    except (ModelLoadError, MemoryError):
        raise
    except Exception as error:  # the files come from elsewhere, and each of their readers fails in its own ways
        raise ModelLoadError(
            f"its files cannot be served: {type(error).__name__}: {error}",
            "One of them is damaged or missing, or their numbers contradict each other; fetch the model again",
        ) from error


def _load_folder(config: EngineConfig, device: torch.device, progress: Progress | None) -> LoadedEngine:
    text = ModelTokenizer(config.model_path)
    model = load_fused(config, device, progress) or _load_transformers(config, device, progress)
    adapter_digests = _load_adapters(config, model.runner)
    info = ModelInfo(
        name=config.model_name,
        architecture=model.architecture,
        context_len=model.context_len,
        vocabulary_size=model.vocabulary_size,
        page_size=config.page_size,
        num_pages=model.num_pages,
        eos_token_ids=text.eos_token_ids,
        features=_features(text, model),
        dtype=model.dtype,
        backend=model.backend,
        adapters=tuple(adapter_digests),
    )
    saved = _saved_contexts(config, model)
    swap_bytes = default_swap_bytes() if config.swap_bytes is None else config.swap_bytes
    max_batch_tokens = config.max_batch_tokens or _BATCH_TOKENS[device.type]
    core = EngineCore(
        info,
        text.table,
        model.runner,
        max_batch_tokens,
        config.prefix_cache,
        saved,
        swap_bytes=swap_bytes,
        adapter_digests=adapter_digests,
        constraints=ConstraintCompiler(Vocabulary.of(text, info.vocabulary_size)) if text.eos_token_ids else None,
    )
    return LoadedEngine(core, info, text, lambda: _prepare_thread(config.threads))


def _load_adapters(config: EngineConfig, runner: ModelRunner) -> dict[str, str]:
    """Let the runner hold the adapters. Returns their digests by name. Raises ModelLoadError."""
    digests: dict[str, str] = {}
    num_bytes = 0
    for name, folder in config.adapters:
        adapter = read_adapter(name, Path(folder), config.adapter_bytes - num_bytes)
        if name in digests:
            raise adapter.error("there is another one of this name")
        num_bytes += runner.add_adapter(adapter)
        if num_bytes > config.adapter_bytes:
            message = f"with it, adapters take {num_bytes:,} bytes; {config.adapter_bytes:,} are allowed"
            raise adapter.error(message, "Load fewer adapters, or allow more adapter_bytes")
        _log.info("adapter=%s modules=%d bytes_of_all=%d", name, len(adapter.modules), num_bytes)
        digests[name] = adapter.digest
    return digests


def _features(text: ModelTokenizer, model: LoadedModel) -> tuple[str, ...]:
    """What programs can do with the model: `ModelInfo.features`."""
    has = {"chat": text.has_chat_template, "evict": model.can_evict, "constraints": bool(text.eos_token_ids)}
    return tuple(name for name in has if has[name])


def _saved_contexts(config: EngineConfig, model: LoadedModel) -> SavedContexts:
    runner = type(model.runner).__name__
    fingerprint = model_fingerprint(
        Path(config.model_path), runner=runner, dtype=model.dtype, page_size=config.page_size
    )
    return SavedContexts(
        fingerprint, None if config.saved_path is None else Path(config.saved_path), config.saved_bytes
    )


def _load_transformers(config: EngineConfig, device: torch.device, progress: Progress | None) -> LoadedModel:
    """Load transformers' own modules, with paged attention."""
    dtype = choose_dtype(config.dtype, device)
    register_attention()
    model, model_config = load_model(Path(config.model_path), dtype, device, ATTENTION_NAME, progress)
    try:
        layer_shapes = probe_layer_shapes(model, device)
    except NotImplementedError as error:
        raise ModelLoadError(str(error), "Use a model of another architecture") from error
    context_len = int(model_config.get_text_config().max_position_embeddings)
    bytes_per_page = page_bytes(layer_shapes, config.page_size, dtype)
    num_pages = config.kv_pages or default_num_pages(bytes_per_page, config.page_size, context_len, device)
    kv_cache = KvCache(layer_shapes, num_pages, config.page_size, dtype, device)
    model_module: Any = model
    return LoadedModel(
        can_evict=all(shape.sliding_window is None for shape in layer_shapes),
        runner=_make_runner(config, model, kv_cache, context_len),
        architecture=type(model).__name__,
        context_len=context_len,
        vocabulary_size=int(model_module.get_input_embeddings().num_embeddings),
        num_pages=num_pages,
        dtype=str(dtype).removeprefix("torch."),
        backend=device.type,
    )


def _make_runner(
    config: EngineConfig, model: torch.nn.Module, kv_cache: KvCache, context_len: int
) -> TransformersRunner:
    """Return what runs a model of transformers: on a GPU with Triton's kernels, else with attention in plain torch.

    Raises ModelLoadError if Triton is wanted and cannot be had.
    """
    device = kv_cache.keys[0].device
    if config.runner == "transformers" or (config.runner == "auto" and device.type != "cuda"):
        return TransformersRunner(model, kv_cache)
    if device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        raise ModelLoadError("runner is 'triton', which needs a GPU", "Leave the setting out to run it on the CPU")
    try:
        if device.type != "cuda":
            from tartlet_engine.cuda.interpreter import use_interpreter

            use_interpreter()
        from tartlet_engine.cuda.cuda_runner import CudaRunner
        from tartlet_engine.cuda.decode_graphs import CudaGraphs
    except ModuleNotFoundError as error:
        raise ModelLoadError(
            f"Triton's kernels need {error.name}", "Install it: pip install 'tartlet[cuda]'"
        ) from error
    has_graphs = config.cuda_graphs and device.type == "cuda"
    return CudaRunner(model, kv_cache, context_len, CudaGraphs(device) if has_graphs else None)


def default_swap_bytes() -> int:
    """Choose how much memory swapped pages may take, by what is available now. None is taken before it is needed."""
    return int(psutil.virtual_memory().available * SWAP_SHARE)


def choose_device(name: str) -> torch.device:
    """Return the device for a setting: `auto` takes a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("device is 'cuda', but torch finds no usable GPU; use 'auto' or 'cpu'")
    return torch.device(name)


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """Return the dtype for a setting: `auto` takes what is fast on the device.

    On a CPU with bfloat16 instructions that is bfloat16. Measured on two cores with AVX512_BF16, SmolLM2-135M, one
    decode step of 1, 8 and 32 sequences: 38, 45 and 72 ms, against 59, 84 and 134 ms in float32. On other CPUs, where
    bfloat16 has not been measured, it is float32, which every CPU computes natively.
    """
    if name != "auto":
        return _DTYPES[name]
    capabilities = torch.cpu.get_capabilities()
    has_native_bfloat16 = device.type == "cuda" or capabilities.get("avx512_bf16") or capabilities.get("amx_bf16")
    return torch.bfloat16 if has_native_bfloat16 else torch.float32


def _check_config(config: EngineConfig) -> None:
    """Raise ValueError, naming the setting, unless all are in their ranges."""
    if config.dtype not in ("auto", *_DTYPES):
        raise ValueError(f"dtype must be 'auto', 'float32' or 'bfloat16', got {config.dtype!r}")
    if config.quantize not in ("none", "int8", "int4"):
        raise ValueError(f"quantize must be 'none', 'int8' or 'int4', got {config.quantize!r}")
    if config.runner not in ("auto", "fused", "transformers", "triton"):
        raise ValueError(f"runner must be 'auto', 'fused', 'transformers' or 'triton', got {config.runner!r}")
    if config.device not in ("auto", "cpu", "cuda"):
        raise ValueError(f"device must be 'auto', 'cpu' or 'cuda', got {config.device!r}")
    for name in ("threads", "kv_pages", "page_size", "max_batch_tokens", "saved_bytes", "adapter_bytes"):
        value = getattr(config, name)
        if value is not None and not (type(value) is int and value >= 1):
            raise ValueError(f"{name} must be a whole number, at least 1, got {value!r}")
    swap_bytes = config.swap_bytes
    if swap_bytes is not None and not (type(swap_bytes) is int and swap_bytes >= 0):
        raise ValueError(f"swap_bytes must be a whole number, at least 0, got {swap_bytes!r}")


def _prepare_thread(threads: int | None) -> None:
    """Set how many CPU threads torch uses for what the calling thread computes."""
    if threads is not None:
        torch.set_num_threads(threads)
