"""Who holds what and is busy with what, of everything that was asked of an engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.engine.turmoil.contents import Content, Line, Shelf, StepChange


@dataclass
class Generating:
    """A generation runs."""

    id: int
    max_tokens: int


@dataclass
class Stepping:
    """A stepped generation: it waits for an answer, or for the outcome of one."""

    id: int
    expected: StepChange | None = None


@dataclass
class Passing:
    """A forward pass: under way, or neither committed nor discarded."""

    id: int
    line: Line
    is_done: bool = False


@dataclass
class Evicting:
    """Tokens `start <= i < end` are being evicted."""

    id: int
    start: int
    end: int


@dataclass
class Opening:
    """A saved context is being opened."""

    id: int
    tenant: str
    name: str
    is_there: bool  # and was when it was asked for
    candidates: list[Content]  # it must be one of these: what was there, or has been saved since


Work = Generating | Stepping | Passing | Evicting | Opening


@dataclass
class Held:
    """A context."""

    id: int
    run_id: int
    content: Content
    work: Work | None = None
    is_lost: bool = False  # something failed, or its run was stopped: it can only be freed

    @property
    def is_idle(self) -> bool:
        """Whether everything can be done with it."""
        return self.work is None and not self.is_lost


@dataclass
class Run:
    """A run that is open."""

    id: int
    tenant: str
    limits: dict[str, Any]
    is_stopped: bool = False  # by one of its limits


@dataclass
class Ledger:
    """All that is open."""

    runs: dict[int, Run] = field(default_factory=dict)
    contexts: dict[int, Held] = field(default_factory=dict)
    prefixes: list[int] = field(default_factory=list)
    unpublished: list[int] = field(default_factory=list)  # prefixes that were let go of
    given_up: set[int] = field(default_factory=set)  # openings of runs that were stopped
    shelf: Shelf = field(default_factory=Shelf)

    def working_on(self, work_id: int) -> Held | None:
        """Return the context that a generation or an operation is about, if it still is."""
        return next((held for held in self.contexts.values() if held.work and held.work.id == work_id), None)

    def with_work(self, *kinds: type) -> list[Held]:
        """Return the contexts that are busy with something of these kinds."""
        return [held for held in self.contexts.values() if isinstance(held.work, kinds)]

    def openings(self) -> Iterator[Opening]:
        """Yield all that is being opened."""
        for held in self.contexts.values():
            if isinstance(held.work, Opening):
                yield held.work

    def lose(self, held: Held) -> None:
        """Expect nothing more of a context."""
        held.work, held.is_lost = None, True

    def stop(self, run_id: int) -> None:
        """Note that a run was stopped."""
        self.runs[run_id].is_stopped = True
        for held in self.contexts.values():
            if held.run_id == run_id:
                if isinstance(held.work, Opening):
                    self.given_up.add(held.work.id)
                self.lose(held)

    def close(self, run_id: int) -> None:
        """Note that a run was closed, with all of its contexts."""
        del self.runs[run_id]
        self.contexts = {held.id: held for held in self.contexts.values() if held.run_id != run_id}
