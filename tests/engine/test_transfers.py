"""Copying pages between steps: some at a time, so that others go on, and nothing is left of what ends or fails."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from tartlet_engine import transfers
from tartlet_engine.api import ErrorCode

PROMPT = list(range(10, 33))


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


@pytest.mark.usefixtures("one_page_a_step")
def test_others_go_on_while_pages_are_copied(hash_engine: Any) -> None:
    """Saving and opening copy a bounded number of pages between two steps, in which others get their tokens."""
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


@pytest.mark.usefixtures("one_page_a_step")
@pytest.mark.parametrize("num_steps", range(8))
def test_a_run_that_ends_while_it_saves_and_opens(hash_engine: Any, num_steps: int) -> None:
    """Whenever it ends: nothing of it is left, no event follows, and what was saved is whole or not there."""
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


@pytest.mark.usefixtures("one_page_a_step")
def test_tenants_take_turns(hash_engine: Any) -> None:
    """One context that is saved does not wait for dozens that another tenant saves, and these are done in order."""
    driver = hash_engine(num_pages=400)
    storm, calm = driver.open_run(tenant="storm"), driver.open_run(tenant="calm")
    contexts = [driver.create(run, [number, *PROMPT]) for number, run in enumerate([storm] * 30 + [calm], 100)]
    for context in contexts:
        driver.flush(context)
    driver.settle()
    saves = [driver.save(context, f"n{number}") for number, context in enumerate(contexts)]
    while not driver.is_done(saves[-1]):
        driver.step()

    assert sum(map(driver.is_done, saves)) < 20  # the thread of the store takes the time it takes
    driver.settle()
    done = [event.operation_id for event in driver.events if getattr(event, "operation_id", None) in saves]
    assert [each for each in done if each != saves[-1]] == saves[:-1]


@pytest.mark.usefixtures("one_page_a_step")
def test_copying_is_charged(hash_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece is charged to the tenant for whom it was copied, if another one waits for a step meanwhile."""
    driver = hash_engine(num_pages=400)
    storm, calm = driver.open_run(tenant="storm"), driver.open_run(tenant="calm")
    charged: list[str] = []
    side_work = driver.core._side_work
    monkeypatch.setattr(side_work, "charge", lambda share, seconds: charged.append(share.tenant))
    for run in (storm, storm, calm):
        driver.save(driver.create(run, PROMPT), f"of-{run}", overwrite=True)
    driver.settle()

    assert sorted(charged) == ["calm"] * 6 + ["storm"] * 12


@pytest.mark.usefixtures("one_page_a_step")
def test_longer_steps_leave_more_time_for_copies(hash_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is copied after a step is in proportion to what the step took, so copies get on on slow machines, too."""
    monkeypatch.setattr(transfers, "TRANSFER_SHARE", 0.5)
    clock = itertools.count()  # each look at it takes a second
    monkeypatch.setattr(transfers, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    driver = hash_engine(num_pages=200)
    read: list[int] = []
    read_pages = driver.runner.read_pages
    monkeypatch.setattr(driver.runner, "read_pages", lambda page_ids: (read.extend(page_ids), read_pages(page_ids))[1])
    run = driver.open_run()
    for step_s, num_pages in ((0.0, 1), (8.0, 4), (3.0, 2)):
        driver.save(driver.create(run, PROMPT * 4), "saved", overwrite=True)
        while not driver.core._transfers.has_work:
            driver.core._stepper.step()
        read.clear()
        driver.core._transfers.advance(step_s)
        assert len(read) == num_pages
        driver.settle()
