from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import NAMES
from benchmarks.settings import Settings

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.runner
@pytest.mark.parametrize("name", NAMES)
def test_benchmark_works(name: str) -> None:
    """Every benchmark runs through and measures something in each of its rows, all of which have names of their own."""
    if name == "llama_cpp":
        pytest.importorskip("llama_cpp")
    module = importlib.import_module(f"benchmarks.{name}")

    rows = list(module.measure(Settings(is_quick=True, threads=1, patience=0)))

    assert rows
    assert len({row.name for row in rows}) == len(rows)
    assert [row.name for row in rows if len(row.values) != 1] == []
    rates = [row for row in rows if row.unit in ("us", "ms", "s", "1/s", "tokens/s", "ms/token")]
    assert [row.name for row in rates if "gone after" not in row.name and row.median <= 0] == []


def test_forks_share_the_prompt() -> None:
    """The fork benchmark counts the tokens of one prompt for the forks, and of all eight for separate contexts."""
    from benchmarks import fork

    rows = {row.name: row.median for row in fork.measure(Settings(is_quick=True, threads=1, patience=0))}

    assert rows["forked, prefill"] == fork.PROMPT_LEN
    assert rows["separate, prefill"] == fork.NUM_FORKS * fork.PROMPT_LEN


def test_a_prompt_is_computed_once() -> None:
    """The prefix benchmark counts one token for a prompt that was there, and the question for another one."""
    from benchmarks import prefix

    rows = {row.name: row.median for row in prefix.measure(Settings(is_quick=True, threads=1, patience=0))}

    assert rows["first: computed"] == prefix.PROMPT_LEN
    assert rows["again: computed"] == 1
    assert rows["other question: computed"] == prefix.TAIL_LEN


@pytest.mark.runner
def test_command_line_prints_json() -> None:
    """`python -m benchmarks NAME --quick --json` prints one JSON document."""
    command = [sys.executable, "-m", "benchmarks", "host_calls", "--quick", "--json"]

    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout

    assert json.loads(printed)["benchmark"] == "host_calls"


def test_command_line_refuses_unknown_names() -> None:
    """A benchmark that does not exist is refused by name, with those that there are."""
    command = [sys.executable, "-m", "benchmarks", "frobnicate"]

    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert refused.returncode == 2
    assert "frobnicate" in refused.stderr
    assert "host_calls" in refused.stderr
