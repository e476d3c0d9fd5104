from __future__ import annotations

from typing import Any

import pytest

from tartlet.errors import GuestError, LimitExceededError, RunError
from tartlet.events import Log, Output, RunUsage, Variable
from tartlet.server.wire.frames import HEADER_BYTES, Frames
from tartlet.server.worker import outlet
from tartlet.server.worker.messages import Logged, Printed, ToFront, Written
from tartlet.server.worker.outlet import Outlet, bounded_failure, checked_result


class Ended:
    """A run that has said all that it says."""

    def __init__(self, *events: Any) -> None:
        self.events = [*events, RunUsage()]
        self.is_cancelled = False

    async def next_event(self) -> Any:
        return self.events.pop(0) if self.events else None

    def cancel(self) -> None:
        self.is_cancelled = True


class Sent:
    """A connection that keeps what is sent, of up to 100 bytes."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.frames: Frames[Any] = Frames(ToFront, 100)

    def send(self, message: Any) -> None:
        self.messages.append(self.frames.unpack(self.frames.pack(message)[HEADER_BYTES:]))

    async def drain(self) -> None:
        return


async def carried(run: Ended) -> list[Any]:
    sent = Sent()
    await Outlet(sent, 7).carry(run)  # type: ignore[arg-type]
    return sent.messages


async def test_each_event_is_a_message() -> None:
    """All but the usage, which comes with the end."""
    run = Ended(Output("text"), Log("warn", "line"), Variable("name", "value", 2))

    assert await carried(run) == [Printed(7, "text"), Logged(7, "warn", "line"), Written(7, "name", "value", 2)]


async def test_long_output_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """No character is split."""
    monkeypatch.setattr(outlet, "_CHARS_OF_A_TEXT", 3)

    assert await carried(Ended(Output("aé€😀b"))) == [Printed(7, "aé€"), Printed(7, "😀b")]


async def test_what_fits_no_message_ends_the_run() -> None:
    """A log line cannot come in pieces."""
    run = Ended(Log("info", "x" * 100))
    with pytest.raises(RunError, match="at most 100 are allowed"):
        await carried(run)

    assert run.is_cancelled


def test_a_huge_result_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its size as UTF-8."""
    monkeypatch.setattr(outlet, "MAX_RESULT_BYTES", 6)
    assert checked_result('"éé"') == '"éé"'
    with pytest.raises(LimitExceededError, match="result_bytes allows 6, used 8"):
        checked_result('"ééé"')


def test_a_program_s_own_error_text_is_bounded() -> None:
    """And is Unicode, whatever it was."""
    failure = bounded_failure(GuestError("x" * 100_000))
    assert len(failure.message) < 66_000
    assert failure.message.endswith("34,464 more characters")

    failure = bounded_failure(GuestError("half \ud800", code="guest_error"))
    assert failure.message == "half ?"
