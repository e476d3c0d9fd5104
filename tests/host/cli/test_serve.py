from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner

from tartlet.cli import app
from tartlet.cli.serve import _greeting

SOURCE = """
from tartlet_sdk import Model, inferlet

@inferlet
async def main(n: int = 3) -> int:
    context = Model.default().context()
    context.user("Hello")
    return len((await context.generate(max_tokens=n)).tokens)
"""


@contextmanager
def server(home: Path) -> Iterator[tuple[str, str | None, subprocess.Popen[str]]]:
    """A server in a process of its own: its URL, the key if it told one, and the process."""
    arguments = ["serve", "--in-process", "--model", "tiny", "--port", "0", "--threads", "1", "--kv-pages", "64"]
    environment = {**os.environ, "TARTLET_HOME": str(home)}
    with (
        (home / "stderr").open("w") as log,
        subprocess.Popen(
            [sys.executable, "-m", "tartlet", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            lines: queue.Queue[str] = queue.Queue()
            reading = threading.Thread(target=lambda: [lines.put(line) for line in process.stdout or ()])
            reading.start()
            told: list[str] = []
            while not told or not told[-1].startswith("Try: "):
                told.append(lines.get(timeout=120).strip())
            url = told[0].rpartition(" ")[2]
            key = next((line.rpartition(" ")[2] for line in told if line.startswith("API key")), None)
            yield url, key, process
        finally:
            process.terminate()
            process.wait(60)
            reading.join()


@pytest.fixture
def home(tmp_path: Path, own_home: Path) -> Path:
    for name in ("kernels", "models", "runners", "components"):
        (tmp_path / name).symlink_to((own_home / name).resolve())
    return tmp_path


@pytest.mark.runner
@pytest.mark.slow
def test_from_nothing_to_a_run(home: Path) -> None:
    """One command, and the key that it prints, are all that is needed. Neither the key nor a prompt is in the log."""
    with server(home) as (url, key, process):
        assert key is not None
        headers = {"Authorization": f"Bearer {key}"}
        with httpx2.Client(base_url=url, headers=headers, timeout=60) as client:
            assert client.get("/health/ready").status_code == 200
            uploaded = client.post(
                "/v1/inferlets?name=hello", content=SOURCE, headers={"Content-Type": "text/x-python"}
            )
            assert uploaded.status_code == 201, uploaded.text
            run = client.post("/v1/inferlets/hello/runs", json={"input": {"n": 2}}).json()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    log = (home / "stderr").read_text()

    assert run["result"] == 2
    assert key not in log
    assert "Hello" not in log
    assert '"route": "/v1/inferlets/{ref}/runs"' in log


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "70000"], "port"),
        (["--log-format", "xml"], "log_format"),
        (["--config", "no-such-file.toml"], "no-such-file.toml"),
    ],
)
def test_wrong_settings(arguments: list[str], words: str) -> None:
    """They are told before anything is started."""
    result = CliRunner().invoke(app, ["serve", "--in-process", *arguments])

    assert result.exit_code == 2
    assert words in result.output


@pytest.mark.runner
def test_a_model_that_there_is_not(home: Path) -> None:
    """It ends, and says so, though others would go on trying."""
    arguments = ["serve", "--model", "/no/such/model", "--port", "0", "--workers", "1"]
    environment = {**os.environ, "TARTLET_HOME": str(home)}
    command = [sys.executable, "-m", "tartlet", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)

    assert done.returncode == 2
    assert "there is no /no/such/model" in done.stderr.splitlines()[-1]


def test_how_to_call_it() -> None:
    """With the key, if it is new; otherwise with a place for it."""
    first = _greeting("http://h:1", "tlk_1", is_ready=True)
    later = _greeting("http://h:1", None, is_ready=False)

    assert "Bearer tlk_1" in first
    assert "API key" not in later
    assert "/health/ready" in later
    assert "/health/ready" not in first
