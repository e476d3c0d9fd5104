"""Saving and opening contexts: what is restored is what was saved, and whatever ends early leaves nothing behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tartlet_engine import save_operations
from tartlet_engine.api import Done, ErrorCode, Failed
from tartlet_engine.saved_contexts import SavedContexts

PROMPT = list(range(10, 33))
RUNNERS = ["fused", "transformers"]


def rows(driver: Any, context_id: int, count: int) -> list[tuple[int, float]]:
    """Greedy tokens after a context, with the log-probability of each."""
    generation = driver.generate(context_id, num_logprobs=0, max_tokens=count)
    driver.settle()
    chunks = [event for event in driver.events if getattr(event, "generation_id", None) == generation]
    return [(p.chosen.token_id, p.chosen.logprob) for chunk in chunks for p in getattr(chunk, "logprobs", ())]


# ---- Restored is as saved ----


@pytest.mark.parametrize("length", [1, 3, 4, 5, 23])
@pytest.mark.parametrize("is_flushed", [True, False])
def test_an_opened_context_goes_on_as_the_saved_one(
    hash_engine: Any, hash_text: Callable[..., list[int]], length: int, is_flushed: bool
) -> None:
    """Tokens, logits and what the host wrote come back; nothing is computed again, and the original goes on."""
    driver = hash_engine()
    run = driver.open_run()
    context = driver.create(run, PROMPT[:length])
    if is_flushed:
        driver.flush(context)
        driver.settle()
    saving = driver.save(context, host_state="state")
    driver.settle()
    computed = driver.runner.num_computed_tokens
    opening, opened = driver.open_saved(run)
    driver.settle()
    event = driver.opened(opening)
    first = driver.generate(opened, max_tokens=1)
    driver.settle()

    assert driver.is_done(saving)
    assert event.token_ids == tuple(PROMPT[:length])
    assert event.host_state == "state"
    assert driver.runner.num_computed_tokens == computed == length
    assert driver.tokens(first) == hash_text(PROMPT[:length], 1)
    for each in (opened, context):
        generation = driver.generate(each, max_tokens=9)
        driver.settle()
        so_far = PROMPT[:length] + (driver.tokens(first) if each == opened else [])
        assert driver.tokens(generation) == hash_text(so_far, 9)
    driver.close_run(run)
    assert driver.num_held == 0


def test_an_empty_context_can_be_saved(hash_engine: Any) -> None:
    """It comes back empty."""
    driver = hash_engine()
    run = driver.open_run()
    driver.save(driver.create(run))
    driver.settle()
    opening, opened = driver.open_saved(run)
    driver.settle()
    driver.append(opened, PROMPT)
    driver.flush(opened)
    driver.settle()

    assert driver.opened(opening).token_ids == ()
    assert driver.failures == []


def test_kept_logits_are_where_others_are(hash_engine: Any) -> None:
    """Logits that come out of a file lie on the runner's device, to be sampled together with those it computes."""
    driver = hash_engine()
    run = driver.open_run()
    driver.save(driver.create(run, PROMPT))
    driver.settle()
    driver.runner.logits_device = torch.device("meta")
    _, opened = driver.open_saved(run)
    driver.settle()

    assert driver.logits(opened).device == torch.device("meta")


@pytest.mark.parametrize("runner", RUNNERS)
def test_restored_is_original(tiny_engine: Any, tmp_path: Path, runner: str) -> None:
    """At random points, across restarts: the fused runner's logits are the same bits, transformers' the same tokens."""
    makers = iter(range(1000))

    @settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        length=st.integers(1, 60),
        generated=st.integers(0, 20),
        appended=st.lists(st.integers(3, 500), max_size=20),
        has_restarted=st.booleans(),
    )
    def check(length: int, generated: int, appended: list[int], has_restarted: bool) -> None:
        folder = str(tmp_path / str(next(makers)))
        driver = tiny_engine(runner=runner, saved_path=folder)
        run = driver.open_run()
        context = driver.create(run, [3 + (7 * i) % 500 for i in range(length)])
        if generated:
            rows(driver, context, generated)
        driver.save(context)
        driver.settle()
        if has_restarted:
            driver.core.close()
            other = tiny_engine(runner=runner, saved_path=folder)
        else:
            other = driver
        other_run = other.open_run()
        _, opened = other.open_saved(other_run)
        other.settle()
        restored_logits, logits = other.logits(opened), driver.logits(context)
        if logits is not None:
            assert torch.equal(restored_logits, logits)
        driver.append(context, appended)
        other.append(opened, appended)
        expected, found = rows(driver, context, 12), rows(other, opened, 12)
        if runner == "fused":
            assert found == expected
        else:
            assert [token for token, _ in found] == [token for token, _ in expected]
            assert [logprob for _, logprob in found] == pytest.approx([value for _, value in expected], abs=1e-4)
        driver.core.check_integrity()
        other.core.check_integrity()

    check()


