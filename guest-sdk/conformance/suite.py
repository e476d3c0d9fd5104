"""Runs the cases of the suite: on which engine, under which limits, and what comes of a run as lines of text."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from languages import Port

from tartlet import sync
from tartlet.errors import GuestError, GuestTrapError, LimitExceededError, TartletError
from tartlet.events import Log, Output
from tartlet.limits import Limits
from tartlet.runtime.program import Program
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
    """`fake`; `plain`: a fake one that can do little; `tiny`: the tiny model; `model`: numbers of a model."""
    seed: int | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    uses_bindings: bool = False
    """It calls functions of the contract besides the SDK's."""

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
def fake_host(port: Port) -> Iterator[Suite]:
    """A language's programs on a fake engine, for the cases of `fake`; checks at the end that nothing has leaked."""
    engine = FakeEngine(_reply, token_delay_s=0.0005, num_pages=320, context_len=2048, adapters=["polite"])
    with sync.Host(engine=engine, programs={CONTROLLER: port.controller}) as host:
        yield Suite(host, host.load(port.program))
    engine.check_integrity()
    assert engine.stats().contexts == 0
    engine.close()


@contextmanager
def plain_host(port: Port) -> Iterator[Suite]:
    """A language's programs on a fake engine that has no chat, no eviction and no constraints."""
    engine = FakeEngine(features=())
    with sync.Host(engine=engine) as host:
        yield Suite(host, host.load(port.program))
    engine.close()


@contextmanager
def model_host(port: Port, model: str | Path = "tiny") -> Iterator[Suite]:
    """A language's programs on a model; the weights of the tiny one are random, but always the same."""
    with sync.Host(model, threads=1, kv_pages=256, programs={CONTROLLER: port.controller}) as host:
        yield Suite(host, host.load(port.program))


@dataclass(frozen=True, slots=True)
class Suite:
    """The cases of one language on one host."""

    host: sync.Host
    program: Program

    def run(self, case: Case) -> list[str]:
        """Run a case in a tenant of its own; its transcript."""
        limits = Limits(**case.limits)
        tenant = case.name.replace(".", "-")
        run = self.host.start(self.program, {"case": case.name}, limits=limits, seed=case.seed, tenant=tenant)
        told = list(run)
        try:
            lines = list(run.result())
            lines += [f"log {each.level}: {_quoted(each.message)}" for each in told if isinstance(each, Log)]
        except TartletError as error:  # what such a run logs and prints is up to the language
            return _failure_lines(error)
        if output := "".join(each.text for each in told if isinstance(each, Output)):
            lines.append(f"output: {_quoted(output)}")
        return lines


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _failure_lines(error: TartletError) -> list[str]:
    """How a run failed. What a program says of its own failure is up to its language, but for the reason."""
    if isinstance(error, GuestError | GuestTrapError):
        return ["failed: the program failed", *(f"it says: {reason}" for reason in REASONS if reason in error.message)]
    if isinstance(error, LimitExceededError):
        return [f"failed: {error.code}, {error.limit} allows {error.allowed}"]
    message = re.sub(r"number \d+", "number ...", str(error))  # what numbers handles have is the SDK's business
    return [f"failed: {error.code}, {_quoted(message)}"]


HOSTS = {"fake": fake_host, "plain": plain_host, "tiny": model_host, "model": model_host}
"""On what the cases of each engine run."""
