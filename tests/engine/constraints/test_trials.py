"""Trials: what a constraint's text can do to the process that tries it, and to nothing else."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tartlet_engine.api import ConstraintKind
from tartlet_engine.constraints.trials import TrialLimitError, Trials
from tartlet_engine.constraints.vocabulary import Vocabulary
from tartlet_engine.tokenizer import ModelTokenizer

ENDLESS = '{"type": "integer", "multipleOf": 999983}'


@pytest.fixture
def make(tiny_folder: Path) -> Iterator[Callable[..., Trials]]:
    """Make trials with limits; their processes are ended."""
    vocabulary = Vocabulary.of(ModelTokenizer(tiny_folder), 512)
    made: list[Trials] = []

    def trials(time_limit_s: float = 20, memory_bytes: int = 512 << 20) -> Trials:
        made.append(Trials(vocabulary, time_limit_s, memory_bytes))
        return made[-1]

    yield trials
    for each in made:
        each.close()


def pid(trials: Trials) -> int:
    process = trials._process
    assert process is not None
    return process.pid


def test_verdicts(make: Callable[..., Trials]) -> None:
    """What can be compiled has no problem; what cannot has the library's message; one process tries them all."""
    trials = make()

    assert trials.problem(ConstraintKind.REGEX, "a+") is None
    first = pid(trials)
    assert "unclosed" in (trials.problem(ConstraintKind.REGEX, "(a") or "")
    assert "no text" in (trials.problem(ConstraintKind.REGEX, r"[^\s\S]") or "")
    assert trials.problem(ConstraintKind.REGEX, "é" * 50_000) is None
    assert pid(trials) == first


def test_a_text_without_end_is_ended(make: Callable[..., Trials]) -> None:
    """What compiles for minutes ends with its process, and the next trial has another."""
    trials = make(time_limit_s=0.5)
    assert trials.problem(ConstraintKind.REGEX, "a") is None
    first = pid(trials)
    with pytest.raises(TrialLimitError, match=r"more than 0\.5 s"):
        trials.problem(ConstraintKind.JSON_SCHEMA, ENDLESS)

    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    assert trials.problem(ConstraintKind.REGEX, "a") is None


def test_a_text_that_takes_all_memory_is_ended(make: Callable[..., Trials]) -> None:
    """Past its memory the process ends by itself, long before its time."""
    trials = make(time_limit_s=100, memory_bytes=24 << 20)
    with pytest.raises(TrialLimitError, match="more than 24 MB"):
        trials.problem(ConstraintKind.JSON_SCHEMA, ENDLESS)

    assert trials.problem(ConstraintKind.REGEX, "a") is None


def test_a_process_that_was_killed_is_replaced(make: Callable[..., Trials]) -> None:
    """Somebody else's kill costs the trial under way at most; closing twice is allowed."""
    trials = make()
    trials.problem(ConstraintKind.REGEX, "a")
    os.kill(pid(trials), 9)
    time.sleep(0.05)
    with pytest.raises(TrialLimitError, match="crashes"):
        trials.problem(ConstraintKind.REGEX, "a")
    assert trials.problem(ConstraintKind.REGEX, "a") is None

    trials.close()
    trials.close()