def test_formats_do_not_mix(tiny_engine: Any, tmp_path: Path) -> None:
    """What one runner or format has saved is refused by another, by name, and stays for its own."""
    folder = str(tmp_path / "saved")
    driver = tiny_engine(saved_path=folder)
    driver.save(driver.create(driver.open_run(), PROMPT))
    driver.settle()
    driver.core.close()
    for changed in ({"runner": "transformers"}, {"quantize": "int8"}, {"dtype": "bfloat16"}):
        other = tiny_engine(saved_path=folder, **changed)
        opening, _ = other.open_saved(other.open_run())
        other.settle()
        assert other.failure(opening).code is ErrorCode.UNSUPPORTED
        assert "tiny" in other.failure(opening).message
    again = tiny_engine(saved_path=folder)
    opening, _ = again.open_saved(again.open_run())
    again.settle()

    assert again.opened(opening).token_ids == tuple(PROMPT)


# ---- Order, names, tenants ----


def test_what_is_asked_afterwards_does_not_concern_what_is_saved(
    hash_engine: Any, hash_text: Callable[..., list[int]]
) -> None:
    """A save holds the tokens of its moment, whether the context is then extended, cut or freed."""
    driver = hash_engine(num_pages=100)
    run = driver.open_run()
    contexts = [driver.create(run, PROMPT) for _ in range(3)]
    for index, context in enumerate(contexts):
        driver.save(context, f"saved-{index}")
    driver.append(contexts[0], [40, 41])
    driver.truncate(contexts[1], 5)
    driver.free(contexts[2])
    driver.settle()
    for index in range(3):
        opening, opened = driver.open_saved(run, f"saved-{index}")
        driver.settle()
        generation = driver.generate(opened, max_tokens=5)
        driver.settle()
        assert driver.opened(opening).token_ids == tuple(PROMPT)
        assert driver.tokens(generation) == hash_text(PROMPT, 5)
    generation = driver.generate(contexts[1], max_tokens=5)
    driver.settle()

    assert driver.tokens(generation) == hash_text(PROMPT[:5], 5)
    assert driver.failures == []


def test_names_belong_to_tenants(hash_engine: Any) -> None:
    """Two tenants use the same name for contexts of their own; a third finds nothing."""
    driver = hash_engine()
    runs = [driver.open_run(tenant=tenant) for tenant in ("one", "two", "three")]
    for run, first in zip(runs[:2], (100, 200), strict=True):
        driver.save(driver.create(run, [first, *PROMPT]))
    driver.settle()
    openings = [driver.open_saved(run)[0] for run in runs]
    driver.settle()
    deleting = driver.delete_saved(runs[0])

    assert [driver.opened(opening).token_ids[0] for opening in openings[:2]] == [100, 200]
    assert driver.failure(openings[2]).code is ErrorCode.NOT_FOUND
    assert driver.is_done(deleting)
    assert [[saved.name for saved in driver.saved(run)] for run in runs] == [[], ["saved"], []]


def test_a_list_tells_what_there_is(hash_engine: Any) -> None:
    """Names in order, with tokens, bytes and the time that is left."""
    now = [1000.0]
    driver = hash_engine(saved=SavedContexts("hash", clock=lambda: now[0]))
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.save(context, "b", ttl_ms=5000)
    driver.save(context, "a")
    driver.settle()
    now[0] += 2
    listed = driver.saved(run)
    now[0] += 3
    later = driver.saved(run)

    assert [(saved.name, saved.model, saved.num_tokens, saved.expires_in_ms) for saved in listed] == [
        ("a", "hash", 23, None),
        ("b", "hash", 23, 3000),
    ]
    assert all(saved.num_bytes > 23 * 2 for saved in listed)
    assert [saved.name for saved in later] == ["a"]


