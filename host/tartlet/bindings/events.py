"""Binding of `events` in wit/: waiting."""

from __future__ import annotations

from collections.abc import Mapping

from tartlet.runtime.event_table import EventStatus
from tartlet.runtime.guest_state import GuestFiber
from tartlet.runtime.refusal import engine_refusal, refusal
from tartlet.wasm.host_function import SUSPEND, HostFunction
from tartlet_engine.api import ErrorCode


def poll(fiber: GuestFiber, events: list[int], timeout_ns: int | None) -> object:
    """Wait until one of the events is ready, or the time has passed."""
    ready = fiber.state.events.poll(events, timeout_ns)
    return SUSPEND if ready is None else ready


def timer(fiber: GuestFiber, delay_ns: int) -> int:
    """Make an event that becomes ready after a delay."""
    return fiber.state.events.add_timer(delay_ns).number


def outcome(fiber: GuestFiber, number: int) -> None:
    """Say what became of the operation behind a ready event, and free the event."""
    table = fiber.state.events
    event = table.get(number)
    if event.status is EventStatus.PENDING:
        raise refusal(ErrorCode.UNAVAILABLE, f"event {number} is not ready yet", "Wait for it with poll.")
    table.drop(event)
    if event.error is not None:
        raise engine_refusal(event.error)


def drop_event(fiber: GuestFiber, number: int) -> None:
    """Free an event."""
    table = fiber.state.events
    table.drop(table.get(number))


INTERFACE: Mapping[str, HostFunction] = {
    "poll": poll,
    "timer": timer,
    "outcome": outcome,
    "drop-event": drop_event,
}
