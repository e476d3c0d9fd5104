from __future__ import annotations

import pytest

from tartlet.errors import ConflictError, NotFoundError
from tartlet.events import RunUsage
from tartlet.server.failures import Failure
from tartlet.server.front.storage import Claim, Storage
from tartlet.server.front.storage.runs import MOST_MESSAGE_CHARS, MOST_RESULT_BYTES

from .conftest import Clock, OpenStorage, outcomes

DIGEST = "d" * 64
USAGE = RunUsage(prompt_tokens=10, cached_tokens=4, generated_tokens=7, cpu_ms=1.5, wall_ms=20.0, host_calls=3)


async def test_a_run_is_read_as_it_was_written(storage: Storage, clock: Clock) -> None:
    """While it goes on, and after its end."""
    assert await storage.runs.start("run-1", "acme", DIGEST, "hello") == "run-1"
    going_on = await storage.runs.get("acme", "run-1")
    clock.seconds += 2
    assert await storage.runs.end("run-1", "succeeded", usage=USAGE, result_json='{"a": "\N{SNOWMAN}"}')
    ended = await storage.runs.get("acme", "run-1")

    assert (going_on.state, going_on.ended_ms, going_on.usage) == ("running", None, None)
    assert (ended.state, ended.result_json, ended.usage) == ("succeeded", '{"a": "\N{SNOWMAN}"}', USAGE)
    assert (ended.digest, ended.name, ended.failure, ended.note) == (DIGEST, "hello", None, "")
    assert ended.ended_ms == ended.started_ms + 2000


async def test_a_run_ends_once(storage: Storage) -> None:
    """Of 20 ends at once one counts, in the ledger, too; nor can a run that never was end."""
    await storage.runs.start("run-1", "acme", DIGEST, "hello")
    ends = await outcomes(*(storage.runs.end("run-1", "succeeded", usage=USAGE) for _ in range(20)))

    assert sorted(ends) == [False] * 19 + [True]
    assert not await storage.runs.end("run-2", "succeeded", usage=USAGE)
    [day] = await storage.usage.read("acme")
    assert (day.runs, day.generated_tokens) == (1, 7)


async def test_a_failure_is_kept(storage: Storage) -> None:
    """With its numbers; of a message as much as is useful."""
    failure = Failure("LimitExceededError", "cpu_limit", "x" * 100_000, "hint", "max_cpu_ms", 1500.0, 1000.0)
    await storage.runs.start("run-1", "acme", DIGEST, "hello")
    await storage.runs.end("run-1", "failed", usage=USAGE, failure=failure)
    kept = (await storage.runs.get("acme", "run-1")).failure

    assert kept is not None
    assert (kept.code, kept.limit, kept.used, kept.allowed) == ("cpu_limit", "max_cpu_ms", 1500.0, 1000.0)
    assert len(kept.message) == MOST_MESSAGE_CHARS


async def test_a_large_result_is_not_kept(storage: Storage) -> None:
    """Its size is said instead. Half of a surrogate pair, which a program can return, does no harm."""
    for run_id, result in (("large", '"' + "x" * MOST_RESULT_BYTES + '"'), ("odd", '"\ud800"')):
        await storage.runs.start(run_id, "acme", DIGEST, "hello")
        await storage.runs.end(run_id, "succeeded", usage=USAGE, result_json=result)
    large, odd = await storage.runs.get("acme", "large"), await storage.runs.get("acme", "odd")

    assert (large.result_json, large.note) == (None, "the result has 65,538 bytes, and up to 65,536 are kept")
    assert odd.result_json == '"\\ud800"'


@pytest.mark.parametrize("run_id", ["", "run-2", "a\0", "ä", "x" * 200])
async def test_what_is_not_there_and_what_is_anothers_are_the_same(storage: Storage, run_id: str) -> None:
    """Not found."""
    await storage.runs.start("run-1", "acme", DIGEST, "hello")
    for tenant, wanted in (("acme", run_id), ("default", "run-1")):
        with pytest.raises(NotFoundError):
            await storage.runs.get(tenant, wanted)
    with pytest.raises(NotFoundError, match="tenant"):
        await storage.runs.start("run-2", "nobody", DIGEST, "hello")


async def test_runs_are_listed_newest_first_in_pages(storage: Storage, clock: Clock) -> None:
    """Those of one tenant; by state if one is asked for. Those of one millisecond are not lost between pages."""
    for number in range(7):
        await storage.runs.start(f"run-{number}", "acme", DIGEST, "hello")
        clock.seconds += number % 2
    await storage.runs.start("other", "default", DIGEST, "hello")
    await storage.runs.end("run-3", "succeeded", usage=USAGE)
    pages = [await storage.runs.list("acme", limit=3)]
    while pages[-1]:
        pages.append(await storage.runs.list("acme", limit=3, after=pages[-1][-1]))

    assert [[run.run_id[-1] for run in page] for page in pages] == [["6", "5", "4"], ["3", "2", "1"], ["0"], []]
    assert [run.run_id for run in await storage.runs.list("acme", state="succeeded")] == ["run-3"]


