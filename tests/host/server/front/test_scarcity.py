from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tartlet.server.front.openai import programs
from tartlet.server.front.scarcity import scarcity, storage_error

pytestmark = pytest.mark.runner


@pytest.mark.parametrize(
    ("number", "status"), [(errno.ENOSPC, 507), (errno.EMFILE, 503), (errno.ENFILE, 503), (errno.ENOMEM, 503)]
)
def test_what_is_wanting(number: int, status: int) -> None:
    """A status by which clients know that it is not their fault; nothing of paths."""
    error = scarcity(OSError(number, os.strerror(number), "/secret/path"))

    assert error is not None
    assert error.status == status
    assert "secret" not in error.message + error.hint


def test_other_errors_are_none() -> None:
    """A file that is not there is a fault of ours, unless it is the disk that was asked."""
    error = FileNotFoundError(errno.ENOENT, "no such file")

    assert scarcity(error) is None
    assert (storage_error(error).status, storage_error(error).code) == (503, "storage_failed")


async def test_a_request_that_needs_a_file(client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is opened: 503 if there are no more, and a fault if it is something else."""
    hello: Any = {"model": "fake", "messages": [{"role": "user", "content": "Hi"}]}
    statuses = []
    for number in (errno.EMFILE, errno.EISDIR):

        def read_text(*_: object, number: int = number, **__: object) -> str:
            raise OSError(number, os.strerror(number))

        programs._content.cache_clear()  # another test may have had it read
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_text", read_text)
            answer = await client.post("/v1/chat/completions", json=hello)
            statuses.append((answer.status_code, answer.json()["error"]["code"]))

    assert statuses == [(503, "unavailable"), (500, "internal")]
