from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tartlet.cli import app

pytestmark = pytest.mark.runner

PROGRAM = """
import asyncio, logging, sys
from tartlet_sdk import Model, Sampler, inferlet, max_tokens

@inferlet
async def main(mode: str = "ok", n: int = 2) -> dict:
    print("begun \\x1b[31m", flush=True)
    if mode == "fail":
        raise ValueError("the author's mistake")
    if mode == "spin":
        while True: pass
    if mode == "wait":
        await asyncio.sleep(3600)
    logging.getLogger().warning("careful")
    context = Model.default().context()
    context.user("hello")
    draft = await context.generate(Sampler.temperature(1.0), stop=max_tokens(n))
    return {"tokens": list(draft.tokens)}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    (tmp_path / "empty").mkdir()
    return path


def run(*arguments: object) -> Result:
    """Run a program on the tiny model, in this process."""
    options = ["--model", "tiny", "--threads", "1", "--kv-pages", "32"]
    return CliRunner().invoke(app, ["run", *options, *map(str, arguments)])


def test_a_program_runs_and_its_result_is_printed(program: Path) -> None:
    """Output and result on stdout, the log and the figures on stderr, nothing that the terminal would obey."""
    result = run(program, "n=3")

    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("begun ␛[31m\n{\n")
    assert len(json.loads(result.stdout.removeprefix("begun ␛[31m\n"))["tokens"]) in range(1, 4)
    assert "careful" in result.stderr
    assert "tokens generated" in result.stderr
    assert "\x1b" not in result.output


def test_the_same_seed_gives_the_same_result(program: Path) -> None:
    """And another seed another one."""
    first, again, other = (run(program, "n=12", "--quiet", "--seed", seed).stdout for seed in (1, 1, 2))

    assert first == again
    assert first != other


def test_json_lines_end_with_the_result(program: Path) -> None:
    """Every line is an event; the text is exactly what was printed."""
    lines = [json.loads(line) for line in run(program, "--json").stdout.splitlines()]

    assert lines[0] == {"event": "output", "text": "begun \x1b[31m\n"}
    assert [line["event"] for line in lines[-2:]] == ["usage", "result"]
    assert lines[-2]["generated_tokens"] == len(lines[-1]["value"]["tokens"])


def test_a_failing_program_shows_its_own_traceback_only(program: Path) -> None:
    """Exit code 1, the author's file and line, and no frame of ours."""
    result = run(program, "mode=fail")

    assert result.exit_code == 1
    assert "begun" in result.stdout
    assert "program.py" in result.stderr
    assert "ValueError: the author's mistake" in result.stderr
    assert "host/tartlet" not in result.stderr


def test_json_lines_end_with_the_error(program: Path) -> None:
    """So a program that reads them needs nothing else."""
    result = run(program, "mode=fail", "--json")

    last = json.loads(result.stdout.splitlines()[-1])
    assert (last["event"], last["code"]) == ("error", "guest_error")
    assert result.exit_code == 1


def test_a_limit_ends_the_run_and_is_named(program: Path) -> None:
    """Exit code 3."""
    result = run(program, "mode=spin", "--limit", "cpu_ms=50")

    assert result.exit_code == 3
    assert "error[cpu_limit]" in result.stderr
    assert "max_cpu_ms allows 50" in result.stderr
    assert "--limit cpu_ms=" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["{program}", "--limit", "toknes=5"], 2, "Did you mean max_tokens"),
        (["{program}", "n"], 2, "no argument of the form key=value"),
        (["{program}", "--dtype", "int3"], 2, "dtype must be"),
        (["{program}", "--kv-pages", "0"], 2, "kv_pages"),
        (["{program}", "--model", "tinny"], 4, "Did you mean tiny"),
        (["{program}.txt"], 4, "there is no"),
        (["{folder}"], 4, "main.py"),
        (["{program}", "--seed", "-1"], 2, "seed"),
        (["{program}", "nope=1"], 1, "has no argument 'nope'"),
    ],
)
def test_what_is_wrong_is_said(program: Path, arguments: list[str], exit_code: int, message: str) -> None:
    """Each with its exit code and without a traceback of ours."""
    result = run(*(argument.format(program=program, folder=program.parent / "empty") for argument in arguments))

    assert result.exit_code == exit_code, result.output
    assert message in result.stderr
    assert "Traceback" not in result.stderr.replace('Traceback (most recent call last):\n  File "program.py"', "")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"hello", "not_a_component"),
        (b"\0asm\x0d\0\x01\0\x0b\x99", "truncated"),
        (b"\0asm\x0d\0\x01\0", "missing_export"),
    ],
)
def test_what_is_no_component_is_named(tmp_path: Path, content: bytes, code: str) -> None:
    """Exit code 4, and which way it is wrong."""
    path = tmp_path / "program.wasm"
    path.write_bytes(content)

    result = run(path)

    assert result.exit_code == 4
    assert f"error[{code}]" in result.stderr


