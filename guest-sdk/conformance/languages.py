"""The programs of the suite, one for each language."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tartlet.languages.registry import language_named

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Port:
    """Where the programs of a language are: what a host loads, and builds if it has to."""

    program: Path
    """Has the cases."""
    controller: Path
    """Which some of them name."""


LANGUAGES = {
    "python": Port(FOLDER / "python", FOLDER / "python" / "controller.py"),
    "javascript": Port(FOLDER / "ts", FOLDER / "ts" / "controller.ts"),
    "rust": Port(FOLDER / "rust" / "program", FOLDER / "rust" / "controller"),
    "c": Port(FOLDER / "c" / "cases", FOLDER / "c" / "controller"),
}
"""By the names of `tartlet.languages`."""

_WIDE = "a 64-bit number beyond 2^53, and componentize-qjs makes JavaScript's numbers of them"
_LOGITS = "raw logits come two in a 64-bit number, of which componentize-qjs keeps 53 bits"
NOT_THERE: dict[str, dict[str, str]] = {
    "python": {},
    "javascript": {
        "constraints.mask.words": _WIDE,
        "forward.forward": _LOGITS,
        "forward.limits": _LOGITS,
        "model.forward": _LOGITS,
        "model.samplers": _WIDE,
        "runs.info": _WIDE,
        "runs.limits": _WIDE,
        "store.compare-and-swap-variable": _WIDE,
    },
    "rust": {},
    "c": {},
}
"""Cases that the program of a language does not have, and why."""

_CASES = "only cases that are not there would show it: the SDK has it"
_NEXT = "the SDK waits and reads in one call; whoever wants it in two calls the bindings, as other cases do"
NOT_REACHED: dict[str, dict[str, str]] = {
    "python": {},
    "javascript": {
        "constraints.mask.words": "its numbers have 64 bits; masks are made of token lists",
        "generation.generation.next": "the event loop waits, then reads",
        "runs.info": _CASES,
        "runs.limits": _CASES,
    },
    "rust": {},
    "c": {
        "events.drop-event": "for programs that begin to wait and give up; a call of the bindings",
        "generation.generation.read": _NEXT,
        "stepping.steps.answer": _NEXT,
        "stepping.steps.outcome": _NEXT,
        "stepping.steps.ready": _NEXT,
    },
}
"""Functions that no case of a language reaches through its SDK alone, and why."""


def missing_tools(name: str) -> str:
    """What has to be installed before the program of a language can be loaded, and how; empty if nothing."""
    language = language_named(name)
    if language.source_mode is not None and language.source_mode.is_runner_there():
        return ""
    return "; ".join(f"{tool.name} is not installed: {tool.hint}" for tool in language.tools() if tool.version is None)