async def test_runs_of_a_front_that_died_get_an_end(storage: Storage, open_again: OpenStorage) -> None:
    """They failed, and count as failures; those that had ended stay as they were."""
    for run_id in ("ended", "lost-1", "lost-2"):
        await storage.runs.start(run_id, "acme", DIGEST, "hello")
    await storage.runs.end("ended", "succeeded", usage=USAGE)
    async with open_again() as next_start:
        assert await next_start.runs.end_all_lost() == 2
        assert await next_start.runs.end_all_lost() == 0
        lost = await next_start.runs.get("acme", "lost-1")
        [day] = await next_start.usage.read()

    assert lost.state == "failed"
    assert lost.failure is not None
    assert lost.failure.code == "worker_lost"
    assert lost.ended_ms is not None
    assert (await storage.runs.get("acme", "ended")).state == "succeeded"
    assert (day.runs, day.failures, day.generated_tokens) == (3, 2, 7)


async def test_what_a_lost_run_had_used_counts_as_it_was_noted(storage: Storage, open_again: OpenStorage) -> None:
    """In its record, and in the ledger. Of a run that has ended nothing is noted."""
    for run_id in ("ended", "lost", "new"):
        await storage.runs.start(run_id, "acme", DIGEST, "hello")
    await storage.runs.end("ended", "succeeded", usage=RunUsage(generated_tokens=1))
    for tokens in (10, 20):
        noted = RunUsage(generated_tokens=tokens, page_seconds=1.5)
        await storage.runs.note_usages({"ended": noted, "lost": noted, "unknown": noted})
    assert (await storage.runs.get("acme", "lost")).usage == noted
    async with open_again() as next_start:
        await next_start.runs.end_all_lost()
        lost, ended = [await next_start.runs.get("acme", run_id) for run_id in ("lost", "ended")]
        [day] = await next_start.usage.read()

    assert (lost.state, lost.usage) == ("failed", noted)
    assert ended.usage == RunUsage(generated_tokens=1)
    assert (day.runs, day.generated_tokens, day.page_seconds) == (3, 21, 1.5)


async def test_lost_runs_can_be_started_again(storage: Storage, open_again: OpenStorage) -> None:
    """With the same idempotency key: it was not the client's fault. The key of a run that has ended still counts."""
    lost, ended = Claim("lost", "a" * 64), Claim("ended", "a" * 64)
    await storage.runs.start("lost-1", "acme", DIGEST, "hello", claim=lost)
    await storage.runs.start("ended-1", "acme", DIGEST, "hello", claim=ended)
    await storage.runs.end("ended-1", "succeeded", usage=USAGE)
    async with open_again() as next_start:
        await next_start.runs.end_all_lost()

        assert await next_start.runs.start("lost-2", "acme", DIGEST, "hello", claim=lost) == "lost-2"
        assert await next_start.runs.start("ended-2", "acme", DIGEST, "hello", claim=ended) == "ended-1"


async def test_old_runs_can_be_forgotten(storage: Storage, clock: Clock) -> None:
    """Those that have ended; the ledger still knows them."""
    for run_id in ("ended", "going-on"):
        await storage.runs.start(run_id, "acme", DIGEST, "hello")
    await storage.runs.end("ended", "succeeded", usage=USAGE)
    now_ms = int(clock.seconds * 1000)

    assert await storage.runs.forget(now_ms) == 0
    assert await storage.runs.forget(now_ms + 1) == 1
    assert [run.run_id for run in await storage.runs.list("acme")] == ["going-on"]
    assert (await storage.usage.read())[0].runs == 1


async def test_a_request_that_is_sent_again_starts_nothing(storage: Storage) -> None:
    """The earlier run takes its place; with another request the key is refused."""
    claim = Claim("key", "request")
    first = await storage.runs.start("run-1", "acme", DIGEST, "hello", claim=claim)
    again = await storage.runs.start("run-2", "acme", DIGEST, "hello", claim=claim)

    assert (first, again) == ("run-1", "run-1")
    with pytest.raises(ConflictError) as caught:
        await storage.runs.start("run-3", "acme", DIGEST, "hello", claim=Claim("key", "another"))
    assert caught.value.code == "idempotency_conflict"
    assert [run.run_id for run in await storage.runs.list("acme")] == ["run-1"]


async def test_of_50_requests_at_once_with_one_key_one_starts(storage: Storage, open_again: OpenStorage) -> None:
    """Though they come over two connections to the database; all hear of the same run."""
    claim = Claim("key", "request")
    async with open_again() as other:
        starts = [
            (other if number % 2 else storage).runs.start(f"run-{number}", "acme", DIGEST, "hello", claim=claim)
            for number in range(50)
        ]
        heard = await outcomes(*starts)

    assert len(set(heard)) == 1
    assert [run.run_id for run in await storage.runs.list("acme")] == [heard[0]]
