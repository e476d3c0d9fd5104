"""Load model weights through transformers, and convert GGUF files into folders that load fast.

Only safetensors are read, never pickles, and a model's own code is never run. Importing this module is cheap: torch and
transformers, seconds of import time, come in with the first call.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

# What is being done, and how much of it is done, 0 to 1.
Progress = Callable[[str, float], None]

# Layers whose whole state is keys and values. Others (linear attention, convolutions, state spaces) hold a state
# that pages cannot carry.
_SERVED_LAYER_TYPES = {"full_attention", "sliding_attention", "chunked_attention"}


class ModelLoadError(ValueError):
    """A model that cannot be loaded or served: what is wrong, and what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}. {hint}" if hint else message)
        self.message = message
        self.hint = hint


def load_model(
    folder: Path | str,
    dtype: torch.dtype,
    device: torch.device | str = "cpu",
    attn_implementation: str = "sdpa",
    progress: Progress | None = None,
) -> tuple[torch.nn.Module, Any]:
    """Load a causal language model and its configuration, ready for inference.

    Args:
        folder: holds `config.json` and `*.safetensors`.
        dtype: of the weights in memory, whatever the file holds.
        device: where the weights go.
        attn_implementation: a name in transformers' attention interface.
        progress: hears of each stage, on the calling thread.

    Raises:
        ModelLoadError: the folder holds no model, or not a whole one, or one whose architecture cannot be served.

    Cost: reading the file once, and some 3 s for the first import of transformers in a process.
    """
    report = progress or _ignore
    folder = Path(folder)
    report("importing transformers", 0.0)
    config = read_config(folder)
    with _refusing_damage(folder.name, "Fetch the model again"):
        model_class = servable_class(config)
    report("reading weights", 0.3)
    with quiet_transformers(), _refusing_damage(folder.name, "Fetch the model again"):
        model, info = model_class.from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            attn_implementation=attn_implementation,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,  # they are listed, and refused below
            output_loading_info=True,
        )
    absent = sorted(info["missing_keys"]) + sorted(name for name, *_ in info["mismatched_keys"])
    if absent:
        raise ModelLoadError(
            f"{folder} is not a whole {model_class.__name__}: {len(absent)} weights are missing or of the wrong shape, "
            f"the first is {absent[0]}",
            "Fetch the model again",
        )
    model = model.to(device).eval().requires_grad_(False)
    report("ready", 1.0)
    return model, config


def read_config(folder: Path) -> Any:
    """Read a model folder's transformers configuration. Raises ModelLoadError if it holds none, or no safetensors."""
    require_safetensors(folder)
    from transformers import AutoConfig

    with _refusing_damage(folder.name, "Fetch the model again"):
        return _read_config(AutoConfig, folder)


def servable_class(config: Any) -> Any:
    """The model class for a transformers configuration.

    Raises ModelLoadError, naming the architecture, unless it is a causal language model all of whose state is keys and
    values and whose attention goes through transformers' attention interface.
    """
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

    name = (getattr(config, "architectures", None) or [config.model_type])[0]
    hint = "Served are decoder-only models such as Llama, Qwen, Mistral, Gemma, Phi and GPT-2"
    model_class = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    if model_class is None or config.is_encoder_decoder:
        raise ModelLoadError(f"{name} is not a causal language model", hint)
    layer_types = set(getattr(config, "layer_types", None) or ())
    if not layer_types <= _SERVED_LAYER_TYPES:
        others = ", ".join(sorted(layer_types - _SERVED_LAYER_TYPES))
        raise ModelLoadError(f"{name} has layers that keep more than keys and values: {others}", hint)
    if not model_class._supports_attention_backend:
        raise ModelLoadError(f"{name} does its attention in a way that cannot read pages", hint)
    return model_class


