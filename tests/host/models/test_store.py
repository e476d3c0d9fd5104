from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from tartlet import models
from tartlet.errors import ModelError
from tartlet.models import store
from tartlet.progress import silent


@pytest.fixture(autouse=True)
def tartlet_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a home of its own."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))
    return tmp_path


def record() -> store.Record:
    return store.Record("thing", "a test", "none")


def fill(folder: Path) -> None:
    folder.mkdir()
    (folder / "weights").write_text(str(os.getpid()))


def make_once(folder: Path, started: multiprocessing.Queue[int]) -> None:
    def make(unfinished: Path) -> None:
        started.put(os.getpid())
        fill(unfinished)

    store._make_once(folder, record(), make, silent)


def test_a_folder_appears_only_when_it_is_whole(tartlet_home: Path) -> None:
    """Work that fails leaves nothing, and the next attempt starts afresh."""
    folder = tartlet_home / "models" / "thing"

    def fail(unfinished: Path) -> None:
        fill(unfinished)
        assert not folder.exists()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store._make_once(folder, record(), fail, silent)
    assert not folder.exists()
    assert list(store.downloads_folder().iterdir()) == []

    assert store._make_once(folder, record(), fill, silent) == folder
    assert store.read_record(folder) == record()


def test_what_a_killed_process_left_is_replaced(tartlet_home: Path) -> None:
    """A folder without a record is not a model."""
    folder = tartlet_home / "models" / "thing"
    folder.mkdir(parents=True)
    (folder / "half a file").touch()
    leftover = store.downloads_folder() / "thing.unfinished"
    leftover.mkdir()
    (leftover / "other half").touch()
    (store.downloads_folder() / ".thing.unfinished.x1").mkdir()

    store._make_once(folder, record(), fill, silent)

    assert {path.name for path in folder.iterdir()} == {"weights", store.RECORD_FILE}
    assert list(store.downloads_folder().iterdir()) == []


def test_processes_that_want_the_same_model_make_it_once(tartlet_home: Path) -> None:
    """Of several processes at once, one works and the others wait for it."""
    context = multiprocessing.get_context("fork")
    started: multiprocessing.Queue[int] = context.Queue()
    folder = tartlet_home / "models" / "thing"
    processes = [context.Process(target=make_once, args=(folder, started)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

    assert [process.exitcode for process in processes] == [0] * 4
    assert (folder / "weights").read_text() == str(started.get())
    assert started.empty()


def test_a_full_disk_is_named(tartlet_home: Path) -> None:
    """What the system refuses becomes a model error with a hint."""

    def fail(_unfinished: Path) -> None:
        raise OSError(28, os.strerror(28))

    with pytest.raises(ModelError, match="No space left on device") as caught:
        store._make_once(tartlet_home / "models" / "thing", record(), fail, silent)

    assert caught.value.code == "disk_full"
    assert "TARTLET_HOME" in caught.value.hint


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    """Only the content counts, not the name."""
    path = tmp_path / "model.gguf"
    path.write_bytes(b"PK\x03\x04")

    with pytest.raises(ModelError, match="not a GGUF file"):
        models.pull(str(path))
