"""Models on the Hugging Face hub, kept in that library's own cache, which other tools share.

Only safetensors weights, JSON and tokenizer files are ever fetched: no pickle, no code.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tartlet.errors import ModelError
from tartlet.progress import Progress

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
PATTERNS = ("*.safetensors", "*.json", "tokenizer*", "*.model", "vocab.txt", "merges.txt", "chat_template*", "*.jinja")
IGNORED = ("*/*", "*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.py")


@dataclass(frozen=True, slots=True)
class CachedModel:
    """A causal language model that lies in the hub's cache."""

    hub_id: str
    size_bytes: int
    folder: Path


def is_hub_id(name: str) -> bool:
    """Tell whether `name` has the form organisation/name."""
    return HUB_ID.fullmatch(name) is not None


def find(hub_id: str) -> Path | None:
    """Return the cached folder of a model, or None. Never touches the network."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = snapshot_download(
            hub_id, allow_patterns=list(PATTERNS), ignore_patterns=list(IGNORED), local_files_only=True
        )
    except LocalEntryNotFoundError:  # nothing there, or not all of it
        return None
    return _checked(hub_id, Path(folder))


def fetch(hub_id: str, progress: Progress) -> Path:
    """Download a model, going on where an earlier attempt stopped, and return its folder.

    Raises:
        ModelError: `unknown_model`, `no_network`, `disk_full`, `no_safetensors` or `fetch_failed`.
    """
    from huggingface_hub import snapshot_download

    task = f"Fetching {hub_id}"
    progress(task, 0, None)
    try:
        folder = snapshot_download(
            hub_id,
            allow_patterns=list(PATTERNS),
            ignore_patterns=list(IGNORED),
            tqdm_class=_reporting_bar(task, progress),
        )
    except Exception as error:  # the library raises its own, requests', httpx's and the system's errors
        raise _fetch_error(hub_id, error) from error
    progress(task, 1, 1)
    return _checked(hub_id, Path(folder))


def cached_models() -> list[CachedModel]:
    """List the causal language models in the hub's cache, whoever put them there."""
    from huggingface_hub import constants, scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repositories = scan_cache_dir(constants.HF_HUB_CACHE).repos
    except CacheNotFound:
        return []
    found = []
    for repository in repositories:
        folders = [r.snapshot_path for r in repository.revisions if _is_causal_model(r.snapshot_path)]
        if repository.repo_type == "model" and folders:
            found.append(CachedModel(repository.repo_id, repository.size_on_disk, folders[0]))
    return sorted(found, key=lambda model: model.hub_id)


def remove(hub_id: str) -> int:
    """Delete a model from the hub's cache and return the bytes freed."""
    from huggingface_hub import constants, scan_cache_dir

    cache = scan_cache_dir(constants.HF_HUB_CACHE)
    cache = replace(cache, repos=frozenset(repository for repository in cache.repos if repository.repo_id == hub_id))
    strategy = cache.delete_revisions(*(r.commit_hash for repository in cache.repos for r in repository.revisions))
    freed = int(strategy.expected_freed_size)
    strategy.execute()
    return freed


def _reporting_bar(task: str, progress: Progress) -> type[Any]:
    """Make the class of bars that the library fills: ours tell `progress` about bytes, and draw nothing."""
    from tqdm import tqdm

    class ReportingBar(tqdm):  # type: ignore[type-arg]
        def display(self, *_args: Any, **_kwargs: Any) -> None:
            if self.unit == "B" and self.total:
                progress(task, min(self.n, self.total), None if self.n >= self.total else self.total)

    return ReportingBar


def _is_causal_model(folder: Path) -> bool:
    try:
        config = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError):
        return False
    architectures = config.get("architectures") or []
    return any("CausalLM" in name or "LMHead" in name for name in architectures) and any(folder.glob("*.safetensors"))


def _checked(hub_id: str, folder: Path) -> Path:
    if not (folder / "config.json").exists():
        raise ModelError(f"{hub_id} has no config.json: it is not a transformers model", code="not_a_model")
    if not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"{hub_id} has no safetensors weights",
            hint="Weights in pickle files are never loaded. Look for a converted copy, or give a GGUF file.",
            code="no_safetensors",
        )
    return folder


def _fetch_error(hub_id: str, error: Exception) -> ModelError:
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    first_line = (str(error).strip() or type(error).__name__).splitlines()[0].removeprefix("Got: ")
    if isinstance(error, GatedRepoError):
        return ModelError(f"{hub_id} is gated", hint="Accept its terms and set HF_TOKEN.", code="unknown_model")
    if isinstance(error, RepositoryNotFoundError):
        return ModelError(f"the hub has no model {hub_id}", hint="Private models need HF_TOKEN.", code="unknown_model")
    if isinstance(error, OSError) and error.errno is not None and "space" in str(error):
        return ModelError(f"cannot store {hub_id}: {first_line}", hint="HF_HOME says where it goes.", code="disk_full")
    if "connect" in str(error).lower() or "offline" in str(error).lower() or "resolve" in str(error).lower():
        return ModelError(
            f"cannot reach the hub to fetch {hub_id}: {first_line}",
            hint="Check the network; a folder or a .gguf file that you have can be used instead.",
            code="no_network",
        )
    return ModelError(f"cannot fetch {hub_id}: {first_line}", code="fetch_failed")
