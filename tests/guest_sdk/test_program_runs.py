"""Programs in the sandbox: the runner component on a real host, over a fake engine."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.runner


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("return await asyncio.gather(*(asyncio.sleep(0.001, k) for k in range(3)))", [0, 1, 2]),
        ("return await asyncio.to_thread(lambda: 5)", 5),
        ("await asyncio.sleep(0)", None),
        (
            """
    try:
        await asyncio.wait_for(asyncio.sleep(60), 0.001)
    except TimeoutError:
        return "timed out"
""",
            "timed out",
        ),
        (
            """
    async with asyncio.timeout(5):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(asyncio.sleep(0, k)) for k in range(3)]
    return [task.result() for task in tasks]
""",
            [0, 1, 2],
        ),
        (
            """
    queue, lock, got = asyncio.Queue(1), asyncio.Lock(), []

    async def consume():
        for _ in range(3):
            async with lock:
                got.append(await queue.get())

    consumer = asyncio.create_task(consume())
    for k in range(3):
        await queue.put(k)
    await consumer
    return got
""",
            [0, 1, 2],
        ),
        (
            """
    async def numbers():
        for k in range(3):
            await asyncio.sleep(0)
            yield k
    return [k async for k in numbers()]
""",
            [0, 1, 2],
        ),
    ],
)
def test_asyncio_works(sandbox: Any, statements: str, expected: Any) -> None:
    """Tasks, timeouts, queues, locks and generators are asyncio's own."""
    assert sandbox.run(f"@inferlet\nasync def main():\n    {statements}\n") == expected


def test_a_plain_function_may_run_asyncio_itself(sandbox: Any) -> None:
    """`asyncio.run` works in an inferlet that is not async."""
    program = """
async def work():
    context = Model.default().context()
    context.user("echo")
    return (await context.generate()).text

@inferlet
def main():
    return asyncio.run(work())
"""
    assert sandbox.run(program) == "echo"


def test_contexts_fork_and_generate(sandbox: Any) -> None:
    """Forks answer at once, in order; the parent is untouched, and what they share is reported."""
    program = """
@inferlet
async def main(n: int):
    base = Model.default().context()
    base.system("x" * 100)
    await base.flush()
    length = len(base)
    forks = [base.fork() for _ in range(n)]
    for k, fork in enumerate(forks):
        fork.user(f"number {k}")
    drafts = await asyncio.gather(*(fork.generate(Sampler.top_k(3), stop=max_tokens(20)) for fork in forks))
    assert len(base) == length
    return [(draft.text, draft.finish_reason, draft.usage.cached_tokens >= length) for draft in drafts]
"""
    assert sandbox.run(program, {"n": 3}) == [[f"number {k}", "eos", True] for k in range(3)]


def test_a_generation_streams(sandbox: Any) -> None:
    """Chunks come one after the other and make up the draft; log-probabilities come with them."""
    program = """
@inferlet
async def main():
    context = Model.default().context()
    context.user("naïve 🌍 text")
    generation = context.generate(stop=stop_strings("xt"), logprobs=2, chunk_interval=0)
    chunks = [chunk async for chunk in generation]
    draft = generation.result
    assert "".join(map(str, chunks)) == draft.text
    assert len(draft.logprobs) == len(draft.tokens) and draft.logprobs[0].chosen.token == draft.tokens[0]
    return [len(chunks) > 3, draft.text, draft.finish_reason, draft.stop_string]
"""
    assert sandbox.run(program) == [True, "naïve 🌍 te", "stop-string", "xt"]


@pytest.mark.parametrize(
    "given_up",
    [
        "await asyncio.wait_for(context.generate(), 0.005)",
        "async with asyncio.timeout(0.005):\n            async for _ in context.generate(): pass",
        "async for _ in context.generate(): raise TimeoutError",
    ],
)
def test_a_generation_given_up_is_cancelled(sandbox: Any, given_up: str) -> None:
    """When the task that waits is cancelled or goes on without it, the context is free again."""
    program = f"""
@inferlet
async def main():
    context = Model.default().context()
    context.user("long " * 200)
    try:
        {given_up}
    except TimeoutError:
        await asyncio.sleep(0.02)
        context.user("again")
        return (await context.generate()).text
"""
    assert sandbox.run(program) == "again"


