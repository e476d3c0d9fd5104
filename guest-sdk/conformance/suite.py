"""Runs the cases of the suite: on which engine, under which limits, and what comes of a run as lines of text."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tartlet import sync
from tartlet.errors import GuestError, GuestTrapError, LimitExceededError, TartletError
from tartlet.events import Log, Output
from tartlet.limits import Limits
from tartlet.testing import FakeEngine

FOLDER = Path(__file__).parent
TRANSCRIPTS = FOLDER / "transcripts"
REASONS = ("the reason is seven é", "cannot truncate to 7 tokens: the context has 3")
"""What programs that fail on purpose say, or have not handled."""
CONTROLLER = "steered"
"""The name by which the host knows the controller of a language."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case, as cases.toml has it."""

    name: str
    about: str
    """What it looks at, in a sentence."""
    engine: str = "fake"
    """`fake`; `tiny`: constraints and matchers of the tiny model; `model`: numbers of a model."""
    seed: int | None = None
    limits: Mapping[str, int] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """The file of its transcript: an interface of the contract, or what a behaviour belongs to."""
        return self.name.partition(".")[0]


def read_cases() -> dict[str, Case]:
    """All cases by name, in the order of cases.toml."""
    with (FOLDER / "cases.toml").open("rb") as file:
        return {name: Case(name, **values) for name, values in tomllib.load(file).items()}


def read_transcripts() -> dict[str, list[str]]:
    """The transcripts that are kept, by case: of all but those of the engine `model`."""
    files = sorted(TRANSCRIPTS.glob("*.json"))
    return {name: lines for file in files for name, lines in json.loads(file.read_text(encoding="utf-8")).items()}


def _reply(context: str) -> str:
    """What the fake engine answers: the last user's message, or all of the context, unless that is a word below."""
    _, mark, message = context.rpartition("<|im_start|>user\n")
    said = message.partition("<|im_end|>")[0] if mark else context
    if said == "fail":
        raise ValueError("the script ends here")
    return "0123456789" * 190 if said == "endless" else said


@contextmanager
def fake_host(controller: Any) -> Iterator[sync.Host]:
    """A host on a fake engine, for the cases of `fake`; checks at the end that nothing has leaked."""
    engine = FakeEngine(_reply, token_delay_s=0.0002, num_pages=320, context_len=2048, adapters=["polite"])
    with sync.Host(engine=engine, programs={CONTROLLER: controller}) as host:
        yield host
    engine.check_integrity()
    assert engine.stats().contexts == 0
    engine.close()


@contextmanager
def tiny_host(controller: Any) -> Iterator[sync.Host]:
    """A host with the tiny model, whose weights are random but always the same."""
    with sync.Host("tiny", threads=1, kv_pages=256, programs={CONTROLLER: controller}) as host:
        yield host


def run_case(host: sync.Host, program: Any, case: Case) -> list[str]:
    """Run a case in a tenant of its own; its transcript."""
    limits = Limits(**case.limits)
    tenant = case.name.replace(".", "-")
    run = host.start(program, {"case": case.name}, limits=limits, seed=case.seed, tenant=tenant)
    told = list(run)
    try:
        lines = list(run.result())
    except TartletError as error:
        lines = _failure_lines(error)
    lines += [
        f"log {each.level}: {json.dumps(each.message, ensure_ascii=False)}" for each in told if isinstance(each, Log)
    ]
    if output := "".join(each.text for each in told if isinstance(each, Output)):
        lines.append(f"output: {json.dumps(output, ensure_ascii=False)}")
    return lines


def _failure_lines(error: TartletError) -> list[str]:
    """How a run failed. What a program says of its own failure is up to its language, but for the reason."""
    if isinstance(error, GuestError | GuestTrapError):
        return ["failed: the program failed", *(f"it says: {reason}" for reason in REASONS if reason in error.message)]
    if isinstance(error, LimitExceededError):
        return [f"failed: {error.code}, {error.limit} allows {error.allowed}"]
    message = re.sub(r"number \d+", "number ...", str(error))  # what numbers handles have is the SDK's business
    return [f"failed: {error.code}, {json.dumps(message, ensure_ascii=False)}"]
