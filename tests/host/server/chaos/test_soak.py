"""A server that goes on for long: nothing of what has ended stays in any process, but what is meant to be kept."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from pathlib import Path
from typing import Any

import httpx2
import pytest
import websockets

from tests.host.server.chaos.conftest import MakeServer
from tests.host.server.chaos.server_process import SOURCE, ServerProcess, upload

pytestmark = [pytest.mark.runner, pytest.mark.stress, pytest.mark.timeout(3600)]

RUNS = int(os.environ.get("SOAK_RUNS", "10000"))
WARM_UP = RUNS // 4
AT_ONCE = 16
MOST_GROWTH = 0.05
SLACK_KIB = 2048  # of a process; its allocator may come by as much at any time
MOST_BYTES_OF_A_RUN = 1500  # in the database, with its indexes
WAL_BYTES = 8 << 20  # that are not in the database's own file yet

SHORT = """
import asyncio
from tartlet_sdk import Model, inferlet

@inferlet
async def main(number: int = 0) -> int:
    print(f"run {number}", flush=True)
    context = Model.default().context()
    context.fill(f"This is number {number}.")
    fork = context.fork()
    await asyncio.gather(context.generate(max_tokens=4), fork.generate(max_tokens=4))
    return number
"""
WAITS = """
import asyncio
from tartlet_sdk import inferlet

@inferlet
async def main() -> None:
    await asyncio.sleep(3600)
"""


async def test_ten_thousand_runs(make_server: MakeServer) -> None:
    """Waited for, streamed, cancelled in a session, as chats; uploads, too: memory and files stay, once warm."""
    server = make_server(settings={"limits": {"inferlets": 100, "names": 100}})
    await server.start()
    client = server.client()
    await upload(client, SHORT, "short")
    await upload(client, WAITS, "waits")
    numbers = itertools.count()
    warm: dict[str, Any] = {}

    async def work() -> None:
        while (number := next(numbers)) < RUNS:
            await one(client, server, number)
            if number % (RUNS // 10) == 0:
                print(number, json.dumps(figures(server)), flush=True)
            if number == WARM_UP:
                warm.update(figures(server))

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    await server.check_idle()
    last = figures(server)
    print("end", json.dumps(last))

    assert last.keys() == warm.keys()
    for name, (kib, files) in last.items():
        if name != "database":
            assert kib <= warm[name][0] * (1 + MOST_GROWTH) + SLACK_KIB, (name, warm, last)
            assert files <= warm[name][1] + AT_ONCE, (name, warm, last)
    grown = (last["database"][0] - warm["database"][0]) * 1024
    assert grown < (RUNS - WARM_UP) * MOST_BYTES_OF_A_RUN + WAL_BYTES
    await server.stop()


async def one(client: httpx2.AsyncClient, server: ServerProcess, number: int) -> None:
    """Do one thing; most are runs that are waited for."""
    given: dict[str, Any] = {"input": {"number": number}}
    if number % 100 == 1:
        source = f"{SHORT}\n# {number}\n"
        answer = await client.post("/v1/inferlets?name=other", content=source, headers=SOURCE)
        assert answer.status_code == 201, answer.text
        run = (await client.post(f"/v1/inferlets/{answer.json()['id']}/runs", json=given)).json()
        assert run["result"] == number, run
        assert (await client.delete(f"/v1/inferlets/{answer.json()['id']}")).status_code == 200
    elif number % 50 == 2:
        run_id = (await client.post("/v1/inferlets/waits/runs", json={"wait": False})).json()["id"]
        address = f"{server.url.replace('http', 'ws')}/v1/runs/{run_id}/session"
        async with websockets.connect(address, additional_headers={"Authorization": f"Bearer {server.key}"}) as session:
            await session.recv()
            await session.send('{"type": "cancel"}')
            assert [json.loads(message)["type"] async for message in session][-1] == "finished"
    elif number % 10 == 3:
        async with client.stream("POST", "/v1/inferlets/short/runs", json={**given, "stream": True}) as stream:
            assert '"finished"' in [line async for line in stream.aiter_lines()][-2]
    elif number % 10 == 4:
        body = {"model": "fake", "messages": [{"role": "user", "content": f"Hello {number}"}], "max_tokens": 8, "n": 2}
        assert (await client.post("/v1/chat/completions", json=body)).status_code == 200
    else:
        run = (await client.post("/v1/inferlets/short/runs", json=given)).json()
        assert run["result"] == number, run


def figures(server: ServerProcess) -> dict[str, tuple[int, int]]:
    """Of each process: KiB of memory that is its own, swapped or not, and open files. And what the database takes."""
    processes = {"front": server.pid, "engine": server.children("engine")[0]}
    processes |= {f"worker {number}": pid for number, pid in enumerate(sorted(server.children("worker")))}
    found = {name: (_own_kib(pid), _num_files(pid)) for name, pid in processes.items()}
    sizes = [path.stat().st_size for path in (server.home / "server").glob("tartlet.db*")]
    return {**found, "database": (sum(sizes) // 1024, len(sizes))}


def _own_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon:", "VmSwap:")))


def _num_files(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:  # children keep themselves private, from all but root
        return 0
