"""Random actions on runs, prefixes and contexts."""

from __future__ import annotations

from tests.engine.conftest import HASH_ADAPTERS
from tests.engine.turmoil.asking import Asking
from tests.engine.turmoil.contents import Content
from tests.engine.turmoil.ledger import Evicting, Generating, Held, Opening, Run, Stepping

MOST_RUNS = 4
MOST_PREFIXES = 3
NAMES = ("x", "y", "z")


class ContextActions(Asking):
    """Each asks the engine for something, and notes in the ledger what must come of it."""

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
            self.note("open_run", run_id, tenant, limits)

    def close_run(self) -> None:
        """Close a run in whatever state it is, now and then."""
        if len(self.ledger.runs) > 1 and self.numbers.random() < 0.2:
            run_id = self.numbers.choice(list(self.ledger.runs))
            self.note("close_run", run_id)
            self.driver.close_run(run_id)
            self.ledger.close(run_id)

    def publish(self) -> None:
        """Publish a prefix, now and then."""
        if len(self.ledger.prefixes) < MOST_PREFIXES and self.numbers.random() < 0.3:
            token_ids, adapter = self.tokens(self.numbers.choice([8, 20])), self.numbers.choice([None, "red"])
            self.note("publish", token_ids, adapter)
            self.ledger.prefixes.append(self.driver.publish(token_ids, adapter))

    def unpublish(self) -> None:
        """Let go of a prefix."""
        if self.ledger.prefixes:
            self._unpublish(self.ledger.prefixes[-1])

    def _unpublish(self, prefix_id: int) -> None:
        self.note("unpublish", prefix_id)
        self.ledger.prefixes.remove(prefix_id)
        self.ledger.unpublished.append(prefix_id)
        self.driver.unpublish(prefix_id)

    def create(self) -> None:
        """Make a context with tokens."""
        run = self.a_running_run()
        if run is not None and self.has_place:
            token_ids = self.tokens(self.numbers.choice([1, 3, 8, 20, 40]))
            adapter = self.numbers.choice([None, None, *HASH_ADAPTERS])
            context_id = self.driver.create(run.id, token_ids, adapter)
            self.note("create", context_id, "of run", run.id, token_ids, adapter)
            self.hold(Held(context_id, run.id, Content.of(token_ids, adapter)))

    def fork(self) -> None:
        """Fork a context: all of it, or its beginning. It may be looking ahead, or be evicted from."""
        forkable = [
            held
            for held in self.ledger.contexts.values()
            if not held.is_lost and not isinstance(held.work, Generating | Stepping | Opening)
        ]
        if forkable and self.has_place:
            held = self.numbers.choice(forkable)
            num_tokens = len(held.content.token_ids)
            length = self.numbers.choice([num_tokens, self.numbers.randint(0, num_tokens)])
            child_id = self.driver.fork(held.id, length)
            self.note("fork", held.id, "as", child_id, "length", length)
            self.hold(Held(child_id, held.run_id, held.content.fork(length)))

    def truncate(self) -> None:
        """Cut a context's end off."""
        held = self.an_idle_context()
        if held is not None:
            length = self.numbers.randint(0, len(held.content.token_ids))
            self.note("truncate", held.id, "to", length)
            self.driver.truncate(held.id, length)
            held.content.truncate(length)

    def append(self) -> None:
        """Append tokens to a context."""
        held = self.an_idle_context()
        if held is not None and self.has_room(held):
            token_ids = self.tokens(self.numbers.randint(1, 9))
            self.note("append", held.id, token_ids)
            self.driver.append(held.id, token_ids)
            held.content.append(token_ids)

    def flush(self) -> None:
        """Ask that a context be computed."""
        held = self.an_idle_context()
        if held is not None:
            self.note("flush", held.id, "operation", self.driver.flush(held.id))

    def evict(self) -> None:
        """Evict tokens from a context; sometimes whole pages of them, often up to an earlier gap."""
        held = self.an_idle_context()
        if held is not None and held.content.token_ids:
            last = len(held.content.token_ids) - 1
            start, end = sorted((self.numbers.randint(0, last), self.numbers.randint(0, last)))
            gaps = held.content.gaps()
            if gaps and self.numbers.random() < 0.5:
                end = min(last, self.numbers.choice(gaps) + self.numbers.randint(-1, 1))
                start = self.numbers.randint(0, end)
            elif self.numbers.random() < 0.3:
                page_size = self.driver.info.page_size
                start, end = start // page_size * page_size, end // page_size * page_size
            operation_id = self.driver.evict(held.id, start, end)
            self.note("evict", held.id, start, end, "operation", operation_id)
            held.work = Evicting(operation_id, start, end)

    def free(self) -> None:
        """Free a context, whatever happens on it."""
        if self.ledger.contexts:
            context_id = self.numbers.choice(list(self.ledger.contexts))
            self.note("free", context_id)
            self.driver.free(context_id)
            del self.ledger.contexts[context_id]

    def save(self) -> None:
        """Save a context under one of a few names of its tenant."""
        held = self.an_idle_context()
        if held is not None:
            tenant, name = self.ledger.runs[held.run_id].tenant, self.numbers.choice(NAMES)
            operation_id = self.driver.save(held.id, name, overwrite=True)
            self.note("save", held.id, "as", tenant, name, "operation", operation_id)
            self.ledger.shelf.save(operation_id, tenant, name, held.content)
            for opening in self.ledger.openings():
                if (opening.tenant, opening.name) == (tenant, name):
                    opening.candidates.append(self.ledger.shelf.under_way[operation_id][1])

    def open_saved(self) -> None:
        """Open what may be saved, or may not."""
        run = self.a_running_run()
        if run is not None and self.has_place:
            names = self.ledger.shelf.names(run.tenant)
            if not names and self.numbers.random() < 0.7:
                return
            name = self.numbers.choice(names if names and self.numbers.random() < 0.9 else NAMES)
            operation_id, context_id = self.driver.open_saved(run.id, name)
            self.note("open_saved", run.tenant, name, "as", context_id, "operation", operation_id)
            key = (run.tenant, name)
            work = Opening(operation_id, *key, self.ledger.shelf.has(*key), self.ledger.shelf.may_give(*key))
            self.hold(Held(context_id, run.id, Content.of((), None), work))
