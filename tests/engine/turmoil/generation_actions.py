"""Random actions that make the model compute: generations, steps, forward passes."""

from __future__ import annotations

from tartlet_engine.api import RowRequest, Speculation, Splice
from tests.engine.turmoil.asking import Asking
from tests.engine.turmoil.contents import Line, StepChange
from tests.engine.turmoil.ledger import Generating, Held, Passing, Stepping


class GenerationActions(Asking):
    """Each asks the engine for something, and notes in the ledger what must come of it."""

    def generate(self) -> None:
        """Generate on a context."""
        held = self.an_idle_context()
        if held is not None and held.content.token_ids and self.has_room(held):
            self.start_generation(held, self.numbers.choice([1, 2, 5, 12]))

    def speculate(self) -> None:
        """Generate with drafts, some of whose tokens are wrong."""
        held = self.an_idle_context()
        if held is not None and held.content.token_ids and self.has_room(held):
            numbers, max_tokens = self.numbers, self.numbers.choice([1, 2, 5, 12])
            draft = held.content.continuation(max_tokens)
            for _ in range(numbers.randint(0, 2)):
                draft[numbers.randrange(max_tokens)] = 5
            max_draft, ngram = numbers.randint(1, 8), numbers.randint(1, 3)
            speculation = Speculation(max_draft=max_draft, ngram=ngram, expected_token_ids=tuple(draft))
            self.start_generation(held, max_tokens, speculation)

    def start_generation(self, held: Held, max_tokens: int, speculation: Speculation | None = None) -> None:
        """Start a generation on a context."""
        generation_id = self.driver.generate(held.id, speculation=speculation, max_tokens=max_tokens)
        self.note("generate", held.id, "generation", generation_id, "max_tokens", max_tokens, speculation)
        held.work = Generating(generation_id, max_tokens)

    def cancel(self) -> None:
        """Cancel a generation."""
        running = self.ledger.with_work(Generating, Stepping)
        if running:
            self.cancel_work(self.numbers.choice(running))

    def cancel_work(self, held: Held) -> None:
        """Cancel the generation on a context."""
        assert held.work is not None
        self.note("cancel", held.work.id)
        self.driver.cancel(held.work.id)

    def begin_steps(self) -> None:
        """Begin a stepped generation."""
        held = self.an_idle_context()
        if held is not None and held.content.token_ids and self.has_room(held):
            generation_id = self.driver.steps(held.id)
            self.note("begin_steps", held.id, "generation", generation_id)
            held.work = Stepping(generation_id)

    def answer(self) -> None:
        """Answer a step: sample or not, take tokens back, append others."""
        held = self.a_context_between_steps()
        if held is not None and self.has_room(held):
            assert isinstance(held.work, Stepping)
            samples, splice = self.numbers.random() < 0.7, Splice()
            if self.numbers.random() < 0.6:
                backtrack = self.numbers.choice([0, 0, 1, 2, 3, len(held.content.token_ids)])
                splice = Splice((), backtrack, tuple(self.tokens(self.numbers.randint(0, 4))))
            self.note("answer", held.work.id, "samples", samples, splice)
            held.work.expected = StepChange.of(held.content, samples, splice)
            self.driver.answer(held.work.id, *([] if splice == Splice() else [splice]), sample=samples)

    def fork_steps(self) -> None:
        """Fork a stepped generation with its context."""
        held = self.a_context_between_steps()
        if held is not None and self.has_place:
            assert isinstance(held.work, Stepping)
            child_id, generation_id = self.driver.fork_steps(held.work.id)
            self.note("fork_steps", held.work.id, "as", child_id, "generation", generation_id)
            content = held.content.fork(len(held.content.token_ids))
            self.hold(Held(child_id, held.run_id, content, Stepping(generation_id)))

    def forward(self) -> None:
        """Compute provisional tokens after a context: a line, or a tree."""
        held = self.an_idle_context()
        if held is not None and held.content.token_ids and self.has_room(held):
            size, is_tree = self.numbers.randint(1, 8), self.numbers.random() < 0.5
            parents = [self.numbers.randint(-1, row - 1) if is_tree else row - 1 for row in range(size)]
            line = Line(self.tokens(size), parents)
            requests = [RowRequest(row, top=1) for row in range(-1, size)]
            operation_id = self.driver.forward(held.id, line.token_ids, *requests, parents=tuple(parents))
            self.note("forward", held.id, line, "operation", operation_id)
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
            self.note("commit", held.id, path)
            self.driver.commit(held.id, path)
            held.content.append(line.tokens(path))
            held.work = None
        else:
            self.discard(held)

    def discard(self, held: Held) -> None:
        """Discard the forward pass on a context."""
        self.note("discard", held.id)
        self.driver.discard(held.id)
        held.work = None
