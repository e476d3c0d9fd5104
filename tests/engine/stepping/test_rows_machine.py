"""A state machine: whatever programs do with their steps, every context is what a fresh one with its tokens is."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tartlet_engine.api import Splice, StepRefused

TOKENS = st.integers(20, 200)
BRANCHES = st.integers(0, 9)
# Whether the condition holds (0) or not, what is dropped, what is forced.
SPLICES = st.lists(
    st.tuples(st.sampled_from([0, 0, 1]), st.sampled_from([0, 1, 1, 2, 3, 6]), st.lists(TOKENS, max_size=5)), max_size=2
)


def test_every_context_equals_a_fresh_one(hash_engine: Any, hash_text: Any) -> None:
    """Steps, splices, forks, waits, neighbours that press for pages: what is sampled depends on the tokens alone.

    The hash model samples a token that depends on every token before it, so one wrong position, page or logit shows.
    """

    class Steps(RuleBasedStateMachine):
        @initialize(swap_pages=st.sampled_from([0, 12]), prefix_cache=st.booleans())
        def begin(self, swap_pages: int, prefix_cache: bool) -> None:
            self.driver = hash_engine(
                num_pages=20, max_batch_tokens=8, swap_pages=swap_pages, prefix_cache=prefix_cache, runs_ahead=True
            )
            self.run = self.driver.open_run()
            self.plain: list[tuple[int, list[int]]] = []
            self.known: dict[int, list[int]] = {}  # tokens of each branch by its generation, as programs know them
            self.branches: list[tuple[int, int]] = []  # context and generation
            self.pending: dict[int, Any] = {}  # what was answered, and is not done yet
            self.start([30, 31, 32])

        def pick(self, branch: int) -> tuple[int, int]:
            return self.branches[branch % len(self.branches)]

        @rule(prompt=st.lists(TOKENS, min_size=1, max_size=12))
        def start(self, prompt: list[int]) -> None:
            if len(self.known) < 3:
                context = self.driver.create(self.run, prompt)
                steps = self.driver.steps(context)
                self.known[steps] = prompt
                self.branches.append((context, steps))

        @rule(branch=BRANCHES, splices=SPLICES, samples=st.booleans(), num_steps=st.integers(0, 3))
        def answer(self, branch: int, splices: Any, samples: bool, num_steps: int) -> None:
            _, steps = self.pick(branch)
            if steps in self.pending:
                return self.go_on(1)
            (expected,) = hash_text(self.known[steps], 1)
            given = [Splice((expected + other,), back, tuple(tokens)) for other, back, tokens in splices]
            if len(self.known[steps]) > 25:
                given, samples = [Splice((), 20)], False
            if not samples:
                given = [Splice((), splice.backtrack, splice.token_ids) for splice in given[:1]]
            self.driver.answer(steps, *given, sample=samples)
            if refused := [event for event in self.driver.events if isinstance(event, StepRefused)]:
                self.driver.events.remove(refused[0])  # it was to drop more than there is
            else:
                self.pending[steps] = (given, samples)
            self.go_on(num_steps)

        @rule(branch=BRANCHES)
        def fork(self, branch: int) -> None:
            _, steps = self.pick(branch)
            if steps not in self.pending and len(self.known) < 5:
                context, child = self.driver.fork_steps(steps)
                self.known[child] = self.known[steps]
                self.branches.append((context, child))

        @rule(prompt=st.lists(TOKENS, min_size=1, max_size=40), count=st.integers(1, 6))
        def neighbour(self, prompt: list[int], count: int) -> None:
            if len(self.plain) < 6:
                context = self.driver.create(self.run, prompt)
                self.plain.append((self.driver.generate(context, max_tokens=count), hash_text(prompt, count)))

        @rule(branch=BRANCHES)
        def fork_the_context(self, branch: int) -> None:
            context, steps = self.pick(branch)
            if steps not in self.pending and len(self.plain) < 6:
                fork = self.driver.fork(context, len(self.known[steps]))
                self.plain.append((self.driver.generate(fork, max_tokens=2), hash_text(self.known[steps], 2)))

        @rule(count=st.integers(1, 4))
        def go_on(self, count: int) -> None:
            for _ in range(count):
                if self.driver.core.has_work:
                    self.driver.step()

        @rule(branch=BRANCHES, frees=st.booleans())
        def stop(self, branch: int, frees: bool) -> None:
            if len(self.branches) == 1:
                return
            context, steps = self.pick(branch)
            self.branches.remove((context, steps))
            if frees:
                self.driver.free(context)
            else:
                self.driver.cancel(steps)
            del self.known[steps]
            self.pending.pop(steps, None)

        @invariant()
        def outcomes_are_what_a_fresh_context_gives(self) -> None:
            if not hasattr(self, "driver"):
                return
            self.driver.core.check_integrity()
            assert not self.driver.failures
            for steps, (splices, samples) in list(self.pending.items()):
                if not (outcomes := self.driver.outcomes(steps)):
                    continue
                (outcome,) = outcomes
                before = self.known[steps]
                assert outcome.sampled == (hash_text(before, 1)[0] if samples else None)
                fitting = [s for s in splices if not s.when_sampled or outcome.sampled in s.when_sampled]
                back = fitting[0].backtrack if fitting else 0
                forced = fitting[0].token_ids if fitting else ()
                after = [*before, outcome.sampled] if samples else before
                after = [*after[: len(after) - back], *forced]
                assert [*before[: len(before) - outcome.backtrack], *outcome.token_ids] == after
                self.known[steps] = after
                del self.pending[steps]
                self.driver.events.remove(outcome)

        def teardown(self) -> None:
            if not hasattr(self, "driver"):
                return
            self.driver.settle()
            self.outcomes_are_what_a_fresh_context_gives()
            assert not self.pending
            for generation, expected in self.plain:
                assert self.driver.tokens(generation) == expected
            self.driver.close_run(self.run)
            self.driver.settle()
            assert self.driver.num_held == 0
            self.driver.core.check_integrity()
            self.driver.core.close()

    run_state_machine_as_test(Steps, settings=settings(max_examples=60, stateful_step_count=50, deadline=None))