def test_tasks_started_eagerly_generate_together(sandbox: Any) -> None:
    """A task that starts within its maker does not keep the maker waiting until its generation is over."""
    program = """
@inferlet
async def main():
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    order = []

    async def one(name):
        context = Model.default().context()
        context.user("a b c")
        await context.generate()
        order.append(name)

    tasks = [asyncio.create_task(one(k)) for k in range(3)]
    order.append("maker")
    await asyncio.gather(*tasks)
    return order[0], sorted(order[1:])
"""
    assert sandbox.run(program) == ["maker", [0, 1, 2]]


@pytest.mark.parametrize("given_up", ["tasks[0].cancel()", "generation.close()"])
def test_all_who_wait_for_a_generation_hear_that_it_was_given_up(sandbox: Any, given_up: str) -> None:
    """Several tasks may read one; if one of them is cancelled, the others get an error and the run goes on."""
    program = f"""
@inferlet
async def main():
    context = Model.default().context()
    context.user("word " * 50)
    generation = context.generate(chunk_interval=3600)

    async def read():
        async for chunk in generation:
            pass

    await anext(generation)
    tasks = [asyncio.create_task(read()) for _ in range(3)]
    await asyncio.sleep(0)
    {given_up}
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    return [type(end).__name__ for end in ends]
"""
    first = "CancelledError" if "cancel" in given_up else "Cancelled"
    assert sandbox.run(program) == [first, "Cancelled", "Cancelled"]


def test_cancel_keeps_what_there_is(sandbox: Any) -> None:
    """`cancel` ends a generation at its next step, with its text so far."""
    program = """
@inferlet
async def main():
    context = Model.default().context()
    context.user("long " * 200)
    generation = context.generate()
    async for chunk in generation:
        generation.cancel()
    return [generation.result.finish_reason, len(generation.result.text) < 500]
"""
    assert sandbox.run(program) == ["cancelled", True]


def test_a_failed_task_ends_its_group(sandbox: Any) -> None:
    """A TaskGroup cancels the generations of its other tasks, and the traceback shows each task's own error."""
    program = """
async def fail():
    await asyncio.sleep(0.001)
    raise ValueError("bad")

@inferlet
async def main():
    context = Model.default().context()
    context.user("long " * 200)
    async with asyncio.TaskGroup() as group:
        group.create_task(context.generate())
        group.create_task(fail())
"""
    message = sandbox.failure(program)

    assert "ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)" in message
    assert '| Traceback (most recent call last):\n    |   File "main.py", line 6, in fail\n' in message
    assert message.count("ValueError: bad") == 1


def test_output_arrives_as_it_is_printed(sandbox: Any) -> None:
    """`print` and bytes are output text, as it is; stderr, logging and warnings are log lines with their levels."""
    program = """
import logging, sys, warnings

@inferlet
def main():
    print("a", 1, sep="-", end="")
    print("é")
    sys.stdout.write("no newline")
    sys.stdout.buffer.write("é".encode()[:1])
    sys.stdout.buffer.write("é".encode()[1:] + b"\\xff")
    sys.stderr.buffer.write(b"bytes\\n")
    print("to", "stderr", file=sys.stderr)
    logging.debug("not shown")
    logging.info("info")
    logging.getLogger("mine").error("%d errors", 2)
    warnings.warn("careful")
    sys.stderr.write("rest")
"""
    assert sandbox.output(program) == (
        "a-1é\nno newlineé\\xff",
        [
            ("info", "bytes"),
            ("info", "to stderr"),
            ("info", "info"),
            ("error", "mine: 2 errors"),
            ("warn", "main.py:18: UserWarning: careful"),
            ("info", "rest"),
        ],
    )