def convert_gguf(gguf_path: Path | str, folder: Path | str, progress: Progress | None = None) -> Path:
    """Write a GGUF file's model into `folder` as safetensors, with its tokenizer and chat template.

    The weights are the file's values, dequantised exactly, in float32. The folder appears all at once, when everything
    in it has been written; if it is there already, or another process makes it first, that one stays.

    Args:
        gguf_path: a GGUF file of an architecture that transformers can read.
        folder: what to make; its parent is made too.
        progress: hears of each stage, on the calling thread.

    Raises:
        FileNotFoundError: there is no such file.
        ModelLoadError: it is not a GGUF file, or its architecture cannot be served.

    Cost: some 15 s and 1 GB of memory for a model of 135 million parameters.
    """
    report = progress or _ignore
    gguf_path, folder = Path(gguf_path), Path(folder)
    if folder.is_dir():
        return folder
    _require_gguf(gguf_path)
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        _write_converted(gguf_path, unfinished, report)
        try:
            os.rename(unfinished, folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    report("ready", 1.0)
    return folder


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep transformers from writing progress bars and warnings to stderr, and undo that afterwards."""
    from transformers.utils import logging

    had_bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if had_bars:
            logging.enable_progress_bar()


def _write_converted(gguf_path: Path, folder: Path, report: Progress) -> None:
    report("importing transformers", 0.0)
    import torch
    from transformers import AutoConfig, AutoTokenizer, GgufConfig

    source = {"gguf_file": gguf_path.name, "local_files_only": True, "trust_remote_code": False}
    with quiet_transformers():
        with _refusing_damage(gguf_path.name, "It is damaged, or of a kind that transformers does not know"):
            report("reading the tokenizer", 0.1)
            model_class = servable_class(AutoConfig.from_pretrained(gguf_path.parent, **source))
            tokenizer = AutoTokenizer.from_pretrained(gguf_path.parent, **source)
            report("dequantising the weights", 0.4)
            with _gguf_bar_reported(report):
                model = model_class.from_pretrained(
                    gguf_path.parent, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True), **source
                )
        report("writing the weights", 0.9)
        tokenizer.save_pretrained(folder)
        model.save_pretrained(folder)


@contextlib.contextmanager
def _refusing_damage(name: str, hint: str) -> Iterator[None]:
    """Turn whatever a parser of foreign files fails with into a ModelLoadError: struct.error, ZeroDivisionError ..."""
    try:
        yield
    except (ModelLoadError, MemoryError):
        raise
    except Exception as error:
        raise ModelLoadError(f"{name} cannot be read: {type(error).__name__}: {error}", hint) from error


@contextlib.contextmanager
def _gguf_bar_reported(report: Progress) -> Iterator[None]:
    """Report each tensor instead of the bar that transformers' GGUF reader draws, which no setting turns off."""
    from transformers import modeling_gguf_pytorch_utils as gguf_reader

    def reported(tensors: list[Any], **_: object) -> Iterator[Any]:
        for number, tensor in enumerate(tensors):
            report("dequantising the weights", 0.7 + 0.2 * number / len(tensors))
            yield tensor

    bar = gguf_reader.tqdm
    gguf_reader.tqdm = reported
    try:
        yield
    finally:
        gguf_reader.tqdm = bar


def _read_config(auto_config: Any, folder: Path) -> Any:
    try:
        return auto_config.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (ValueError, KeyError) as error:
        name = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type", "unknown")
        raise ModelLoadError(
            f"transformers has no model of the type {name!r}",
            "Models that bring their own code are not loaded; a newer transformers may know it",
        ) from error


def require_safetensors(folder: Path) -> None:
    """Raise ModelLoadError unless a folder holds a configuration and safetensors."""
    if not (folder / "config.json").is_file():
        raise ModelLoadError(f"{folder} holds no model: there is no config.json", "Give the model's own folder")
    if not any(folder.glob("*.safetensors")):
        raise ModelLoadError(
            f"{folder} holds no safetensors weights", "Other formats can run code when they are read; convert the model"
        )


def _require_gguf(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelLoadError(f"{path} is not a GGUF file", "Its first four bytes are not GGUF")


def _ignore(stage: str, done: float) -> None:
    """Progress that nobody asked for."""
