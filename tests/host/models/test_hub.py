from __future__ import annotations

import json
from pathlib import Path

import pytest

from tartlet.errors import ModelError
from tartlet.models import hub
from tartlet.progress import silent

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a hub cache of its own, and no network."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return tmp_path


def cache_model(cache: Path, hub_id: str, architecture: str) -> Path:
    """Lay a model into the cache in the form that huggingface_hub gives it."""
    repository = cache / f"models--{hub_id.replace('/', '--')}"
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    (snapshot / "config.json").write_text(json.dumps({"architectures": [architecture]}))
    (snapshot / "model.safetensors").write_bytes(b"weights")
    return snapshot


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Qwen/Qwen3-0.6B", True), ("a/b", True), ("smollm2", False), ("a/b/c", False), ("../b", False), ("a/", False)],
)
def test_a_hub_id_is_an_organisation_and_a_name(name: str, expected: bool) -> None:
    """Nothing else is ever asked for."""
    assert hub.is_hub_id(name) is expected


def test_a_cached_model_needs_no_network(hub_cache: Path) -> None:
    """What other tools have fetched is used."""
    snapshot = cache_model(hub_cache, "acme/model", "LlamaForCausalLM")

    assert hub.find("acme/model") == snapshot
    assert hub.find("acme/other") is None


def test_only_causal_language_models_are_listed(hub_cache: Path) -> None:
    """The cache may hold anything else as well."""
    snapshot = cache_model(hub_cache, "acme/model", "LlamaForCausalLM")
    cache_model(hub_cache, "acme/embedder", "BertModel")

    assert [(model.hub_id, model.folder) for model in hub.cached_models()] == [("acme/model", snapshot)]


def test_a_removed_model_is_gone(hub_cache: Path) -> None:
    """Its bytes are given back, others stay."""
    cache_model(hub_cache, "acme/model", "LlamaForCausalLM")
    cache_model(hub_cache, "acme/other", "LlamaForCausalLM")

    hub.remove("acme/model")

    assert [model.hub_id for model in hub.cached_models()] == ["acme/other"]


def test_without_a_network_the_error_says_so() -> None:
    """And it names what works without."""
    with pytest.raises(ModelError, match="acme/model") as caught:
        hub.fetch("acme/model", silent)

    assert caught.value.code == "no_network"


def test_bars_report_bytes_and_end_at_their_total() -> None:
    """The library's bars become our progress, which must reach its total exactly once."""
    heard: list[tuple[float, float | None]] = []
    bar = hub._reporting_bar("Fetching", lambda _task, done, total: heard.append((done, total)))(
        total=100, unit="B", mininterval=0
    )
    bar.update(40)
    bar.update(30)
    bar.close()

    assert (40, 100) in heard
    assert all(done < (total or 101) for done, total in heard)
