from __future__ import annotations

import re
from pathlib import Path

import pytest

from tartlet import models
from tartlet.errors import ConfigError
from tartlet.server import settings
from tartlet.server.settings import load


@pytest.fixture(autouse=True)
def _clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))
    for name in settings.Settings.model_fields:
        monkeypatch.delenv(f"TARTLET_{name.upper()}", raising=False)


def test_nothing_need_be_set() -> None:
    """All have defaults."""
    loaded = load()

    assert set(loaded.origins.values()) == {"default"}
    assert loaded.file is None
    assert loaded.settings.model == models.DEFAULT


def test_flags_before_environment_before_file_before_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And each value knows where it comes from."""
    file = tmp_path / "other.toml"
    file.write_text("port = 1\nworkers = 1\nkv_pages = 1\n[adapters]\na = '/a'\n")
    monkeypatch.setenv("TARTLET_PORT", "2")
    monkeypatch.setenv("TARTLET_WORKERS", "2")
    loaded = load({"port": 3, "host": None}, file)

    assert (loaded.settings.port, loaded.settings.workers, loaded.settings.kv_pages) == (3, 2, 1)
    assert loaded.settings.adapters == {"a": "/a"}
    assert [loaded.origins[name] for name in ("port", "workers", "kv_pages", "host")] == [
        "flag",
        "environment",
        "file",
        "default",
    ]


def test_the_file_of_the_home_is_read(tmp_path: Path) -> None:
    """If no other is named."""
    (tmp_path / "server.toml").write_text("port = 5")

    assert load().settings.port == 5
    assert load().file == tmp_path / "server.toml"


def test_unknown_keys_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the one that was meant."""
    file = tmp_path / "f.toml"
    file.write_text("prot = 5")
    with pytest.raises(ConfigError, match="prot is no setting") as error:
        load(config=file)
    assert "port" in error.value.hint
    monkeypatch.setenv("TARTLET_WORKER", "5")
    with pytest.raises(ConfigError, match="TARTLET_WORKER") as error:
        load()
    assert "TARTLET_WORKERS" in error.value.hint


@pytest.mark.parametrize("text", ["port = 70000", "port = 'x'", "port =", "log_format = 'xml'", "ping_s = nan"])
def test_wrong_values_are_refused(tmp_path: Path, text: str) -> None:
    """By name."""
    file = tmp_path / "f.toml"
    file.write_text(text)

    with pytest.raises(ConfigError):
        load(config=file)


def test_a_wrong_secret_is_not_told(tmp_path: Path) -> None:
    """Neither in errors nor when settings are shown."""
    file = tmp_path / "f.toml"
    file.write_text("database = 5")
    with pytest.raises(ConfigError) as error:
        load(config=file)
    assert f"database (from {file})" in str(error.value)
    file.write_text("database = 'postgresql://me:hunter2@db/tartlet'")
    loaded = load(config=file)

    assert "hunter2" not in str(loaded.shown())
    assert "hunter2" not in str(loaded)
    assert loaded.shown()["database"]["origin"] == "file"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """It is an error only if it was named."""
    load()
    with pytest.raises(ConfigError, match="cannot read"):
        load(config=tmp_path / "none.toml")


def test_what_should_be_json_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mapping is given as JSON."""
    monkeypatch.setenv("TARTLET_ADAPTERS", '{"a": "/a"}')
    assert load().settings.adapters == {"a": "/a"}
    monkeypatch.setenv("TARTLET_ADAPTERS", "a=/a")
    with pytest.raises(ConfigError):
        load()


def test_what_the_image_sets_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of the Dockerfile are known."""
    dockerfile = (Path(__file__).parents[3] / "Dockerfile").read_text(encoding="utf-8")
    names = re.findall(r"(TARTLET_\w+)=(\S+)", dockerfile)
    for name, value in names:
        monkeypatch.setenv(name, value)

    assert dict(names)["TARTLET_HOME"]
    assert load().settings.host == "0.0.0.0"
