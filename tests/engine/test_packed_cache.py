"""The cache of packed models: the same model faster, never another one, and never a reason to fail."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tartlet_engine import packed_cache
from tartlet_engine.cache_folder import cache_folder
from tartlet_engine.packed_cache import find_packed, make_packed
from tartlet_engine.packed_model import PackedModel
from tartlet_engine.packing import WeightFormat
from tartlet_engine.weights import read_config

PACK = """
import sys
from pathlib import Path
from tartlet_engine.packed_cache import make_packed
from tartlet_engine.packing import WeightFormat
from tartlet_engine.weights import read_config

folder = Path(sys.argv[1])
make_packed(folder, read_config(folder), WeightFormat.INT4)
"""

START = """
import sys
from tartlet_engine.api import EngineConfig
from tartlet_engine.engine import start_engine

engine = start_engine(EngineConfig(model_name="tiny", model_path=sys.argv[1], quantize="int4", kv_pages=8, threads=1))
print(engine.models["tiny"].dtype, sorted({"transformers", "safetensors"} & set(sys.modules)))
engine.close()
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, but for the compiled kernels."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "kernels").symlink_to(cache_folder("kernels"))
    monkeypatch.setenv("TARTLET_HOME", str(home))
    return home


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model, to be changed."""
    return Path(shutil.copytree(tiny_folder, tmp_path / "model"))


def pack(folder: Path, weight_format: WeightFormat = WeightFormat.INT4) -> PackedModel:
    return make_packed(folder, read_config(folder), weight_format)


def is_hit(folder: Path, weight_format: WeightFormat = WeightFormat.INT4) -> bool:
    return find_packed(folder, weight_format) is not None


def packed_files(home: Path) -> list[Path]:
    return sorted((home / "packed").iterdir())


@pytest.mark.parametrize(
    "settings", [{"dtype": "float32"}, {"dtype": "bfloat16"}, {"quantize": "int8"}, {"quantize": "int4"}], ids=str
)
def test_a_hit_computes_what_a_miss_does(tiny_engine: Callable[..., Any], home: Path, settings: dict[str, str]) -> None:
    """The same bits."""
    all_logits, all_files = [], []
    for _ in range(2):
        driver = tiny_engine(**settings)
        context_id = driver.create(driver.open_run(), range(3, 60))
        driver.flush(context_id)
        driver.settle()
        all_logits.append(driver.logits(context_id))
        all_files.append([path.stat().st_ino for path in packed_files(home)])

    assert len(all_files[0]) == 1
    assert all_files[0] == all_files[1]
    assert torch.equal(*all_logits)


def test_each_format_has_its_own(folder: Path) -> None:
    """One is not taken for another."""
    for weight_format in WeightFormat:
        assert not is_hit(folder, weight_format)
        pack(folder, weight_format)

    assert all(is_hit(folder, each) for each in WeightFormat)


def test_changed_weights_are_packed_again(folder: Path) -> None:
    """Even if their file has the size and the time of the old one."""
    path = folder / "model.safetensors"
    pack(folder)
    before, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert not is_hit(folder)


def test_a_changed_configuration_is_read_again(folder: Path) -> None:
    """And makes another model."""
    path = folder / "config.json"
    pack(folder)
    path.write_text(path.read_text().replace('"max_position_embeddings": 2048', '"max_position_embeddings": 1024'))

    assert not is_hit(folder)
    assert pack(folder).context_len == 1024
    assert is_hit(folder)


def test_a_new_layout_is_another_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of older versions are left alone until they are the ones used longest ago."""
    pack(folder)
    monkeypatch.setattr(packed_cache, "LAYOUT_VERSION", -1)

    assert not is_hit(folder)


@pytest.mark.parametrize("damage", [lambda content: content[:-100], lambda _: b"", lambda _: b"something else" * 99])
def test_a_damaged_file_is_replaced(
    folder: Path, home: Path, damage: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """With a line in the log."""
    pack(folder)
    (path,) = packed_files(home)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))

    assert not is_hit(folder)
    assert "cannot be used" in caplog.text
    pack(folder)
    assert path.read_bytes() == whole


def test_only_the_owner_may_read_a_file(folder: Path, home: Path) -> None:
    """A model may be secret."""
    pack(folder)

    assert [stat.S_IMODE(path.stat().st_mode) for path in packed_files(home)] == [0o600]


def test_the_folder_is_bounded(folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was used longest ago goes; the last one stays."""
    monkeypatch.setattr(packed_cache, "MAX_BYTES", 1)
    pack(folder, WeightFormat.INT8)
    pack(folder, WeightFormat.INT4)

    assert len(packed_files(home)) == 1
    assert is_hit(folder, WeightFormat.INT4)


def test_without_a_folder_models_load_all_the_same(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says that they are not kept."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path / "file"))

    assert not is_hit(folder)
    assert pack(folder).context_len == 2048
    assert "is not kept" in caplog.text


def test_a_failed_write_leaves_nothing(folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is loaded, and the folder is empty."""

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(packed_cache, "write_packed", fail)
    pack(folder)

    assert packed_files(home) == []


def test_two_processes_may_pack_at_once(folder: Path, home: Path) -> None:
    """One whole file is left, and nothing else."""
    processes = [subprocess.Popen([sys.executable, "-c", PACK, str(folder)]) for _ in range(2)]

    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    assert len(packed_files(home)) == 1
    assert is_hit(folder)


def test_a_hit_starts_an_engine_without_transformers(folder: Path) -> None:
    """Importing it would take longer than all the rest."""
    pack(folder)
    done = subprocess.run(
        [sys.executable, "-c", START, str(folder)], capture_output=True, text=True, check=True, timeout=120
    )

    if not done.stdout.startswith("int4"):
        pytest.skip("this CPU has no kernels")
    assert done.stdout.strip() == "int4 []"
