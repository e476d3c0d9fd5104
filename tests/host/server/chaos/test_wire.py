"""What comes over the sockets between processes is damaged, or said by who has been taken over: the server goes on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
from pathlib import Path
from typing import Any, get_args

import httpx2
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tartlet.errors import WireError
from tartlet.server.engine.messages import NUM_IDS, AskStats, CheckIntegrity, Hello, Ping, Submit
from tartlet.server.wire.frames import Frames
from tartlet_engine.api import Command
from tests.host.server.chaos.conftest import ROOMY, MakeServer
from tests.host.server.chaos.hostile_compiler import WAYS as COMPILER_WAYS
from tests.host.server.chaos.hostile_worker import WAYS
from tests.host.server.chaos.server_process import (
    SOURCE,
    STORY,
    ServerProcess,
    begin,
    ended,
    settled,
    upload,
)

pytestmark = [pytest.mark.runner, pytest.mark.slow]

MOST_GROWTH = 200 << 20
"""Bytes by which a process may grow while it is sent nonsense: a message may have 64 MiB."""
HOSTILE = "tests.host.server.chaos.hostile_{}"


def frame(message: Any) -> bytes:
    """A message as it goes over a socket."""
    return bytes(Frames[Any](Any).pack(message))


NUMBERS = st.integers(0, NUM_IDS) | st.integers(0, 20)
COMMANDS = st.one_of(*(st.builds(kind) for kind in get_args(Command)))
MESSAGES = st.one_of(
    st.builds(Submit, st.lists(COMMANDS, max_size=4).map(tuple), st.none() | NUMBERS),
    st.builds(AskStats, NUMBERS),
    st.builds(Ping, NUMBERS),
    st.builds(CheckIntegrity, NUMBERS),
    st.just(Hello()),
)


def damaged(data: bytes, seed: int) -> bytes:
    """Bytes of which some are changed, missing, doubled, or say that much more comes."""
    draw = random.Random(seed)
    changed = bytearray(data)
    for _ in range(draw.randrange(3)):
        at = draw.randrange(len(changed) or 1)
        match draw.randrange(5):
            case 0 if changed:
                changed[at % len(changed)] ^= 1 << draw.randrange(8)
            case 1:
                del changed[at:]
            case 2:
                changed[at:at] = changed[at : at + 40]
            case 3:
                changed[at:at] = draw.randbytes(draw.randrange(40))
            case _:
                changed[:4] = draw.choice([b"\xff\xff\xff\xff", b"\x00\x00\x00\x04", b"\x00\x00\x00\x00"])
    return bytes(changed)


async def test_damaged_commands_to_the_engine(server: ServerProcess) -> None:
    """Its own connections go on, what came over the damaged one is gone with it, and memory is bounded."""
    client = server.client()
    await upload(client, STORY, "story")
    run_id = await begin(client, "story", n=1000, times=100)
    (engine,) = server.children("engine")
    (path,) = server.sockets.glob("tartlet-sockets-*/engine-*")
    before = psutil.Process(engine).memory_info().rss
    await asyncio.to_thread(send_nonsense, path)

    assert server.children("engine") == [engine]
    assert psutil.Process(engine).memory_info().rss < before + MOST_GROWTH
    assert (await ended(client, run_id))["result"] == ("Once upon a time. " * 100)[:1000]


def send_nonsense(path: Path) -> None:
    """Connect a few hundred times, and say what almost makes sense."""

    @settings(max_examples=300, deadline=None, suppress_health_check=[*HealthCheck], database=None)
    @given(st.lists(MESSAGES, max_size=5), st.integers(0, 1 << 30), st.booleans())
    def send(messages: list[Any], seed: int, is_polite: bool) -> None:
        try:
            frames = [frame(message) for message in messages]
        except WireError:  # numbers that no message holds
            return
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as raw, contextlib.suppress(OSError):
            raw.connect(str(path))
            raw.settimeout(20)
            if is_polite:
                raw.sendall(frame(Hello()))
            random.Random(seed).shuffle(frames)
            for number, each in enumerate(frames):
                raw.sendall(damaged(each, seed + number))
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(65_536):
                pass

    send()


async def test_a_worker_that_has_been_taken_over(make_server: MakeServer) -> None:
    """Whatever it says costs its own runs at the most; the front and the other worker stay, and clients hear sense."""
    server = make_server(fake=ROOMY, worker_module=HOSTILE.format("worker"), restart_s=0.05)
    (server.home / "way").write_text(WAYS[0])
    await server.start()
    client = server.client()
    await upload(client, STORY, "story")
    front, (other,) = server.pid, server.children("worker")
    before = psutil.Process(front).memory_info().rss
    for number, way in enumerate(WAYS):
        await settled(lambda: len(hostile_children(server)) == 1)
        asked = [client.post("/v1/inferlets/story/runs", json={"input": {"n": 60}}) for _ in range(24)]
        for answer in await asyncio.gather(*asked):
            assert answer.status_code in (200, 503), (way, answer.text)
            if answer.status_code == 200:
                assert (await client.get(f"/v1/runs/{answer.json()['id']}")).status_code == 200, way
        assert (await client.get("/v1/runs?limit=100")).status_code == 200, way
        (server.home / "way").write_text(WAYS[(number + 1) % len(WAYS)])
        for hostile in hostile_children(server):
            os.kill(hostile, signal.SIGKILL)
            await settled(lambda hostile=hostile: hostile not in hostile_children(server))

    assert (server.pid, server.children("worker")) == (front, [other])
    assert psutil.Process(front).memory_info().rss < before + MOST_GROWTH
    assert '"trace"' not in server.log
    await server.stop()


def hostile_children(server: ServerProcess) -> list[int]:
    """The process in the first worker's place."""
    found = []
    for child in psutil.Process(server.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if HOSTILE.format("worker") in child.cmdline():
                found.append(child.pid)
    return found


async def test_a_compiler_that_has_been_taken_over(make_server: MakeServer) -> None:
    """Or that fails in any other way: the upload is answered, nothing of it is kept, and the next is compiled."""
    constants = {"tartlet.server.compile.client:_MODULE": HOSTILE.format("compiler")}
    server = make_server(constants=constants, settings={"compile_cpu_s": 1, "compile_at_once": 4})
    await server.start()
    client = server.client()

    async def send(way: int) -> httpx2.Response:
        return await client.post("/v1/inferlets", content=f"'''way {way} '''", headers=SOURCE)

    answers = await asyncio.gather(*(send(way) for way in range(len(COMPILER_WAYS))))
    for way, answer in enumerate(answers):
        assert answer.status_code in (400, 500, 503), (way, answer.text)
        assert answer.json()["error"]["code"], (way, answer.text)
        assert len(answer.text) < 10_000
    assert (await client.get("/v1/inferlets")).json()["data"] == []
    assert '"trace"' not in server.log
    await server.check_idle()
    await server.stop()
    assert not [path for path in (server.home / "server" / "blobs").rglob("*") if path.is_file()]
