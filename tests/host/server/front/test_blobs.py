from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tartlet.server.front.blobs import Blobs
from tartlet.server.front.errors import ApiError

ACME = "acme"


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path)


async def chunks(*data: bytes) -> AsyncIterator[bytes]:
    for chunk in data:
        yield chunk


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


async def test_a_file_lies_under_its_digest(blobs: Blobs, tmp_path: Path) -> None:
    """Whatever the pieces in which it came."""
    async with blobs.upload(ACME, chunks(b"ab", b"", b"c"), 3) as blob:
        blobs.keep(blob)

    assert blob.digest == hashlib.sha256(b"abc").hexdigest()
    assert blobs.path(ACME, blob.digest).read_bytes() == b"abc"
    assert names(tmp_path) == [blob.digest]


async def test_what_nobody_keeps_is_gone(blobs: Blobs, tmp_path: Path) -> None:
    """As after a program that was refused."""
    with pytest.raises(ValueError, match="refused"):
        async with blobs.upload(ACME, chunks(b"abc"), 3):
            raise ValueError("refused")

    assert names(tmp_path) == []


async def test_what_is_there_stays(blobs: Blobs, tmp_path: Path) -> None:
    """An upload of the same that comes to nothing does not take it away."""
    async with blobs.upload(ACME, chunks(b"abc"), 3) as blob:
        blobs.keep(blob)
    async with blobs.upload(ACME, chunks(b"abc"), 3):
        pass

    assert names(tmp_path) == [blob.digest]


async def test_two_upload_the_same(blobs: Blobs, tmp_path: Path) -> None:
    """One that keeps it is enough, whoever ends first; none, and it is gone."""
    for kept_by in ("first", "second", None):
        async with blobs.upload(ACME, chunks(b"abc"), 3) as first:
            async with blobs.upload(ACME, chunks(b"abc"), 3) as second:
                if kept_by == "second":
                    blobs.keep(second)
            if kept_by == "first":
                blobs.keep(first)
        assert names(tmp_path) == ([] if kept_by is None else [first.digest])
        blobs.discard(ACME, first.digest)


async def test_a_file_deleted_while_it_is_uploaded_again(blobs: Blobs, tmp_path: Path) -> None:
    """It stays for the new one's sake, if that keeps it."""
    async with blobs.upload(ACME, chunks(b"abc"), 3) as blob:
        blobs.keep(blob)
    async with blobs.upload(ACME, chunks(b"abc"), 3) as again:
        blobs.discard(ACME, blob.digest)
        assert blobs.path(ACME, blob.digest).exists()
        blobs.keep(again)
    assert names(tmp_path) == [blob.digest]
    blobs.discard(ACME, blob.digest)

    assert names(tmp_path) == []


async def test_too_large(blobs: Blobs, tmp_path: Path) -> None:
    """It is refused by number, before the rest is read, and nothing is left."""
    read = []

    async def endless() -> AsyncIterator[bytes]:
        while True:
            read.append(1)
            yield b"x" * 10

    with pytest.raises(ApiError) as error:
        async with blobs.upload(ACME, endless(), 25):
            pass
    assert (error.value.status, error.value.used, error.value.allowed) == (413, 30, 25)
    assert len(read) == 3
    assert names(tmp_path) == []


async def test_a_client_that_vanishes(blobs: Blobs, tmp_path: Path) -> None:
    """What it had sent is gone."""

    async def broken() -> AsyncIterator[bytes]:
        yield b"abc"
        raise ConnectionResetError

    with pytest.raises((ConnectionResetError, ApiError)):
        async with blobs.upload(ACME, broken(), 100):
            pass
    assert names(tmp_path) == []


@pytest.mark.parametrize(("number", "status"), [(errno.ENOSPC, 507), (errno.EDQUOT, 507), (errno.EIO, 503)])
async def test_a_disk_that_is_full(
    blobs: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, status: int
) -> None:
    """The client hears so, and nothing is left."""

    def full(_handle: int) -> None:
        raise OSError(number, os.strerror(number), str(tmp_path))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ApiError) as error:
        async with blobs.upload(ACME, chunks(b"abc"), 100):
            pass
    assert error.value.status == status
    assert str(tmp_path) not in error.value.message
    assert names(tmp_path) == []


async def test_a_sweep(blobs: Blobs, tmp_path: Path) -> None:
    """What nobody has, and what a front that died has left, goes."""
    async with blobs.upload(ACME, chunks(b"abc"), 3) as blob:
        blobs.keep(blob)
    (tmp_path / "upload-x").write_bytes(b"half")
    for folder in (tmp_path, tmp_path / ACME):
        (folder / ("0" * 64)).write_bytes(b"nobody's")

    assert blobs.sweep({(ACME, blob.digest)}) == 3
    assert names(tmp_path) == [blob.digest]


def test_a_file_of_all_tenants_becomes_one_of_each(blobs: Blobs, tmp_path: Path) -> None:
    """As older versions kept them."""
    (tmp_path / "abc").write_bytes(b"shared")
    blobs.sweep({(ACME, "abc"), ("globex", "abc")})

    assert [blobs.path(tenant, "abc").read_bytes() for tenant in (ACME, "globex")] == [b"shared"] * 2
    assert not (tmp_path / "abc").exists()


async def test_tenants_share_no_files(blobs: Blobs, tmp_path: Path) -> None:
    """Each has its own of the same, and deletes its own."""
    for tenant in (ACME, "globex"):
        async with blobs.upload(tenant, chunks(b"abc"), 3) as blob:
            blobs.keep(blob)
    assert names(tmp_path) == [blob.digest] * 2
    blobs.discard(ACME, blob.digest)

    assert not blobs.path(ACME, blob.digest).exists()
    assert blobs.path("globex", blob.digest).read_bytes() == b"abc"
