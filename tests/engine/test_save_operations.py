"""Saving and opening contexts: what is restored is what was saved, and whatever ends early leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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


@pytest.mark.usefixtures("one_page_a_step")
def test_random_schedules(hash_engine: Any, hash_text: Callable[..., list[int]]) -> None:
    """Whatever is saved, opened, forked, cut and freed in whatever order: contexts hold what they should."""

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