def test_logging_can_be_configured(sandbox: Any) -> None:
    """`logging.basicConfig` sets level and format, as everywhere."""
    program = """
import logging

@inferlet
def main():
    logging.basicConfig(level=logging.DEBUG, format="[%(levelname)s] %(message)s")
    logging.debug("shown")
"""
    assert sandbox.output(program) == ("", [("debug", "[DEBUG] shown")])


def test_a_forgotten_await_is_told(sandbox: Any) -> None:
    """A generation that nobody awaits does nothing, and says so."""
    program = "@inferlet\nasync def main():\n    Model.default().context().generate()\n"

    assert sandbox.output(program)[1] == [
        ("warn", "main.py:5: RuntimeWarning: a generation was never awaited or iterated, so it never started")
    ]


def test_a_forgotten_await_is_told_at_the_line_that_made_the_generation(sandbox: Any) -> None:
    """However late, and wherever, the generation is thrown away."""
    program = """
forgotten = []

@inferlet()
async def main():
    forgotten.append(Model.default().context().generate())
    forgotten.clear()
"""
    assert sandbox.output(program)[1] == [
        ("warn", "main.py:8: RuntimeWarning: a generation was never awaited or iterated, so it never started")
    ]


def test_big_output_arrives_whole(sandbox: Any) -> None:
    """A text of any size goes through, and so does one that is no UTF-8."""
    text, _ = sandbox.output("@inferlet\ndef main():\n    print('é' * 100_000, end='\\ud800')")

    assert text == "é" * 100_000 + "\\ud800"


def test_the_seed_makes_a_run_repeatable(sandbox: Any) -> None:
    """Python's `random` follows the run's seed."""
    program = "import random\n@inferlet\ndef main():\n    return [random.random(), run.info().seed]"
    one, again, other = (sandbox.run(program, seed=seed) for seed in (1, 1, 2))

    assert one == again
    assert (one[1], other[1]) == (1, 2)
    assert one[0] != other[0]


def test_secrets_do_not_follow_the_seed(sandbox: Any) -> None:
    """What is meant to be unique or secret is another one in every run."""
    program = (
        "import os, random, secrets, uuid\n@inferlet\ndef main():\n"
        "    return [uuid.uuid4().hex, secrets.token_hex(8), os.urandom(8).hex(), random.SystemRandom().random()]"
    )
    one, again = (sandbox.run(program, seed=1) for _ in range(2))

    assert all(mine != other for mine, other in zip(one, again, strict=True))


def test_limits_can_be_read(sandbox: Any) -> None:
    """A run sees its limits and what it has used."""
    program = "@inferlet\ndef main():\n    return run.limits()['max_tokens'].left"

    assert sandbox.run(program) > 0


def test_what_the_snapshot_holds_is_immortal(sandbox: Any) -> None:
    """References to it are not counted, so that a run need not copy its pages; those to the program's own are."""
    program = """
import asyncio, sys
from tartlet_sdk import inferlet
own = object()
@inferlet
def main():
    things = asyncio.run.__code__, asyncio.run.__code__.co_consts, asyncio.Queue, vars(asyncio), sys.modules
    return [sys.getrefcount(thing) > 1 << 29 for thing in things], sys.getrefcount(own) < 10
"""

    assert sandbox.run(program) == [[True] * 5, True]


def test_a_start_asks_the_host_for_nothing_random(sandbox: Any) -> None:
    """`random` follows the run's seed; the seeding that componentize-py does first would be ten calls of the host."""
    program = """
import random
from tartlet_sdk import inferlet
@inferlet
def main():
    drawn = [random.random() for _ in range(2)]
    random.seed()
    return [*drawn, random.random()]
"""
    run = sandbox.host.start(program, seed=5)
    first, second = run.result(), sandbox.run(program, seed=5)

    assert first[:2] == second[:2]
    assert first[2] != second[2]
    assert len(set(first)) == 3
    assert 10 <= run.usage.host_calls < 18  # of these ten for `random.seed()`
