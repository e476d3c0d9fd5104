"""The engine as a whole, step by step: whatever is asked in whatever order, every token is the right one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tartlet_engine.api import ErrorCode, FinishReason

HashText = Callable[[Sequence[int], int], list[int]]

TENANTS = ("a", "a", "b")

# Few beginnings and few tokens after them: contexts have prefixes in common all the time, and part at every position.
tails = st.lists(st.integers(100, 101), max_size=9)
prompts = st.builds(lambda length, tail: [*range(30, 30 + length), *tail], st.integers(0, 14), tails)


@pytest.mark.parametrize("runs_ahead", [False, True])
@pytest.mark.parametrize("num_pages", [400, 14])
def test_any_history_gives_the_right_tokens(
    hash_engine: Any, hash_text: HashText, num_pages: int, runs_ahead: bool
) -> None:
    """Whatever happens to contexts, generations get the tokens that fresh contexts would get, and pages balance.

    With few pages some fail because the cache is full, which is the only way to fail. Contexts of two tenants have
    prefixes in common, and those of each tenant find each other's pages, and those that the operator has published.
    """

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.driver = hash_engine(num_pages=num_pages, page_size=4, max_batch_tokens=13, runs_ahead=runs_ahead)
            self.runs = [self.driver.open_run(tenant=tenant) for tenant in TENANTS]
            self.contexts: dict[int, list[int]] = {}  # id -> tokens, those still being generated left out
            self.owners: dict[int, int] = {}  # context id -> run
            self.running: dict[int, tuple[int, list[int], int]] = {}  # generation -> context, prompt, count
            self.flushes: list[int] = []
            self.published: list[int] = []

        def busy(self) -> set[int]:
            return {context_id for context_id, _, _ in self.running.values()}

        def pick(self, data: st.DataObject, idle: bool) -> int | None:
            choices = [c for c in self.contexts if not idle or c not in self.busy()]
            return data.draw(st.sampled_from(choices)) if choices else None

        @rule(data=st.data(), tokens=prompts)
        def create(self, data: st.DataObject, tokens: list[int]) -> None:
            run_id = data.draw(st.sampled_from(self.runs))
            context_id = self.driver.create(run_id, tokens)
            self.contexts[context_id], self.owners[context_id] = tokens, run_id

        @rule(data=st.data(), tokens=tails)
        def append(self, data: st.DataObject, tokens: list[int]) -> None:
            if (context_id := self.pick(data, idle=True)) is not None:
                self.driver.append(context_id, tokens)
                self.contexts[context_id] = self.contexts[context_id] + tokens

        @rule(data=st.data())
        def truncate(self, data: st.DataObject) -> None:
            if (context_id := self.pick(data, idle=True)) is not None:
                length = data.draw(st.integers(0, len(self.contexts[context_id])))
                self.driver.truncate(context_id, length)
                self.contexts[context_id] = self.contexts[context_id][:length]

        @rule(data=st.data(), whole=st.booleans(), count=st.integers(1, 3))
        def fork(self, data: st.DataObject, whole: bool, count: int) -> None:
            if (context_id := self.pick(data, idle=False)) is not None:
                tokens = self.contexts[context_id]
                length = len(tokens) if whole else data.draw(st.integers(0, len(tokens)))
                for _ in range(count):
                    child_id = self.driver.fork(context_id, length)
                    self.contexts[child_id], self.owners[child_id] = tokens[:length], self.owners[context_id]

        @rule(data=st.data())
        def flush(self, data: st.DataObject) -> None:
            if (context_id := self.pick(data, idle=True)) is not None:
                self.flushes.append(self.driver.flush(context_id))

        @rule(data=st.data(), count=st.integers(1, 9))
        def generate(self, data: st.DataObject, count: int) -> None:
            context_id = self.pick(data, idle=True)
            if context_id is not None and self.contexts[context_id]:
                generation_id = self.driver.generate(context_id, max_tokens=count)
                self.running[generation_id] = (context_id, self.contexts[context_id], count)

        @precondition(lambda self: self.running)
        @rule(data=st.data())
        def cancel(self, data: st.DataObject) -> None:
            generation_id = data.draw(st.sampled_from(sorted(self.running)))
            self.driver.cancel(generation_id)
            self.collect()
            assert generation_id not in self.running

        @rule(data=st.data())
        def free(self, data: st.DataObject) -> None:
            if (context_id := self.pick(data, idle=False)) is not None:
                self.driver.free(context_id)
                self.forget(context_id)

        @rule(data=st.data())
        def close_run(self, data: st.DataObject) -> None:
            run_id = data.draw(st.sampled_from(self.runs))
            self.driver.close_run(run_id)
            self.runs = [kept for kept in self.runs if kept != run_id]
            self.runs.append(self.driver.open_run(tenant=data.draw(st.sampled_from(TENANTS))))
            for context_id in [c for c in self.contexts if self.owners[c] == run_id]:
                self.forget(context_id)

        @rule(length=st.integers(4, 14))
        def publish(self, length: int) -> None:
            self.published.append(self.driver.publish(range(30, 30 + length)))

        @precondition(lambda self: self.published)
        @rule(data=st.data())
        def unpublish(self, data: st.DataObject) -> None:
            index = data.draw(st.integers(0, len(self.published) - 1))
            self.driver.unpublish(self.published.pop(index))

        @rule(count=st.integers(1, 6))
        def step(self, count: int) -> None:
            for _ in range(count):
                if self.driver.core.has_work:
                    self.driver.step()
            self.collect()

        def forget(self, context_id: int) -> None:
            del self.contexts[context_id]
            self.running = {g: state for g, state in self.running.items() if state[0] != context_id}

        def collect(self) -> None:
            """Check what generations have produced, and take the tokens over into the contexts."""
            failed = {event.failed_id for event in self.driver.failures}
            ended = {event.generation_id for event in self.driver.events if hasattr(event, "reason")}
            for generation_id, (context_id, prompt, count) in list(self.running.items()):
                tokens = self.driver.tokens(generation_id)
                assert tokens == hash_text(prompt, len(tokens))
                self.contexts[context_id] = prompt + tokens
                if generation_id in failed:
                    del self.running[generation_id]
                elif generation_id in ended:
                    reason = self.driver.finished(generation_id).reason
                    assert reason == (FinishReason.LENGTH if len(tokens) == count else FinishReason.CANCELLED)
                    del self.running[generation_id]

        @invariant()
        def adds_up(self) -> None:
            self.driver.core.check_integrity()
            codes = {failed.error.code for failed in self.driver.failures}
            allowed = {ErrorCode.CANCELLED}  # of prefixes that were unpublished too early
            assert codes <= (allowed if num_pages > 100 else allowed | {ErrorCode.KV_EXHAUSTED})

        def teardown(self) -> None:
            self.driver.settle()
            self.collect()
            assert self.running == {}
            for run_id in self.runs:
                self.driver.close_run(run_id)
            for prefix_id in self.published:
                self.driver.unpublish(prefix_id)
            self.driver.core.check_integrity()
            assert self.driver.num_held == 0

    run_state_machine_as_test(Machine, settings=settings(max_examples=60, stateful_step_count=40, deadline=None))
