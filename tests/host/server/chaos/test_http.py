"""Bytes that almost are requests, for every route of a running server, and almost are a WebSocket's frames."""

from __future__ import annotations

import contextlib
import json
import random
import re
import socket
from typing import Any

import psutil
import pytest

from tests.host.server.chaos.raw_client import RawClient
from tests.host.server.chaos.server_process import STORY, ServerProcess, begin, upload
from tests.host.server.chaos.test_wire import damaged

pytestmark = [pytest.mark.runner, pytest.mark.slow]

ROUNDS = 15  # of each route
MOST_GROWTH = 100 << 20
KNOWN = {"ref": "story", "name": "story", "run_id": "run_1", "path": "a/b"}
BODIES: list[Any] = [{}, {"input": {"n": 1}}, {"model": "fake", "messages": [{"role": "user", "content": "Hi"}]}]
HEADERS = [
    "Content-Type: application/json",
    "Content-Type: text/x-python",
    "Transfer-Encoding: chunked",
    "Content-Length: 10",
    "Expect: 100-continue",
    "Connection: close",
    "Last-Event-ID: 5",
    "Idempotency-Key: a",
    "Upgrade: websocket",
    "Accept: text/event-stream",
]


async def test_damaged_requests(server: ServerProcess) -> None:
    """Each is answered as it should be or refused, whatever is wrong with it; nothing has to be started again."""
    client = server.client()
    await upload(client, STORY, "story")
    paths = (await client.get("/openapi.json")).json()["paths"]
    processes = [*server.children("engine"), *server.children("worker")]
    before = psutil.Process(server.pid).memory_info().rss
    raw, draw = RawClient(server.url, server.key), random.Random(7)
    statuses: set[int] = set()
    for path, methods in paths.items():
        address = re.sub(r"\{(\w+)(:path)?\}", lambda found: KNOWN[found[1]], path)
        for number in range(ROUNDS * len(methods)):
            method = draw.choice([*methods]).upper()
            body = json.dumps(draw.choice(BODIES))
            headers = [*draw.sample(HEADERS, draw.randrange(4)), f"Content-Length: {len(body)}"]
            request = f"{raw.head(method, address, *headers)}\r\n{body}".encode()
            statuses |= answers_to(server, damaged(request, number + len(path)))

    assert {200, 400, 404, 415} <= statuses
    assert not {status for status in statuses if status >= 500 and status != 503}, statuses
    assert [*server.children("engine"), *server.children("worker")] == processes
    assert psutil.Process(server.pid).memory_info().rss < before + MOST_GROWTH


def answers_to(server: ServerProcess, data: bytes) -> set[int]:
    """Send it, say that nothing more comes, and read what is answered."""
    host, port = server.url.removeprefix("http://").split(":")
    answer = b""
    with contextlib.closing(socket.create_connection((host, int(port)))) as connection:
        connection.settimeout(5)
        with contextlib.suppress(OSError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(65_536):
                answer += chunk
    return {int(status) for status in re.findall(rb"HTTP/1\.1 (\d\d\d) ", answer)}


async def test_damaged_frames_in_a_session(server: ServerProcess) -> None:
    """They end the session and not the run, which was left alone; and no other session."""
    client = server.client()
    await upload(client, STORY, "story")
    run_id = await begin(client, "story", n=1000, times=100)
    handshake = RawClient(server.url, server.key).head(
        "GET",
        f"/v1/runs/{run_id}/session",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: " + "A" * 22 + "==",
    )
    text = json.dumps({"type": "nothing", "data": "x" * 50}).encode()
    frames = b"".join(
        bytes([first, 0x80 | len(text), 0, 0, 0, 0]) + text for first in (0x81, 0x82, 0x89, 0x01, 0x80, 0xF1)
    )
    for number in range(100):
        said = handshake.encode() + b"\r\n" + damaged(frames, number) + random.Random(number).randbytes(number)
        assert answers_to(server, said) <= {101, 400}

    assert (await client.get(f"/v1/runs/{run_id}")).json()["status"] in ("running", "succeeded")
    assert server.children("worker")