@pytest.mark.parametrize("name", ["", "-a", ".", "a b", "a\n", "ä", "x" * 129, "a\0b", "../a"])
def test_bad_names_are_refused(hash_engine: Any, name: str) -> None:
    """A name outside the character set is refused at once by every command that takes one."""
    driver = hash_engine()
    run = driver.open_run()
    saving = driver.save(driver.create(run, PROMPT), name)
    opening, _ = driver.open_saved(run, name)
    deleting = driver.delete_saved(run, name)

    assert {driver.failure(each).code for each in (saving, opening, deleting)} == {ErrorCode.INVALID_ARGUMENT}


@pytest.mark.parametrize("options", [{"ttl_ms": 0}, {"ttl_ms": -5}, {"ttl_ms": 2**60}, {"host_state": "x" * (1 << 21)}])
def test_bad_options_are_refused(hash_engine: Any, options: dict[str, Any]) -> None:
    """Times and notes out of their ranges are refused."""
    driver = hash_engine()
    saving = driver.save(driver.create(driver.open_run(), PROMPT), **options)

    assert driver.failure(saving).code is ErrorCode.INVALID_ARGUMENT


def test_refusals_of_the_store_reach_the_program(hash_engine: Any) -> None:
    """Taken names and full quotas fail the save alone."""
    driver = hash_engine(saved=SavedContexts("hash", max_bytes=400))
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    first, second = driver.save(context), driver.save(context)
    driver.settle()
    big = driver.save(driver.create(run, PROMPT * 8), "big")
    driver.settle()

    assert driver.failure(first if not driver.is_done(first) else second).code is (
        ErrorCode.QUOTA_EXCEEDED if not driver.is_done(first) else ErrorCode.ALREADY_EXISTS
    )
    assert driver.failure(big).code is ErrorCode.QUOTA_EXCEEDED


def test_busy_contexts(hash_engine: Any) -> None:
    """A context cannot be saved while it generates; one that is being opened can only be freed."""
    driver = hash_engine()
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.save(context)
    driver.settle()
    driver.generate(context, max_tokens=5)
    saving = driver.save(context, "busy")
    _, opened = driver.open_saved(run)
    driver.append(opened, [5])
    generation = driver.generate(opened, max_tokens=1)
    fork = driver.fork(opened, 0)

    codes = {driver.failure(each).code for each in (saving, opened, generation, fork)}
    assert codes == {ErrorCode.UNAVAILABLE}
    driver.settle()


# ---- Ends before the end ----


class Gate(SavedContexts):
    """A store that waits before each answer until the test lets it go on."""

    def __init__(self) -> None:
        super().__init__("hash")
        self.opened = threading.Event()

    def get(self, tenant: str, name: str) -> Any:
        assert self.opened.wait(60)
        return super().get(tenant, name)


@pytest.fixture
def gate() -> Iterator[Gate]:
    store = Gate()
    yield store
    store.opened.set()


@pytest.mark.parametrize("end", ["free", "close_run"])
def test_an_opening_that_nobody_wants_any_more(hash_engine: Any, gate: Gate, end: str) -> None:
    """Freed or closed while the disk is read, it leaves no context, no page and no event."""
    driver = hash_engine(saved=gate)
    run = driver.open_run()
    driver.save(driver.create(run, PROMPT))
    driver.settle()
    _, opened = driver.open_saved(run)
    if end == "free":
        driver.free(opened)
    else:
        driver.close_run(run)
    driver.events.clear()
    gate.opened.set()
    driver.settle()

    assert driver.events == []
    driver.close_run(run)
    assert (driver.num_held, driver.core.stats().contexts) == (0, 0)


@pytest.mark.parametrize("num_steps", range(8))
def test_a_run_that_ends_while_it_saves_and_opens(
    hash_engine: Any, monkeypatch: pytest.MonkeyPatch, num_steps: int
) -> None:
    """Whenever it ends: nothing of it is left, no event follows, and what was saved is whole or not there."""
    monkeypatch.setattr(save_operations, "TRANSFER_BYTES", 1)  # a page a step
    driver = hash_engine(max_batch_tokens=12)
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.save(context, "before")
    driver.settle()
    driver.save(driver.create(run, PROMPT[::-1]), "during")
    driver.open_saved(run, "before")
    driver.step(num_steps)
    driver.close_run(run)
    driver.events.clear()
    driver.settle()
    events = list(driver.events)
    other = driver.open_run()
    opening, _ = driver.open_saved(other, "during")
    driver.settle()

    assert events == []
    assert driver.core.stats().contexts == (0 if driver.failures else 1)
    if not driver.failures:
        assert driver.opened(opening).token_ids == tuple(PROMPT[::-1])
    driver.close_run(other)
    assert driver.num_held == 0


