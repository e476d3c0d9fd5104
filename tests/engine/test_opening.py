"""Opening saved contexts: where pages come from, what is refused, and what ends before it is there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tartlet_engine.api import ErrorCode, Opened
from tartlet_engine.opening_gate import MAX_UNDER_WAY
from tartlet_engine.saved_contexts import SavedContexts

PROMPT = list(range(10, 33))


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


@pytest.mark.parametrize("num_swap_pages", [0, 100])
def test_without_free_pages_what_was_evicted_from_waits_in_the_swap_space(
    hash_engine: Any, hash_text: Callable[..., list[int]], num_swap_pages: int
) -> None:
    """It cannot be computed again, so it is opened swapped; without room there either, it is refused."""
    driver = hash_engine(num_pages=13, swap_pages=num_swap_pages)
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.evict(context, 4, 10)
    driver.settle()
    driver.save(context)
    driver.settle()
    driver.free(context)
    driver.generate(driver.create(run, [7] * 40), max_tokens=4)
    while driver.num_held < 10:
        driver.step()
    opening, opened = driver.open_saved(run)
    while not driver.core.saves.has_work:  # no step meanwhile: the generation keeps its pages
        time.sleep(0.001)
    driver.settle()
    if num_swap_pages == 0:
        assert driver.failure(opening).code is ErrorCode.KV_EXHAUSTED
        return
    generation = driver.generate(opened, max_tokens=3)
    driver.settle()
    assert driver.failures == []

    kept = [*PROMPT[:4], *PROMPT[10:]]
    (first,) = hash_text(PROMPT, 1)
    assert driver.tokens(generation) == [first, *hash_text([*kept, first], 2)]
    assert driver.runner.num_computed_tokens == len(PROMPT) + 40 + 3 + 2


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


@pytest.mark.usefixtures("one_page_a_step")
def test_a_run_that_reaches_a_limit_while_it_opens(hash_engine: Any) -> None:
    """The limit is all that it hears of, and what was opened by half is given back."""
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


@pytest.mark.usefixtures("one_page_a_step")
def test_few_are_in_memory_at_a_time(hash_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many a run opens at once, few have been read and not been written into pages; all are opened at last."""
    driver = hash_engine(num_pages=400)
    run = driver.open_run()
    driver.save(driver.create(run, PROMPT))
    driver.settle()
    store, num_read = driver.core._saved, 0
    get = store.get

    def counted(tenant: str, name: str) -> Any:
        nonlocal num_read
        num_read += 1
        return get(tenant, name)

    monkeypatch.setattr(store, "get", counted)
    openings = [driver.open_saved(run) for _ in range(20)]
    freed = openings.pop(10)
    driver.free(freed[1])
    while driver.core.has_work or driver.core.saves.is_waiting:
        driver.step()
        driver.core.check_integrity()
        num_opened = sum(isinstance(event, Opened) for event in driver.events)
        assert num_read - num_opened <= MAX_UNDER_WAY

    assert all(driver.opened(operation).token_ids == tuple(PROMPT) for operation, _ in openings)
    assert num_read == 19
    driver.open_saved(run)
    driver.open_saved(run)
    driver.open_saved(run)
    driver.close_run(run)
    driver.settle()
    assert driver.num_held == 0
