"""Requests of all kinds, made up from the server's own description of itself."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

pytestmark = [pytest.mark.runner, pytest.mark.slow]

SERVER = Path(__file__).parents[1] / "chaos" / "front_main.py"
MOST_GROWTH = 100 << 20
"""Bytes by which the front may grow meanwhile."""
ECHO = "from tartlet_sdk import inferlet\n@inferlet\ndef main(request: object = None) -> object: return request\n"
FEW = settings(max_examples=12, derandomize=True, deadline=None, suppress_health_check=[*HealthCheck])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, own_home: Path) -> Iterator[tuple[str, str]]:
    """A server in processes, without a model: its URL and a key. At the end it must be well, and all of it the same."""
    home = tmp_path_factory.mktemp("server")
    for name in ("runners", "components"):
        (home / name).symlink_to((own_home / name).resolve())
    environment = {**os.environ, "TARTLET_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    errors = home / "stderr"
    with (
        errors.open("w") as log,
        subprocess.Popen(
            [sys.executable, str(SERVER), "{}"], env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            url, key = process.stdout.readline().split()
            wait_until_ready(url)
            front = psutil.Process(process.pid)
            children, memory = {child.pid for child in front.children()}, front.memory_info().rss
            yield url, key
            wait_until_ready(url)
            assert {child.pid for child in front.children()} == children, errors.read_text()
            assert front.memory_info().rss < memory + MOST_GROWTH
        finally:
            process.terminate()
            assert process.wait(60) == 0
    assert '"trace"' not in errors.read_text()


def wait_until_ready(url: str) -> None:
    """Wait for the server's processes, a minute at most."""
    for _ in range(1200):
        if httpx2.get(f"{url}/health/ready").status_code == 200:
            return
        time.sleep(0.05)
    raise AssertionError("the server does not get ready")


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
    if client.get("/v1/inferlets/echo").status_code == 404:
        client.post("/v1/inferlets?name=echo", content=ECHO, headers={"Content-Type": "text/x-python"})
    runs = client.get("/v1/runs?limit=1").json()["data"]
    known = {"ref": "echo", "name": "echo", "run_id": runs[0]["id"] if runs else "none"}
    case.path_parameters.update({name: known[name] for name in case.path_parameters if name in known})