def test_a_save_whose_tokens_cannot_be_computed(hash_engine: Any) -> None:
    """If the model fails, the save fails, once, and what it held is freed."""
    driver = hash_engine()
    run = driver.open_run()
    saving = driver.save(driver.create(run, PROMPT))
    driver.runner.failures = 2  # of the context, and of the fork that then tries itself
    driver.settle()

    assert driver.failure(saving).code is ErrorCode.INTERNAL
    assert driver.core.stats().contexts == 1


@pytest.mark.parametrize("method", ["read_pages", "write_pages"])
def test_a_copy_that_fails(hash_engine: Any, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """If pages cannot be read or written, that operation fails, and a neighbour goes on."""
    driver = hash_engine()
    run = driver.open_run()
    driver.save(driver.create(run, PROMPT))
    if method == "write_pages":
        driver.settle()

    def fail(*args: Any) -> Any:
        raise ValueError("broken")

    monkeypatch.setattr(driver.runner, method, fail)
    driver.open_saved(run)
    neighbour = driver.generate(driver.create(run, PROMPT), max_tokens=5)
    driver.settle()

    assert len(driver.tokens(neighbour)) == 5
    assert {failed.error.code for failed in driver.failures} <= {ErrorCode.INTERNAL, ErrorCode.NOT_FOUND}
    assert driver.failures


# ---- Room ----


def test_without_free_pages_the_tokens_are_computed_again(
    hash_engine: Any, hash_text: Callable[..., list[int]]
) -> None:
    """A context opened into a full cache waits for pages as others do, and goes on right when there are some."""
    driver = hash_engine(num_pages=8)
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.save(context)
    driver.settle()
    opening, opened = driver.open_saved(run)
    driver.settle()
    assert driver.opened(opening).token_ids == tuple(PROMPT)
    driver.free(context)
    generation = driver.generate(opened, max_tokens=3)
    driver.settle()

    assert driver.tokens(generation) == hash_text(PROMPT, 3)


def test_swapped_contexts_are_saved_and_idle_ones_make_room(hash_engine: Any, hash_text: Callable[..., Any]) -> None:
    """A context is saved out of the swap space, and opened into pages that idle contexts give up."""
    driver = hash_engine(num_pages=12, swap_pages=100)
    run = driver.open_run()
    context, other = driver.create(run, PROMPT), driver.create(run, range(100, 140))
    for each in (context, other):
        driver.flush(each)
        driver.settle()
    assert driver.core._contexts.get(context).page_table.num_swapped == 4
    saving = driver.save(context)
    driver.settle()
    computed = driver.runner.num_computed_tokens
    opening, opened = driver.open_saved(run)
    driver.settle()
    generation = driver.generate(opened, max_tokens=1)
    driver.settle()

    assert driver.is_done(saving)
    assert driver.opened(opening).token_ids == tuple(PROMPT)
    assert driver.tokens(generation) == hash_text(PROMPT, 1)
    assert driver.runner.num_computed_tokens == computed


def test_what_can_never_fit_is_refused(hash_engine: Any) -> None:
    """A context of more pages than the run may hold is refused when it is opened."""
    driver = hash_engine()
    driver.save(driver.create(driver.open_run(), PROMPT))
    driver.settle()
    run = driver.open_run(max_pages=3)
    opening, _ = driver.open_saved(run)
    driver.settle()

    assert driver.failure(opening).code is ErrorCode.KV_EXHAUSTED
    assert driver.core.stats().contexts == 1


def test_a_limit_of_pages_ends_the_run(hash_engine: Any) -> None:
    """Opened contexts count for the run's pages: one too many is a limit reached, and holds nothing."""
    driver = hash_engine()
    run = driver.open_run(max_pages=10)
    driver.save(driver.create(run, PROMPT))
    driver.settle()
    driver.open_saved(run)
    driver.settle()

    assert [(event.limit, event.used, event.allowed) for event in driver.limits_reached] == [("kv_pages", 12, 10)]
    driver.close_run(run)
    assert driver.num_held == 0


def test_a_run_that_reaches_a_limit_while_it_opens(hash_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is all that it hears of, and what was opened by half is given back."""
    monkeypatch.setattr(save_operations, "TRANSFER_BYTES", 1)
    driver = hash_engine(num_pages=200)
    saver = driver.open_run()
    driver.save(driver.create(saver, PROMPT))
    driver.settle()
    driver.close_run(saver)
    run = driver.open_run(max_generated_tokens=2)
    driver.open_saved(run)
    while not driver.num_held:
        driver.step()
    driver.generate(driver.create(run, [7]), max_tokens=9)
    driver.settle()

    assert [event.limit for event in driver.limits_reached] == ["generated_tokens"]
    assert driver.failures == []
    driver.close_run(run)
    assert driver.num_held == 0


def test_others_go_on_while_pages_are_copied(hash_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saving and opening copy a bounded number of pages between two steps, in which others get their tokens."""
    monkeypatch.setattr(save_operations, "TRANSFER_BYTES", 1)
    driver = hash_engine(num_pages=200)
    run = driver.open_run()
    long = driver.create(run, PROMPT * 4)
    driver.flush(long)
    driver.settle()
    neighbour = driver.generate(driver.create(run, PROMPT), max_tokens=100)
    saving = driver.save(long)
    driver.step(20)

    assert not driver.is_done(saving)
    assert len(driver.tokens(neighbour)) >= 19
    driver.settle()
    assert driver.is_done(saving)


def test_random_schedules(
    hash_engine: Any, hash_text: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is saved, opened, forked, cut and freed in whatever order: contexts hold what they should."""
    monkeypatch.setattr(save_operations, "TRANSFER_BYTES", 20)

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        driver = hash_engine(num_pages=400, max_batch_tokens=16)
        run = driver.open_run()
        first = driver.create(run, PROMPT)
        contexts: dict[int, Sequence[int]] = {first: PROMPT}
        names: dict[str, Sequence[int]] = {}
        openings: dict[int, Sequence[int]] = {}
        for step in range(data.draw(st.integers(1, 15))):
            action = data.draw(
                st.sampled_from(("save", "open", "append", "fork", "truncate", "generate", "free", "step"))
            )
            context = data.draw(st.sampled_from(sorted(contexts))) if contexts else None
            if action == "open" and names:
                name = data.draw(st.sampled_from(sorted(names)))
                driver.settle()
                opening, opened = driver.open_saved(run, name)
                openings[opening] = names[name]
                driver.settle()
                contexts[opened] = names[name]
            elif context is None:
                continue
            elif action == "save":
                name = f"n{step % 3}"
                if name in names:
                    driver.settle()  # of saves under way under one name, whichever is done last stays
                names[name] = list(contexts[context])
                driver.save(context, name, overwrite=True)
            elif action == "append":
                more = data.draw(st.lists(st.integers(3, 500), min_size=1, max_size=9))
                driver.append(context, more)
                contexts[context] = [*contexts[context], *more]
            elif action == "fork":
                length = data.draw(st.integers(0, len(contexts[context])))
                contexts[driver.fork(context, length)] = contexts[context][:length]
            elif action == "truncate":
                length = data.draw(st.integers(1, len(contexts[context]))) if contexts[context] else 0
                driver.truncate(context, length)
                contexts[context] = contexts[context][:length]
            elif action == "free":
                driver.free(context)
                del contexts[context]
            elif action == "generate" and contexts[context]:
                generation = driver.generate(context, max_tokens=3)
                driver.settle()
                assert driver.tokens(generation) == hash_text(contexts[context], 3)
                contexts[context] = [*contexts[context], *driver.tokens(generation)]
            else:
                driver.step(data.draw(st.integers(1, 3)))
        driver.settle()
        driver.core.check_integrity()
        assert [event for event in driver.events if isinstance(event, Failed)] == []
        assert all(tuple(tokens) == driver.opened(opening).token_ids for opening, tokens in openings.items())
        driver.close_run(run)
        assert driver.num_held == 0
        assert all(not isinstance(event, Done) or event.operation_id for event in driver.events)

    check()
