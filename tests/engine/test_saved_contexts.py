"""The store of saved contexts: names, tenants, quotas, times to live, files."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tartlet_engine import saved_contexts
from tartlet_engine.api import ErrorCode
from tartlet_engine.command_error import CommandError
from tartlet_engine.saved_contexts import SavedContexts
from tartlet_engine.saved_file import SavedHeader, Snapshot
from tartlet_engine.saved_folder import place_of

MakeStore = Callable[..., SavedContexts]


def snapshot(
    name: str = "a", tenant: str = "t", value: int = 1, num_pages: int = 2, expires_ms: int | None = None
) -> Snapshot:
    header = SavedHeader(tenant, name, "tiny", "model 1", 3, 0, expires_ms, "state")
    pages = torch.full((num_pages, 100), value, dtype=torch.uint8)
    return Snapshot(header, torch.tensor([1, 2, 3], dtype=torch.int32), pages, torch.ones(5))


class Clock:
    """Seconds since the epoch, as the test sets them."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "disk"])
def make(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[MakeStore]:
    """Makes stores: in memory, or of one folder."""
    stores: list[SavedContexts] = []

    def make_store(fingerprint: str = "model 1", **options: Any) -> SavedContexts:
        folder = tmp_path / "saved" if request.param == "disk" else None
        stores.append(SavedContexts(fingerprint, folder, clock=clock, **options))
        return stores[-1]

    yield make_store
    for store in stores:
        store.close()


def refused(call: Callable[..., object], *args: Any, **options: Any) -> ErrorCode:
    with pytest.raises(CommandError) as caught:
        call(*args, **options)
    return caught.value.error.code


def value_of(found: Snapshot) -> int:
    return int(found.pages[0, 0])


def test_what_is_put_is_found(make: MakeStore) -> None:
    """A saved context comes back whole, and its list tells of it."""
    store = make()
    saved = snapshot()
    store.put(saved, overwrite=False)
    found = store.get("t", "a")
    (entry,) = store.all_of("t")

    assert found.header == saved.header
    assert torch.equal(found.pages, saved.pages)
    assert entry.header == saved.header
    assert entry.num_bytes >= saved.num_bytes


def test_a_name_is_taken_until_it_is_overwritten_or_deleted(make: MakeStore) -> None:
    """Saving again needs `overwrite`; the new contents take the place of the old ones."""
    store = make()
    store.put(snapshot(value=1), overwrite=False)

    assert refused(store.put, snapshot(value=2), overwrite=False) is ErrorCode.ALREADY_EXISTS
    assert value_of(store.get("t", "a")) == 1
    store.put(snapshot(value=3), overwrite=True)
    assert value_of(store.get("t", "a")) == 3
    store.delete("t", "a")
    assert refused(store.get, "t", "a") is ErrorCode.NOT_FOUND
    assert refused(store.delete, "t", "a") is ErrorCode.NOT_FOUND
    store.put(snapshot(value=4), overwrite=False)
    assert value_of(store.get("t", "a")) == 4


def test_tenants_do_not_see_each_other(make: MakeStore) -> None:
    """The same name is another context for another tenant, whose deletion and quota concern nobody else."""
    store = make(max_bytes=1500)
    store.put(snapshot(tenant="one", value=1, num_pages=8), overwrite=False)
    store.put(snapshot(tenant="two", value=2, num_pages=8), overwrite=False)
    store.delete("one", "a")

    assert value_of(store.get("two", "a")) == 2
    assert store.all_of("one") == []
    assert refused(store.get, "one", "a") is ErrorCode.NOT_FOUND


def test_a_quota_is_kept(make: MakeStore) -> None:
    """What would exceed the quota is refused with the numbers; what it would replace does not count."""
    store = make(max_bytes=2500)
    store.put(snapshot("a", num_pages=10), overwrite=False)
    with pytest.raises(CommandError, match="of 2,500 are used by 1 others") as caught:
        store.put(snapshot("b", num_pages=14), overwrite=False)
    store.put(snapshot("a", num_pages=16), overwrite=True)

    assert caught.value.error.code is ErrorCode.QUOTA_EXCEEDED
    assert [entry.header.name for entry in store.all_of("t")] == ["a"]
    assert refused(store.put, snapshot("a", num_pages=40), overwrite=True) is ErrorCode.QUOTA_EXCEEDED
    assert len(store.get("t", "a").pages) == 16


def test_the_number_of_contexts_is_limited(make: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant cannot have more contexts than can be looked at."""
    monkeypatch.setattr(saved_contexts, "MAX_CONTEXTS", 2)
    store = make()
    store.put(snapshot("a"), overwrite=False)
    store.put(snapshot("b"), overwrite=False)

    assert refused(store.put, snapshot("c"), overwrite=False) is ErrorCode.QUOTA_EXCEEDED
    store.put(snapshot("b"), overwrite=True)


def test_what_has_expired_is_gone(make: MakeStore, clock: Clock) -> None:
    """At its time a context cannot be opened, is not listed, takes no quota, and leaves its name free."""
    store = make(max_bytes=2500)
    store.put(snapshot("a", num_pages=16, expires_ms=1_001_000), overwrite=False)
    clock.now = 1000.999
    assert value_of(store.get("t", "a")) == 1
    clock.now = 1001.0

    assert refused(store.get, "t", "a") is ErrorCode.NOT_FOUND
    assert store.all_of("t") == []
    assert refused(store.delete, "t", "a") is ErrorCode.NOT_FOUND
    store.put(snapshot("a", num_pages=16), overwrite=False)


# ---- On disk ----


@pytest.fixture
def on_disk(tmp_path: Path, clock: Clock) -> Iterator[MakeStore]:
    stores: list[SavedContexts] = []

    def make_store(**options: Any) -> SavedContexts:
        stores.append(SavedContexts("model 1", tmp_path / "saved", clock=clock, **options))
        return stores[-1]

    yield make_store
    for store in stores:
        store.close()


def files(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "saved").rglob("*") if path.is_file() and path.name != ".lock"]


def headers_of(store: SavedContexts) -> dict[Path, Any]:
    assert store._folder is not None
    return store._folder._headers


def test_what_has_expired_of_others_takes_no_memory(make: MakeStore, clock: Clock) -> None:
    """A tenant that never comes back does not keep what it saved for a time."""
    store = make()
    store.put(snapshot("a", tenant="gone", expires_ms=2_000_000), overwrite=False)
    clock.now = 3000.0

    assert store.all_of("t") == []
    assert store._in_memory == {}
    assert store.all_of("gone") == []


def test_only_what_is_there_is_remembered(on_disk: MakeStore) -> None:
    """Headers are kept of files that are there, without what the program side has saved with them."""
    store = on_disk()
    for name in ("a", "b"):
        store.put(snapshot(name), overwrite=False)
    store.close()
    store = on_disk()
    assert [entry.header.host_state for entry in store.all_of("t")] == ["", ""]
    assert store.get("t", "a").header.host_state == "state"
    for name in ("a", "b"):
        store.delete("t", name)
        assert len(store.all_of("t")) == sum(map(len, headers_of(store).values()))

    assert headers_of(store) == {}


def test_a_restart_keeps_everything(on_disk: MakeStore, tmp_path: Path) -> None:
    """After `close`, another store finds all of it in the folder, and nothing unfinished lies there."""
    store = on_disk()
    for index in range(5):
        store.put(snapshot(f"name {index}", value=index), overwrite=False)
    store.put(snapshot("name 0", value=9), overwrite=True)
    store.delete("t", "name 4")
    store.close()
    again = on_disk()

    assert [value_of(again.get("t", f"name {index}")) for index in range(4)] == [9, 1, 2, 3]
    assert [entry.header.name for entry in again.all_of("t")] == [f"name {index}" for index in range(4)]
    assert sorted(path.suffix for path in files(tmp_path)) == [".safetensors"] * 4


def test_another_model_is_refused_by_name(on_disk: MakeStore) -> None:
    """What another model has saved is listed, and refused with the model's name; it can be deleted."""
    store = on_disk()
    saved = snapshot()
    header = SavedHeader("t", "a", "Other-7B", "model 2", 3, 0, None, "")
    store.put(Snapshot(header, saved.token_ids, saved.pages, saved.logits), overwrite=False)
    store.close()
    again = on_disk()

    with pytest.raises(CommandError, match="Other-7B") as caught:
        again.get("t", "a")
    assert caught.value.error.code is ErrorCode.UNSUPPORTED
    assert [entry.header.model for entry in again.all_of("t")] == ["Other-7B"]
    again.delete("t", "a")
    assert again.all_of("t") == []


def test_stores_of_one_folder_see_each_other(on_disk: MakeStore) -> None:
    """Two processes share a folder: what one has written the other finds, counts and deletes."""
    one, two = on_disk(), on_disk(max_bytes=2500)
    one.put(snapshot("a", num_pages=16), overwrite=False)
    one.close()

    assert value_of(two.get("t", "a")) == 1
    assert refused(two.put, snapshot("b", num_pages=16), overwrite=False) is ErrorCode.QUOTA_EXCEEDED
    two.delete("t", "a")
    assert refused(one.get, "t", "a") is ErrorCode.NOT_FOUND


@pytest.mark.parametrize("name", ["../../escape", "a/b", "/etc/passwd", ".", "x" * 128])
def test_names_are_no_paths(on_disk: MakeStore, tmp_path: Path, name: str) -> None:
    """Whatever tenants and contexts are called, files lie two folders deep under names of digits."""
    store = on_disk()
    store.put(snapshot(name, tenant=f"{name}/.."), overwrite=False)
    store.close()
    (path,) = files(tmp_path)

    assert path.parent.parent == tmp_path / "saved"
    assert set(path.parent.name + path.stem) <= set("0123456789abcdef")
    assert value_of(on_disk().get(f"{name}/..", name)) == 1


@pytest.mark.parametrize("damage", ["cut", "altered", "empty"])
def test_a_damaged_file_is_refused(on_disk: MakeStore, tmp_path: Path, damage: str) -> None:
    """It is not found, with the reason, counts nevertheless, and can be overwritten or deleted."""
    store = on_disk(max_bytes=5000)
    store.put(snapshot(num_pages=20), overwrite=False)
    store.close()
    (path,) = files(tmp_path)
    content = path.read_bytes()
    changed = {"cut": content[:-1], "altered": content[:-1] + bytes([content[-1] ^ 1]), "empty": b""}[damage]
    path.write_bytes(changed)
    again = on_disk(max_bytes=5000)

    with pytest.raises(CommandError, match="cannot be used") as caught:
        again.get("t", "a")
    assert caught.value.error.code is ErrorCode.NOT_FOUND
    assert refused(again.put, snapshot(), overwrite=False) is ErrorCode.ALREADY_EXISTS
    again.put(snapshot(value=5), overwrite=True)
    assert value_of(again.get("t", "a")) == 5
    again.delete("t", "a")
    assert again.all_of("t") == []


def test_a_file_in_another_place_is_refused(on_disk: MakeStore, tmp_path: Path) -> None:
    """A file that is put where another tenant's or another name's belongs is not given out there."""
    store = on_disk()
    store.put(snapshot("a", tenant="one"), overwrite=False)
    store.put(snapshot("a", tenant="two", value=2), overwrite=False)
    store.close()
    one, two = (tmp_path / "saved" / place_of(tenant, "a") for tenant in ("one", "two"))
    shutil.copy(one, two)
    again = on_disk()

    assert refused(again.get, "two", "a") is ErrorCode.NOT_FOUND
    assert again.all_of("two") == []


def test_what_cannot_be_written_stays_in_memory(on_disk: MakeStore, tmp_path: Path) -> None:
    """If the folder cannot take a file, the context can be opened as long as the engine runs."""
    store = on_disk()
    tenant_folder = (tmp_path / "saved" / place_of("t", "a")).parent
    tenant_folder.parent.mkdir(parents=True)
    tenant_folder.write_text("in the way")
    store.put(snapshot(), overwrite=False)
    store.close()

    assert value_of(store.get("t", "a")) == 1


def test_what_was_replaced_before_it_was_written_takes_no_memory(on_disk: MakeStore) -> None:
    """However slow the disk, of a name that is saved over and over only the newest is held, and written."""
    store, writer_goes_on = on_disk(), threading.Event()
    store._writer.submit(writer_goes_on.wait)
    replaced = snapshot(value=1)
    pages = weakref.ref(replaced.pages)
    store.put(replaced, overwrite=True)
    del replaced
    store.put(snapshot(value=2), overwrite=True)

    assert pages() is None
    writer_goes_on.set()
    store.close()
    assert value_of(on_disk().get("t", "a")) == 2


def test_a_full_disk_is_said_so(on_disk: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the disk has no room, saving is refused with the numbers."""
    store = on_disk()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 90, 10))

    assert refused(store.put, snapshot(), overwrite=False) is ErrorCode.UNAVAILABLE


KILLED = """
import os, signal, sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
import torch
from tartlet_engine.saved_contexts import SavedContexts
from tartlet_engine.saved_file import SavedHeader, Snapshot

os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
header = SavedHeader("t", "a", "tiny", "model 1", 3, 0, None, "")
store = SavedContexts("model 1", Path(sys.argv[1]))
saved = Snapshot(header, torch.zeros(3, dtype=torch.int32), torch.zeros(1, 9, dtype=torch.uint8), None)
store.put(saved, overwrite=True)
store.close()
"""


def test_a_process_killed_before_the_rename(on_disk: MakeStore, tmp_path: Path) -> None:
    """The name still stands for what it stood for, and the next start sweeps the rest away."""
    store = on_disk()
    store.put(snapshot(value=7), overwrite=False)
    store.close()
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "saved"), *sys.path], check=False, timeout=120
    )
    left = len(files(tmp_path))
    again = on_disk()
    found = again.get("t", "a")
    again.close()

    assert killed.returncode == -9
    assert left == 2
    assert value_of(found) == 7
    assert [path.suffix for path in files(tmp_path)] == [".safetensors"]


def test_a_start_forgets_what_has_expired(on_disk: MakeStore, tmp_path: Path, clock: Clock) -> None:
    """Files of tenants who never come back do not stay for ever."""
    store = on_disk()
    store.put(snapshot("a", expires_ms=1_001_000), overwrite=False)
    store.put(snapshot("b"), overwrite=False)
    store.close()
    clock.now = 2000.0
    on_disk().close()

    assert len(files(tmp_path)) == 1


def test_what_has_expired_is_swept_now_and_then(on_disk: MakeStore, tmp_path: Path, clock: Clock) -> None:
    """In a host that serves on and on, files of tenants who never come back go when others save."""
    store = on_disk()
    store.put(snapshot("a", tenant="gone", expires_ms=1_001_000), overwrite=False)
    store._writer.submit(lambda: None).result()
    clock.now += saved_contexts.SWEEP_S - 1
    store.put(snapshot("b"), overwrite=False)
    store._writer.submit(lambda: None).result()
    assert len(files(tmp_path)) == 2  # it is not looked for all the time
    clock.now += 1
    store.put(snapshot("c"), overwrite=False)
    store.close()

    assert len(files(tmp_path)) == 2
    assert [entry.header.name for entry in store.all_of("t")] == ["b", "c"]


def test_a_folder_among_the_files_is_in_nobodys_way(on_disk: MakeStore, tmp_path: Path) -> None:
    """Whatever somebody has put there, contexts can be saved, listed, opened and deleted."""
    store = on_disk()
    store.put(snapshot("a", value=1), overwrite=False)
    store.close()
    (path,) = files(tmp_path)
    path.with_name("folder.safetensors").mkdir()
    (path.parent.parent / "text").write_text("no folder")
    again = on_disk()
    again.put(snapshot("b", value=2), overwrite=False)

    assert [entry.header.name for entry in again.all_of("t")] == ["a", "b"]
    assert value_of(again.get("t", "a")) == 1
    again.delete("t", "a")
    assert [entry.header.name for entry in again.all_of("t")] == ["b"]
