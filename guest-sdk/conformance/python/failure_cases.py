"""Runs that end without a result: the host says how."""

from __future__ import annotations

from context_cases import filled
from registry import case
from transcript import Transcript

from tartlet_sdk import ignore_eos, wit


@case("failures.error")
def error(t: Transcript) -> None:
    raise ValueError("the reason is seven é")


@case("failures.uncaught-refusal")
def uncaught(t: Transcript) -> None:
    filled("abc").truncate(7)


@case("failures.recursion")
def recursion(t: Transcript) -> None:
    def down(n: int) -> int:
        return down(n + 1) + 1

    t.say("never", down(0))


@case("failures.memory")
def memory(t: Transcript) -> None:
    held = []
    while True:
        held.append(bytearray(1 << 20))


@case("failures.cpu")
def cpu(t: Transcript) -> None:
    while True:
        pass


@case("failures.wall-time")
def wall_time(t: Transcript) -> None:
    wit.events.poll([wit.events.timer(3_600_000_000_000)], None)


@case("failures.tokens")
async def tokens(t: Transcript) -> None:
    await filled("endless").generate(stop=ignore_eos())


@case("failures.kv-pages")
async def kv_pages(t: Transcript) -> None:
    contexts = [filled("0123456789abcdef" * 4) for _ in range(3)]
    for context in contexts:
        await context.flush()


@case("failures.handles")
def handles(t: Transcript) -> None:
    while True:
        wit.events.timer(3_600_000_000_000)


@case("failures.output")
def output(t: Transcript) -> None:
    for _ in range(100):
        wit.log.print("x" * 100)


@case("failures.host-calls")
def host_calls(t: Transcript) -> None:
    while True:
        wit.events.poll([], 0)


@case("failures.unknown-event")
def unknown_event(t: Transcript) -> None:
    wit.events.poll([4294967295], 0)


@case("failures.event-twice")
def event_twice(t: Transcript) -> None:
    event = wit.events.timer(0)
    wit.events.drop_event(event)
    wit.events.drop_event(event)


@case("failures.unknown-mask")
async def unknown_mask(t: Transcript) -> None:
    with wit.models.Model.open(None) as model, wit.constraints.Mask.tokens(model, [7]) as mask:
        mask.union([4294967295])


@case("failures.poll-of-nothing")
def poll_of_nothing(t: Transcript) -> None:
    wit.events.poll([], None)


@case("handles.leaked")
def leaked(t: Transcript) -> None:
    with wit.models.Model.open(None) as model:
        for i in range(300):
            context = wit.contexts.Context.create(model, None)
            context.fill(f"context {i}")
            LEAKED.append(context)
            LEAKED.append(context.fork())
            wit.events.timer(3_600_000_000_000)
    t.say("leaked", len(LEAKED))


@case("handles.given-back")
def given_back(t: Transcript) -> None:
    parent = filled("x")
    for _ in range(5000):  # more than a run may hold
        parent.fork().close()
    t.say("forks", 5000)


LEAKED: list[object] = []
