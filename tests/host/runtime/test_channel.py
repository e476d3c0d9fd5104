import asyncio
import threading

from tartlet.errors import RunCancelledError
from tartlet.events import Log, Output, RunEvent, RunUsage, Variable
from tartlet.runtime.channel import Channel, LoopWaker


async def collect(channel: Channel) -> list[RunEvent]:
    """All events to the last."""
    events = []
    while (event := await channel.next()) is not None:
        events.append(event)
    return events


async def test_text_that_waits_is_merged_in_order() -> None:
    """A slow caller gets texts merged, log lines and variables between them, and nothing lost."""
    channel = Channel(LoopWaker(asyncio.get_running_loop()))
    for piece in ("a", "b"):
        channel.put_text(piece)
    channel.put(Log("info", "line"))
    channel.put(Variable("x", "1", 1))
    channel.put_text("c")
    usage = RunUsage(generated_tokens=3)
    channel.close(usage, "null")

    assert await collect(channel) == [Output("ab"), Log("info", "line"), Variable("x", "1", 1), Output("c"), usage]
    assert await channel.next() is None
    assert await channel.outcome() == "null"


async def test_another_thread_writes_while_the_loop_reads() -> None:
    """All text arrives, whatever the timing, and the outcome wakes those who wait for it."""
    channel = Channel(LoopWaker(asyncio.get_running_loop()))
    error = RunCancelledError("over")

    def write() -> None:
        for number in range(2000):
            channel.put_text(f"{number},")
        channel.close(RunUsage(), error)

    outcome = asyncio.create_task(channel.outcome())
    thread = threading.Thread(target=write)
    thread.start()
    events = await collect(channel)
    thread.join()

    text = "".join(event.text for event in events if isinstance(event, Output))
    assert text == "".join(f"{number}," for number in range(2000))
    assert await outcome is error


async def test_a_wait_that_is_cancelled_loses_nothing() -> None:
    """An event that comes after a cancelled wait is there for the next one."""
    channel = Channel(LoopWaker(asyncio.get_running_loop()))
    waiting = asyncio.create_task(channel.next())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    channel.put_text("x")

    assert await channel.next() == Output("x")
