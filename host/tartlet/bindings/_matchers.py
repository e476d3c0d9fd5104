"""Binding of the matchers of `constraints` in wit/: ways through a constraint that programs go themselves."""

from __future__ import annotations

from collections.abc import Mapping

from tartlet.runtime.constraint import ConstraintState
from tartlet.runtime.guest_state import GuestFiber
from tartlet.runtime.mask import MaskState
from tartlet.runtime.matcher import MatcherState
from tartlet.wasm.host_function import HostFunction


def begin(fiber: GuestFiber, constraint: int) -> int:
    """Begin at the beginning of a constraint."""
    handles = fiber.state.handles
    return handles.add(MatcherState(handles.get(constraint, ConstraintState)))


def ready(fiber: GuestFiber, number: int) -> int:
    """Give the event that says that it has arrived."""
    return fiber.state.handles.get(number, MatcherState).event.number


def place(fiber: GuestFiber, number: int) -> dict[str, object]:
    """Tell where it is."""
    moved = fiber.state.handles.get(number, MatcherState).place()
    return {
        "forced": list(moved.forced),
        "may-end": moved.may_end,
        "is-complete": moved.is_complete,
        "problem": moved.problem,
    }


def mask(fiber: GuestFiber, number: int) -> int:
    """Make a mask of what may come next."""
    run = fiber.state
    matcher = run.handles.get(number, MatcherState)
    return run.handles.add(MaskState(run, matcher.model, int.from_bytes(matcher.place().mask, "little")))


def advance(fiber: GuestFiber, number: int, token_ids: list[int]) -> None:
    """Go on by tokens."""
    fiber.state.handles.get(number, MatcherState).move(0, token_ids)


def rollback(fiber: GuestFiber, number: int, count: int) -> None:
    """Go back over tokens."""
    fiber.state.handles.get(number, MatcherState).move(count, [])


def fork(fiber: GuestFiber, number: int) -> int:
    """Make another one at the same place."""
    handles = fiber.state.handles
    parent = handles.get(number, MatcherState)
    return handles.add(MatcherState(parent.constraint, parent))


def drop_matcher(fiber: GuestFiber, number: int) -> None:
    """Free a matcher."""
    fiber.state.handles.remove(number, MatcherState).drop()


FUNCTIONS: Mapping[str, HostFunction] = {
    "matcher": drop_matcher,
    "[static]matcher.begin": begin,
    "[method]matcher.ready": ready,
    "[method]matcher.place": place,
    "[method]matcher.mask": mask,
    "[method]matcher.advance": advance,
    "[method]matcher.rollback": rollback,
    "[method]matcher.fork": fork,
}
