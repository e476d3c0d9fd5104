"""Requests of all kinds, made up from the server's own description of itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

pytestmark = [pytest.mark.runner, pytest.mark.slow]

SERVER = """
import asyncio
from contextlib import asynccontextmanager
from tartlet.progress import silent
from tartlet.server import logs
from tartlet.server.front.in_process import open_in_process
from tartlet.server.front.running import run_server
from tartlet.server.settings import Settings
from tartlet.testing import FakeEngine

@asynccontextmanager
async def open_fake(settings, progress):
    engine = FakeEngine()
    async with open_in_process(engine=engine, spares=0) as opened:
        yield opened
    engine.check_integrity()
    engine.close()

logs.set_up("text", "error")
asyncio.run(run_server(Settings(port=0, drain_s=0), open_fake, silent, lambda url, key: print(url, key, flush=True)))
"""
ECHO = "from tartlet_sdk import inferlet\n@inferlet\ndef main(request: object = None) -> object: return request\n"
FEW = settings(max_examples=12, derandomize=True, deadline=None, suppress_health_check=[*HealthCheck])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, own_home: Path) -> Iterator[tuple[str, str]]:
    """A server without a model: its URL and a key. It must still be well at the end."""
    home = tmp_path_factory.mktemp("server")
    for name in ("runners", "components"):
        (home / name).symlink_to((own_home / name).resolve())
    environment = {**os.environ, "TARTLET_HOME": str(home)}
    errors = home / "stderr"
    with (
        errors.open("w") as log,
        subprocess.Popen(
            [sys.executable, "-c", SERVER], env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            url, key = process.stdout.readline().split()
            yield url, key
            assert httpx2.get(f"{url}/health/ready").status_code == 200
        finally:
            process.terminate()
            assert process.wait(60) == 0
    assert "fault" not in errors.read_text()


def test_any_request_is_answered(server: tuple[str, str]) -> None:
    """What a client can send is done or refused, in our shape; it never makes the server fail."""
    url, key = server
    headers = {"Authorization": f"Bearer {key}"}
    counted: dict[str, int] = {}
    with httpx2.Client(base_url=url, headers=headers) as client:

        def check(case: Any) -> None:
            if len(str(case.body)) % 2 and case.path_parameters:
                ask_for_what_is_there(case, client)
            response = case.call(headers=headers, timeout=30)
            note = f"{case.method} {case.path} {case.path_parameters} {str(case.body)[:300]}: {response.text[:500]}"
            assert response.status_code < 500, note
            if response.status_code >= 400 and case.method != "HEAD":
                assert response.json()["error"]["code"], note
            label = case.operation.label
            counted[label] = counted.get(label, 0) + 1

        for found in schemathesis.openapi.from_url(f"{url}/openapi.json").get_all_operations():
            operation = found.ok()
            FEW(given(case=operation.as_strategy())(check))()

    assert len(counted) > 30
    assert min(counted.values()) > 0


def ask_for_what_is_there(case: Any, client: httpx2.Client) -> None:
    """Let a request name an inferlet and a run that there are; made-up names find none."""
    client.post("/v1/inferlets?name=echo", content=ECHO, headers={"Content-Type": "text/x-python"})
    runs = client.get("/v1/runs?limit=1").json()["data"]
    known = {"ref": "echo", "name": "echo", "run_id": runs[0]["id"] if runs else "none"}
    case.path_parameters.update({name: known[name] for name in case.path_parameters if name in known})
