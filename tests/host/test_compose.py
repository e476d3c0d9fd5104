from __future__ import annotations

from pathlib import Path

import pytest

from tartlet import compose
from tartlet.errors import ConfigError, ModelError
from tartlet_engine.api import EngineStopped, Event
from tartlet_engine.tiny import make_tiny_adapter


def test_an_engine_starts_and_reports_on_it(tiny_folder: Path) -> None:
    """Progress reaches its total, and the client knows the model by the name that was asked for."""
    heard: list[tuple[str, float, float | None]] = []

    client = compose.start_engine(str(tiny_folder), threads=1, kv_pages=8, progress=lambda *news: heard.append(news))

    try:
        assert list(client.models) == [str(tiny_folder)]
        assert client.stats().pages_total == 8
    finally:
        client.close()
    assert heard[-1] == (f"Loading {tiny_folder}", 1, 1)
    assert [news for news in heard if news[1] == news[2]] == heard[-1:]


@pytest.mark.parametrize(
    "setting", [{"dtype": "int3"}, {"threads": 0}, {"kv_pages": 0}, {"swap_bytes": -1}, {"adapter_bytes": 0}]
)
def test_a_setting_out_of_range_is_the_users(tiny_folder: Path, setting: dict[str, object]) -> None:
    """The error names it."""
    with pytest.raises(ConfigError, match=next(iter(setting))):
        compose.start_engine(str(tiny_folder), **setting)  # type: ignore[arg-type]


def test_a_damaged_model_is_a_model_error(tiny_folder: Path, tmp_path: Path) -> None:
    """What cannot be loaded is named, with a hint."""
    for name in ("tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((tiny_folder / name).read_bytes())
    (tmp_path / "config.json").write_text('{"model_type": "no_such_architecture"}')

    with pytest.raises(ModelError, match="no_such_architecture") as caught:
        compose.start_engine(str(tmp_path), threads=1)

    assert caught.value.code == "load_failed"


def test_a_damaged_gguf_file_is_a_model_error(tmp_path: Path) -> None:
    """And nothing is left of the attempt."""
    gguf_path = tmp_path / "model.gguf"
    gguf_path.write_bytes(b"GGUF" + bytes(60))

    with pytest.raises(ModelError) as caught:
        compose.convert_gguf(gguf_path, tmp_path / "folder")

    assert caught.value.code == "convert_failed"
    assert list(tmp_path.iterdir()) == [gguf_path]


def test_an_engine_that_is_closed_says_so(tiny_folder: Path) -> None:
    """Whoever still listens hears that nothing more will come."""
    heard: list[Event] = []
    client = compose.start_engine(str(tiny_folder), threads=1, kv_pages=8)
    client.listen(heard.extend)

    client.close()

    (stopped,) = heard
    assert isinstance(stopped, EngineStopped)


def test_adapters_reach_the_engine(tiny_folder: Path, tmp_path: Path) -> None:
    """By name; a folder that holds none is a model error that names the adapter."""
    folder = make_tiny_adapter(tmp_path / "polite", tiny_folder)
    client = compose.start_engine(str(tiny_folder), threads=1, kv_pages=8, adapters={"polite": folder})
    try:
        assert client.models[str(tiny_folder)].adapters == ("polite",)
    finally:
        client.close()

    with pytest.raises(ModelError, match="the adapter 'other' cannot be used") as caught:
        compose.start_engine(str(tiny_folder), threads=1, kv_pages=8, adapters={"other": tmp_path})
    assert caught.value.code == "load_failed"


def test_a_damaged_tokenizer_is_a_model_error(tmp_path: Path) -> None:
    """So is one that is not there."""
    with pytest.raises(ModelError, match=r"no tokenizer\.json"):
        compose.model_text(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="cannot be loaded") as caught:
        compose.model_text(tmp_path)

    assert caught.value.code == "load_failed"
