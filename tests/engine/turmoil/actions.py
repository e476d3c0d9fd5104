"""Asks an engine for anything, at random, and notes in a ledger what must come of it."""

from __future__ import annotations

import random
import time

from tartlet_engine.api import RowRequest, Speculation, Splice
from tests.engine.conftest import HASH_ADAPTERS, Driver
from tests.engine.turmoil.contents import Content, Line, StepChange
from tests.engine.turmoil.events import Events
from tests.engine.turmoil.ledger import Evicting, Generating, Held, Ledger, Opening, Passing, Run, Stepping

MOST_RUNS = 4
MOST_CONTEXTS = 12
MOST_PREFIXES = 3
ROOM = 20  # positions that are left free: no action needs more
NAMES = ("x", "y", "z")
ACTIONS = (
    *("create", "create", "create", "fork", "fork", "truncate", "append", "flush", "evict", "evict", "free"),
    *("generate", "generate", "speculate", "cancel", "forward", "end_forward", "end_forward", "save", "open_saved"),
    *("begin_steps", "answer", "answer", "answer", "fork_steps", "open_run", "close_run", "publish", "unpublish"),
    *("step", "step", "step", "step", "settle", "break_model"),
)


class Turmoil:
    """Carries out random actions on an engine with the hash model. Everything is checked after each."""

    def __init__(self, driver: Driver, numbers: random.Random, *, breaks: bool, publishes: bool) -> None:
        """Begin with an engine that nobody has used.

        Args:
            driver: of the engine.
            numbers: decide on everything.
            breaks: whether the model fails now and then.
            publishes: whether prefixes can be published.
        """
        self.driver = driver
        self.numbers = numbers
        self.breaks = breaks
        self.publishes = publishes
        self.history: list[str] = []
        self.ledger = Ledger()
        self.events = Events(driver, self.ledger, self.history)

    def go(self, num_actions: int) -> None:
        """Carry out so many actions, then let everything end, and see that nothing is left."""
        self.open_run()
        for _ in range(num_actions):
            getattr(self, self.numbers.choice(ACTIONS))()
            self._wait_for_store()
            self.events.check()
        self.end_all_work()
        self.generate_everywhere()
        self.let_go()

    def end_all_work(self) -> None:
        """Let everything come to its end that does by itself, and end the rest."""
        self.settle()
        assert self.driver.runner is not None
        self.driver.runner.failures = 0
        assert self.ledger.with_work(Generating, Evicting, Opening) == []
        for held in self.ledger.with_work(Stepping):
            assert isinstance(held.work, Stepping)
            assert held.work.expected is None, "a step was answered and never made"
            self._cancel(held)
        for held in self.ledger.with_work(Passing):
            assert isinstance(held.work, Passing)
            assert held.work.is_done
            self._discard(held)
        self.settle()

    def generate_everywhere(self) -> None:
        """See that each context goes on as it must."""
        for held in list(self.ledger.contexts.values()):
            if held.is_idle and held.content.token_ids:
                self._generate(held, 3)
                self.settle()

    def let_go(self) -> None:
        """Close all runs, and see that nothing is held any more."""
        for run_id in list(self.ledger.runs):
            self.driver.close_run(run_id)
            self.ledger.close(run_id)
        for prefix_id in list(self.ledger.prefixes):
            self._unpublish(prefix_id)
        self.settle()
        stats = self.driver.core.stats()
        assert (stats.pages_held, stats.pages_swapped, stats.contexts) == (0, 0, 0)
        assert stats.pages_free + stats.pages_cached == self.driver.info.num_pages

    # Runs and prefixes.

    def open_run(self) -> None:
        """Open a run, sometimes with limits."""
        if len(self.ledger.runs) < MOST_RUNS:
            tenant, limits = self.numbers.choice("abc"), {}
            if self.numbers.random() < 0.15:
                limits["max_pages"] = self.numbers.randint(2, 20)
            if self.numbers.random() < 0.1:
                limits["max_generated_tokens"] = self.numbers.randint(1, 30)
            run_id = self.driver.open_run(tenant=tenant, **limits)
            self.ledger.runs[run_id] = Run(run_id, tenant, limits)
            self._note("open_run", run_id, tenant, limits)

    def close_run(self) -> None:
        """Close a run in whatever state it is, now and then."""
        if len(self.ledger.runs) > 1 and self.numbers.random() < 0.2:
            run_id = self.numbers.choice(list(self.ledger.runs))
            self._note("close_run", run_id)
            self.driver.close_run(run_id)
            self.ledger.close(run_id)

    def publish(self) -> None:
        """Publish a prefix, now and then."""
        if self.publishes and len(self.ledger.prefixes) < MOST_PREFIXES and self.numbers.random() < 0.3:
            token_ids, adapter = self._tokens(self.numbers.choice([8, 20])), self.numbers.choice([None, "red"])
            self._note("publish", token_ids, adapter)
            self.ledger.prefixes.append(self.driver.publish(token_ids, adapter))

    def unpublish(self) -> None:
        """Let go of a prefix."""
        if self.ledger.prefixes:
            self._unpublish(self.ledger.prefixes[-1])

    def _unpublish(self, prefix_id: int) -> None:
        self._note("unpublish", prefix_id)
        self.ledger.prefixes.remove(prefix_id)
        self.ledger.unpublished.append(prefix_id)
        self.driver.unpublish(prefix_id)

    # Contexts.

    def create(self) -> None:
        """Make a context with tokens."""
        run = self._running()
        if run is not None and self._has_place:
            token_ids = self._tokens(self.numbers.choice([1, 3, 8, 20, 40]))
            adapter = self.numbers.choice([None, None, *HASH_ADAPTERS])
            context_id = self.driver.create(run.id, token_ids, adapter)
            self._note("create", context_id, "of run", run.id, token_ids, adapter)
            self._hold(Held(context_id, run.id, Content.of(token_ids, adapter)))

    def fork(self) -> None:
        """Fork a context: all of it, or its beginning. It may be looking ahead, or be evicted from."""
        forkable = [
            held
            for held in self.ledger.contexts.values()
            if not held.is_lost and not isinstance(held.work, Generating | Stepping | Opening)
        ]
        if forkable and self._has_place:
            held = self.numbers.choice(forkable)
            num_tokens = len(held.content.token_ids)
            length = self.numbers.choice([num_tokens, self.numbers.randint(0, num_tokens)])
            child_id = self.driver.fork(held.id, length)
            self._note("fork", held.id, "as", child_id, "length", length)
            self._hold(Held(child_id, held.run_id, held.content.fork(length)))

    def truncate(self) -> None:
        """Cut a context's end off."""
        held = self._idle()
        if held is not None:
            length = self.numbers.randint(0, len(held.content.token_ids))
            self._note("truncate", held.id, "to", length)
            self.driver.truncate(held.id, length)
            held.content.truncate(length)

    def append(self) -> None:
        """Append tokens to a context."""
        held = self._idle()
        if held is not None and self._has_room(held):
            token_ids = self._tokens(self.numbers.randint(1, 9))
            self._note("append", held.id, token_ids)
            self.driver.append(held.id, token_ids)
            held.content.append(token_ids)

    def flush(self) -> None:
        """Ask that a context be computed."""
        held = self._idle()
        if held is not None:
            self._note("flush", held.id, "operation", self.driver.flush(held.id))

    def evict(self) -> None:
        """Evict tokens from a context; sometimes whole pages of them."""
        held = self._idle()
        if held is not None and held.content.token_ids:
            last = len(held.content.token_ids) - 1
            start, end = sorted((self.numbers.randint(0, last), self.numbers.randint(0, last)))
            if self.numbers.random() < 0.3:
                page_size = self.driver.info.page_size
                start, end = start // page_size * page_size, end // page_size * page_size
            operation_id = self.driver.evict(held.id, start, end)
            self._note("evict", held.id, start, end, "operation", operation_id)
            held.work = Evicting(operation_id, start, end)

    def free(self) -> None:
        """Free a context, whatever happens on it."""
        if self.ledger.contexts:
            context_id = self.numbers.choice(list(self.ledger.contexts))
            self._note("free", context_id)
            self.driver.free(context_id)
            del self.ledger.contexts[context_id]

    def save(self) -> None:
        """Save a context under one of a few names of its tenant."""
        held = self._idle()
        if held is not None:
            tenant, name = self.ledger.runs[held.run_id].tenant, self.numbers.choice(NAMES)
            operation_id = self.driver.save(held.id, name, overwrite=True)
            self._note("save", held.id, "as", tenant, name, "operation", operation_id)
            self.ledger.shelf.save(operation_id, tenant, name, held.content)
            for opening in self.ledger.openings():
                if (opening.tenant, opening.name) == (tenant, name):
                    opening.candidates.append(self.ledger.shelf.under_way[operation_id][1])

    def open_saved(self) -> None:
        """Open what may be saved, or may not."""
        run = self._running()
        if run is not None and self._has_place:
            name = self.numbers.choice(NAMES)
            operation_id, context_id = self.driver.open_saved(run.id, name)
            self._note("open_saved", run.tenant, name, "as", context_id, "operation", operation_id)
            key = (run.tenant, name)
            work = Opening(operation_id, *key, self.ledger.shelf.has(*key), self.ledger.shelf.may_give(*key))
            self._hold(Held(context_id, run.id, Content.of((), None), work))

    # Generations.

    def generate(self) -> None:
        """Generate on a context."""
        held = self._idle()
        if held is not None and held.content.token_ids and self._has_room(held):
            self._generate(held, self.numbers.choice([1, 2, 5, 12]))

    def speculate(self) -> None:
        """Generate with drafts, some of whose tokens are wrong."""
        held = self._idle()
        if held is not None and held.content.token_ids and self._has_room(held):
            numbers, max_tokens = self.numbers, self.numbers.choice([1, 2, 5, 12])
            draft = held.content.continuation(max_tokens)
            for _ in range(numbers.randint(0, 2)):
                draft[numbers.randrange(max_tokens)] = 5
            max_draft, ngram = numbers.randint(1, 8), numbers.randint(1, 3)
            speculation = Speculation(max_draft=max_draft, ngram=ngram, expected_token_ids=tuple(draft))
            self._generate(held, max_tokens, speculation)

    def _generate(self, held: Held, max_tokens: int, speculation: Speculation | None = None) -> None:
        generation_id = self.driver.generate(held.id, speculation=speculation, max_tokens=max_tokens)
        self._note("generate", held.id, "generation", generation_id, "max_tokens", max_tokens, speculation)
        held.work = Generating(generation_id, max_tokens)

    def cancel(self) -> None:
        """Cancel a generation."""
        running = self.ledger.with_work(Generating, Stepping)
        if running:
            self._cancel(self.numbers.choice(running))

    def _cancel(self, held: Held) -> None:
        assert held.work is not None
        self._note("cancel", held.work.id)
        self.driver.cancel(held.work.id)

    def begin_steps(self) -> None:
        """Begin a stepped generation."""
        held = self._idle()
        if held is not None and held.content.token_ids and self._has_room(held):
            generation_id = self.driver.steps(held.id)
            self._note("begin_steps", held.id, "generation", generation_id)
            held.work = Stepping(generation_id)

    def answer(self) -> None:
        """Answer a step: sample or not, take tokens back, append others."""
        held = self._between_steps()
        if held is not None and self._has_room(held):
            assert isinstance(held.work, Stepping)
            samples, splice = self.numbers.random() < 0.7, Splice()
            if self.numbers.random() < 0.6:
                backtrack = self.numbers.choice([0, 0, 1, 2, 3, len(held.content.token_ids)])
                splice = Splice((), backtrack, tuple(self._tokens(self.numbers.randint(0, 4))))
            self._note("answer", held.work.id, "samples", samples, splice)
            held.work.expected = StepChange.of(held.content, samples, splice)
            self.driver.answer(held.work.id, *([] if splice == Splice() else [splice]), sample=samples)

    def fork_steps(self) -> None:
        """Fork a stepped generation with its context."""
        held = self._between_steps()
        if held is not None and self._has_place:
            assert isinstance(held.work, Stepping)
            child_id, generation_id = self.driver.fork_steps(held.work.id)
            self._note("fork_steps", held.work.id, "as", child_id, "generation", generation_id)
            content = held.content.fork(len(held.content.token_ids))
            self._hold(Held(child_id, held.run_id, content, Stepping(generation_id)))

    # Forward passes.

    def forward(self) -> None:
        """Compute provisional tokens after a context: a line, or a tree."""
        held = self._idle()
        if held is not None and held.content.token_ids and self._has_room(held):
            size, is_tree = self.numbers.randint(1, 8), self.numbers.random() < 0.5
            parents = [self.numbers.randint(-1, row - 1) if is_tree else row - 1 for row in range(size)]
            line = Line(self._tokens(size), parents)
            requests = [RowRequest(row, top=1) for row in range(-1, size)]
            operation_id = self.driver.forward(held.id, line.token_ids, *requests, parents=tuple(parents))
            self._note("forward", held.id, line, "operation", operation_id)
            held.work = Passing(operation_id, line)

    def end_forward(self) -> None:
        """Commit a path of what was computed, or discard it; discard what is not computed yet."""
        passing = self.ledger.with_work(Passing)
        if not passing:
            return
        held = self.numbers.choice(passing)
        assert isinstance(held.work, Passing)
        if held.work.is_done and self.numbers.random() < 0.7:
            line = held.work.line
            path = line.path(self.numbers.randint(-1, len(line.token_ids) - 1))
            self._note("commit", held.id, path)
            self.driver.commit(held.id, path)
            held.content.append(line.tokens(path))
            held.work = None
        else:
            self._discard(held)

    def _discard(self, held: Held) -> None:
        self._note("discard", held.id)
        self.driver.discard(held.id)
        held.work = None

    # Steps.

    def step(self) -> None:
        """Carry out some steps."""
        count = self.numbers.randint(1, 4)
        self._note("step", count)
        for _ in range(count):
            if self.driver.core.has_work:
                self.driver.step()

    def settle(self) -> None:
        """Carry out steps until nobody waits for anything."""
        self._note("settle")
        self.driver.settle()
        self.events.check()

    def break_model(self) -> None:
        """Let the next step fail, now and then."""
        if self.breaks and self.numbers.random() < 0.1:
            self._note("break_model")
            assert self.driver.runner is not None
            self.driver.runner.failures += 1
            self.events.may_break = True

    # What is used above.

    def _note(self, *what: object) -> None:
        self.history.append(" ".join(map(str, what)))

    def _wait_for_store(self) -> None:
        """Wait for threads that save and open, so that what happens depends on the seed alone."""
        saves = self.driver.core.saves
        while saves.is_waiting and not saves.has_work:
            time.sleep(0.0002)

    def _tokens(self, count: int) -> list[int]:
        """Return tokens of few kinds, half of them the same every time: contexts have much in common."""
        return [self.numbers.randint(3, 6) if self.numbers.random() < 0.5 else 3 + i % 5 for i in range(count)]

    def _hold(self, held: Held) -> None:
        self.ledger.contexts[held.id] = held

    @property
    def _has_place(self) -> bool:
        return len(self.ledger.contexts) < MOST_CONTEXTS

    def _has_room(self, held: Held) -> bool:
        return held.content.next_position + ROOM <= self.driver.info.context_len

    def _running(self) -> Run | None:
        runs = [run for run in self.ledger.runs.values() if not run.is_stopped]
        return self.numbers.choice(runs) if runs else None

    def _idle(self) -> Held | None:
        idle = [held for held in self.ledger.contexts.values() if held.is_idle]
        return self.numbers.choice(idle) if idle else None

    def _between_steps(self) -> Held | None:
        stepping = [
            held
            for held in self.ledger.contexts.values()
            if isinstance(held.work, Stepping) and held.work.expected is None
        ]
        return self.numbers.choice(stepping) if stepping else None
