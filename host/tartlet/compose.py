"""Puts host and engine together: the only file of the host that imports more of the engine than its messages.

The imports stand inside the functions, since torch and transformers take seconds to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from tartlet import models, paths
from tartlet.errors import ConfigError, ModelError
from tartlet.progress import Progress, silent
from tartlet_engine.api import EngineClient, EngineConfig, ModelText, SavedContext


def start_engine(
    model: str = models.DEFAULT,
    *,
    dtype: str = "auto",
    quantize: str = "none",
    threads: int | None = None,
    kv_pages: int | None = None,
    swap_bytes: int | None = None,
    prefix_cache: bool = True,
    saved_path: str | Path | None = None,
    saved_bytes: int = 1 << 30,
    adapters: Mapping[str, Path] | None = None,
    adapter_bytes: int = 1 << 30,
    folder: Path | None = None,
    progress: Progress = silent,
) -> EngineClient:
    """Load a model, fetching it if it is not there, and start an engine with it on a thread of its own.

    Args:
        model: any name that `tartlet.models.pull` takes.
        dtype: "float32", "bfloat16" or "auto".
        quantize: the format of the weights in memory: "int8", "int4" or "none".
        threads: CPU threads of a step; None for all cores.
        kv_pages: pages in the KV pool; None for as many as fit in memory.
        swap_bytes: memory for pages that have to leave the pool for others; None for a part of what is available.
        prefix_cache: keep computed pages for prompts that begin with the same tokens.
        saved_path: a folder for the contexts that programs save; None for `paths.saved_folder()`.
        saved_bytes: what those of one tenant may take.
        adapters: folders of LoRA adapters in the format of PEFT, by name.
        adapter_bytes: memory that they may take together.
        folder: where the model lies, if that is known; then it is not looked for by its name.
        progress: hears of fetching, converting and loading.

    Raises:
        ConfigError: an argument is out of its range.
        ModelError: the model cannot be found, fetched, converted or loaded.
    """
    if folder is None:
        folder = models.pull(model, progress)
    config = EngineConfig(
        model_name=model,
        model_path=str(folder),
        dtype=dtype,
        quantize=quantize,
        threads=threads,
        kv_pages=kv_pages,
        swap_bytes=swap_bytes,
        prefix_cache=prefix_cache,
        saved_path=str(paths.saved_folder() if saved_path is None else Path(saved_path).absolute()),
        saved_bytes=saved_bytes,
        adapters=tuple((name, str(path)) for name, path in (adapters or {}).items()),
        adapter_bytes=adapter_bytes,
    )
    from tartlet_engine.engine import start_engine as start
    from tartlet_engine.weights import ModelLoadError

    task = f"Loading {model}"
    progress(task, 0, 1)
    try:
        client = start(config, lambda _stage, done: progress(task, min(done, 0.99), 1))
    except ModelLoadError as error:
        raise ModelError(f"cannot load {model}: {error.message}", hint=error.hint, code="load_failed") from error
    except ValueError as error:
        raise ConfigError(str(error)) from error
    except MemoryError as error:
        hint = "Give fewer kv_pages, or take a smaller model or dtype."
        raise ModelError(f"cannot load {model}: {error}", hint=hint, code="load_failed") from error
    progress(task, 1, 1)
    return client


def model_text(folder: str | Path) -> ModelText:
    """Load the text side of the model in a folder: its tokenizer and chat template. Loads no torch.

    Raises:
        ModelError: its files cannot be read.

    Cost: 0.1 to 0.4 s.
    """
    from tartlet_engine.tokenizer import ModelTokenizer

    try:
        return ModelTokenizer(folder)
    except Exception as error:  # the files come from elsewhere, and each of their readers fails in its own ways
        message = f"the tokenizer in {folder} cannot be loaded: {type(error).__name__}: {error}"
        raise ModelError(message, code="load_failed") from error


def list_saved(tenant: str, folder: Path | None = None) -> list[SavedContext]:
    """Return what contexts of a tenant lie in a folder, by default `paths.saved_folder()`, for any model."""
    from tartlet_engine.save_operations import described
    from tartlet_engine.saved_contexts import SavedContexts

    with closing(SavedContexts("", folder or paths.saved_folder())) as saved:
        return [described(entry, saved.now_ms()) for entry in saved.all_of(tenant)]


def delete_saved(tenant: str, name: str, folder: Path | None = None) -> None:
    """Delete a tenant's saved context out of a folder. Raises ConfigError, code `not_found`, if it is not there."""
    from tartlet_engine.command_error import CommandError
    from tartlet_engine.saved_contexts import SavedContexts

    with closing(SavedContexts("", folder or paths.saved_folder())) as saved:
        try:
            saved.delete(tenant, name)
        except CommandError as error:
            raise ConfigError(error.error.message, hint=error.error.hint, code="not_found") from None


def convert_gguf(gguf_path: Path, folder: Path, progress: Progress = silent) -> None:
    """Write what a GGUF file holds into a new folder, as safetensors, configuration and tokenizer.

    Raises:
        ModelError: the file is damaged, or its architecture is not supported.
    """
    from tartlet_engine.weights import ModelLoadError
    from tartlet_engine.weights import convert_gguf as convert

    task = f"Converting {gguf_path.name}"
    try:
        convert(gguf_path, folder, lambda _stage, done: progress(task, done, 1.0))
    except ModelLoadError as error:
        raise ModelError(error.message, hint=error.hint, code="convert_failed") from error


def make_tiny_model(folder: Path) -> None:
    """Write the random model into `folder`."""
    from tartlet_engine.tiny import make_tiny_model as make

    make(folder)