def test_a_mistake_in_the_source_shows_before_the_model_is_fetched(tmp_path: Path) -> None:
    """A model that is not there, which would be an error, has not been looked for."""
    path = tmp_path / "wrong.py"
    path.write_text("def f(:\n")

    result = run(path, "--model", tmp_path / "missing")

    assert result.exit_code == 4
    assert "error[build]" in result.stderr
    assert "SyntaxError" in result.stderr
    assert "Loading" not in result.stderr


def test_ctrl_c_during_set_up_ends_the_json_lines(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads them learns that nothing more comes."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tartlet.models.pull", interrupted)
    result = run(program, "--json")

    assert json.loads(result.stdout)["code"] == "cancelled"
    assert result.exit_code == 130


@pytest.mark.parametrize("mode", ["spin", "wait"])
def test_ctrl_c_cancels_the_run(program: Path, mode: str) -> None:
    """Exit code 130, one word, whatever the program is doing; its output so far has come."""
    command = [sys.executable, "-m", "tartlet", "run", "--model", "tiny", str(program), f"mode={mode}"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun ␛[31m\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert err.splitlines()[-1] == "cancelled"
    assert "Traceback" not in err


CONTROLLER = """
from tartlet_sdk import Branch, Controller

class Fork(Controller):
    def start(self, config, prompt):
        self.n = (config or {}).get("n", 1)
    def step(self, sequence, info):
        n, self.n = self.n, 1
        if len(sequence.generated) > 3:
            return []
        return [Branch.force([72 + k]) for k in range(n)] if n > 1 else None
"""


@pytest.fixture
def controller(tmp_path: Path) -> Path:
    path = tmp_path / "fork.py"
    path.write_text(CONTROLLER)
    return path


def test_a_controller_runs_from_a_prompt(controller: Path, tmp_path: Path) -> None:
    """What it generates is printed: one text as it is, several with their numbers; JSON has a list."""
    one = run("--controller", controller, "--prompt", "hello", "--quiet")
    (tmp_path / "config.json").write_text('{"n": 3}')
    (tmp_path / "prompt.txt").write_text("hello")
    files = "--prompt", f"@{tmp_path}/prompt.txt", "--config", f"@{tmp_path}/config.json"
    several = run("--controller", controller, *files, "--chat", "--temperature", 1, "--seed", 1, "--quiet")
    lines = run("--controller", controller, "--prompt", "hello", "--config", '{"n": 2}', "--json").stdout.splitlines()

    assert one.exit_code == 0, one.output
    assert one.stdout.strip()
    assert [line[:3] for line in several.stdout.split("\n") if line.startswith("[")] == ["[0]", "[1]", "[2]"]
    sequences = json.loads(lines[-1])["value"]["sequences"]
    assert [(each["tokens"], each["finish_reason"]) for each in sequences] == [(4, "stopped")] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is no program to run"),
        (["PROGRAM", "--prompt", "x"], "--prompt is for a controller"),
        (["--controller", "CONTROLLER"], "a controller needs a prompt"),
        (["PROGRAM", "--controller", "CONTROLLER", "--prompt", "x"], "a controller runs without a program"),
        (["--controller", "CONTROLLER", "--prompt", "x", "--input", "{}"], "a controller runs without a program"),
        (["--controller", "CONTROLLER", "--prompt", "x", "--config", "{"], "--config is not JSON"),
        (["--controller", "PROGRAM", "--prompt", "x"], "is an inferlet, not a controller"),
        (["CONTROLLER"], "tartlet run --controller"),
    ],
)
def test_what_does_not_go_together(program: Path, controller: Path, arguments: list[str], message: str) -> None:
    """It is refused with what to do."""
    paths = {"PROGRAM": str(program), "CONTROLLER": str(controller)}

    result = run(*(paths.get(argument, argument) for argument in arguments))

    assert result.exit_code != 0
    assert message in result.stderr.replace("\n", " ")
