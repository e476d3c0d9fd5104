"""Variables of a run: by the SDK on a stub, and in its sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet.events import Output
from tartlet.events import Variable as Told
from tartlet_sdk import InvalidArgument, variables
from tartlet_sdk.variables import Swap, Variable


def test_what_the_calls_give(stub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values with versions, and what was found instead on a conflict."""
    monkeypatch.setattr("tartlet_runner.stub_host.VARIABLES.held", {})

    assert variables.get("x") is None
    assert [variables.set("x", "a"), variables.append("x", "b")] == [1, 2]
    assert variables.get("x") == Variable("ab", 2)
    assert str(variables.get("x")) == "ab"
    assert variables.compare_and_swap("x", "c", 1) == Swap(False, Variable("ab", 2))
    assert variables.compare_and_swap("x", "c", 2) == Swap(True, Variable("c", 3))
    assert variables.versions() == {"x": 3}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: variables.set("x", 3), "variables.set: value must be a str, not int"),  # type: ignore[arg-type]
        (lambda: variables.get(None), "variables.get: name must be a str"),  # type: ignore[arg-type]
        (lambda: variables.append("x", "\ud800"), "variables.append: value cannot be encoded"),
        (lambda: variables.compare_and_swap("x", "", -1), "version must be from 0"),
    ],
)
def test_wrong_types_are_told_by_name(stub: Any, call: Any, message: str) -> None:
    """They never reach the host, where they would end the run."""
    with pytest.raises(InvalidArgument, match=message):
        call()


@pytest.mark.runner
def test_a_fork_waits_for_the_others_variables(sandbox: Any) -> None:
    """B12: branch 0 waits for what branches 1 and 2 generate, then goes on with it; whoever waits takes no step."""
    assert sandbox.run("""
async def branch(context, k):
    context.user(f"text of {k}")
    variables.set(f"part {k}", (await context.generate()).text)

@inferlet
async def main():
    context = Model.default().context()
    context.system("system")
    forks = [context.fork() for _ in range(3)]
    async with asyncio.TaskGroup() as group:
        for k in (1, 2):
            group.create_task(branch(forks[k], k))
        parts = [await variables.wait(f"part {k}") for k in (1, 2)]
        forks[0].user(" + ".join(map(str, parts)))
        return (await forks[0].generate()).text, [part.version for part in parts]
""") == ["text of 1 + text of 2", [1, 1]]


@pytest.mark.runner
def test_branches_that_wait_for_each_other_hear_of_it(sandbox: Any) -> None:
    """B13: every wait fails at once with Deadlock, which can be caught; the run goes on."""
    assert (
        sandbox.run("""
async def branch(k):
    try:
        await variables.wait(f"never {k}")
    except Deadlock as error:
        return [error.code, all(f"'never {j}'" in error.message for j in range(3))]

@inferlet
async def main():
    return await asyncio.gather(*(branch(k) for k in range(3)))
""")
        == [["deadlock", True]] * 3
    )


@pytest.mark.runner
def test_a_deadlock_that_nobody_catches_ends_the_run_with_its_place(sandbox: Any) -> None:
    """The traceback names the author's line, the call and the variable."""
    message = sandbox.failure("""
@inferlet
async def main():
    await variables.wait("never")
""")

    assert 'in main\n    await variables.wait("never")' in message
    assert "Deadlock: variables.wait: everything in the run waits" in message
    assert "'never'" in message


@pytest.mark.runner
def test_a_wait_with_a_way_out_is_no_deadlock(sandbox: Any) -> None:
    """A timeout ends it, a later task of its own, and a generation that is under way."""
    assert sandbox.run("""
async def later():
    await asyncio.sleep(0.002)
    variables.set("slow", "done")

@inferlet
async def main():
    task = asyncio.create_task(later())
    slow = await variables.wait("slow")
    try:
        await asyncio.wait_for(variables.wait("slow", above=1), 0.001)
    except TimeoutError:
        return [str(slow), run.limits()["max_handles"].used]
""") == ["done", 0]


@pytest.mark.runner
def test_the_client_is_told_in_order(sandbox: Any) -> None:
    """A write comes between the text that was printed before it and after it."""
    run = sandbox.host.start("""
from tartlet_sdk import inferlet, variables

@inferlet
async def main():
    print("before")
    variables.set("x", "1")
    print("after")
""")

    assert list(run)[:3] == [Output("before\n"), Told("x", "1", 1), Output("after\n")]


@pytest.mark.runner
def test_too_much_is_refused(sandbox: Any) -> None:
    """The program can go on."""
    assert sandbox.run("""
@inferlet
def main():
    try:
        variables.set("x", "y" * (1 << 20))
    except QuotaExceeded as error:
        return [error.message, variables.get("x")]
""") == ["max_variable_bytes allows 1,048,576, this would make it 1,048,577", None]
