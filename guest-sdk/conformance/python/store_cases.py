"""Variables, and forks that race for them."""

from __future__ import annotations

import asyncio

from context_cases import filled
from registry import case
from transcript import Transcript

from tartlet_sdk import Context, variables, wit

MOST = 18446744073709551615


def say_variable(t: Transcript, label: str, name: str) -> None:
    found = variables.get(name)
    t.say(label, *((None,) if found is None else (found.value, found.version)))


@case("store.get-variable")
def get(t: Transcript) -> None:
    say_variable(t, "not there", "x")
    variables.set("x", "")
    say_variable(t, "empty", "x")
    say_variable(t, "no name", "")


@case("store.set-variable")
def set_variable(t: Transcript) -> None:
    t.attempt("first", variables.set, "é", "one")
    t.attempt("again", variables.set, "é", "two 😀\n")
    say_variable(t, "now", "é")
    t.attempt("no name", variables.set, "", "x")
    t.attempt("longest name", variables.set, "n" * 256, "x")
    t.attempt("too long a name", variables.set, "é" * 129, "x")
    t.attempt("too large", variables.set, "x", "x" * (1 << 20))
    say_variable(t, "not written", "x")


@case("store.append-variable")
def append(t: Transcript) -> None:
    t.attempt("new", variables.append, "x", "one")
    t.attempt("more", variables.append, "x", " two")
    t.attempt("nothing", variables.append, "x", "")
    say_variable(t, "now", "x")
    t.attempt("too large", variables.append, "x", "x" * (1 << 20))


@case("store.compare-and-swap-variable")
def compare_and_swap(t: Transcript) -> None:
    for label, value, version in (
        ("not there yet", "a", 0),
        ("there by now", "b", 0),
        ("next", "c", 1),
        ("a version of 2^64 - 1", "d", MOST),
        ("a version of 2^53 + 1", "e", 9007199254740993),
    ):
        swap = variables.compare_and_swap("x", value, version)
        t.say(label, swap.written, swap.now.value, swap.now.version)
    swap = variables.compare_and_swap("y", "a", 1)
    t.say("not there", swap.written, swap.now.value, swap.now.version)
    t.attempt("no name", variables.compare_and_swap, "", "x", 0)


@case("store.list-variables")
def list_variables(t: Transcript) -> None:
    t.say("none", len(variables.versions()))
    for name in ("b", "a", "c", "a"):
        variables.set(name, name)
    for name, version in variables.versions().items():
        t.say("variable", name, version)


@case("store.variable-above")
async def variable_above(t: Transcript) -> None:
    variables.set("x", "one")
    found = await variables.wait("x")
    t.say("there already", found.value, found.version)

    async def write() -> None:
        await asyncio.sleep(0.002)
        variables.set("x", "two")
        variables.set("x", "three")

    task = asyncio.create_task(write())
    found = await variables.wait("x", above=2)
    t.say("above two", found.value, found.version)
    await task
    event = wit.store.variable_above("x", MOST)
    t.say("above 2^64 - 1", wit.events.poll([event], 1_000_000))
    wit.events.drop_event(event)
    await t.wait("no name", variables.wait(""))


@case("store.many")
def many(t: Transcript) -> None:
    for i in range(1024):
        variables.set(f"v{i}", str(i))
    t.attempt("one more", variables.set, "more", "x")
    t.say("how many", len(variables.versions()))
    t.say("the last", variables.get("v1023").value)


@case("store.race")
async def race(t: Transcript) -> None:
    async def answer(context: Context, name: str) -> None:
        draft = await context.generate()
        swap = variables.compare_and_swap("winner", f"{name}: {draft.text[:5]}", 0)
        variables.append("log", f"{name} {'won' if swap.written else 'lost'};")

    fast = asyncio.create_task(answer(filled("short"), "short"))
    slow = asyncio.create_task(answer(filled("endless"), "long"))
    t.say("winner", (await variables.wait("winner")).value)
    await asyncio.gather(fast, slow)
    t.say("log", variables.get("log").value)


@case("store.relay")
async def relay(t: Transcript) -> None:
    async def player(mark: str, turn: int) -> None:
        for version in range(turn, 200, 2):
            await variables.wait("ball", above=version)
            variables.append("ball", mark)

    variables.set("ball", "")
    await asyncio.gather(player("x", 0), player("o", 1))
    ball = variables.get("ball")
    t.say("ball", ball.version, ball.value == "xo" * 100)
