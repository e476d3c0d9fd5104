import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet.errors import InvalidHandleError, LimitExceededError
from tartlet.runtime.handles import HandleTable


class ThingState:
    """Something to hold."""


class OtherHandle:
    """Something else."""


@given(st.lists(st.booleans(), max_size=50))
def test_numbers_are_never_used_twice(adds: list[bool]) -> None:
    """Whatever is added and dropped in between, a new handle has a new number."""
    table = HandleTable(None)
    seen: list[int] = []
    for add in adds:
        if add or not seen:
            number = table.add(ThingState())
            assert number not in seen
            seen.append(number)
        else:
            table.discard(seen[-1])


def test_forged_dropped_and_foreign_numbers_are_recognised() -> None:
    """A number that the run does not hold, or holds as another kind, is an invalid handle, named by kind and number."""
    table = HandleTable(None)
    number = table.add(ThingState())

    for bad in (0, number + 1, 2**32 - 1):
        with pytest.raises(InvalidHandleError, match=f"no thing by the number {bad}"):
            table.get(bad, ThingState)
    with pytest.raises(InvalidHandleError, match=f"no other by the number {number}"):
        table.get(number, OtherHandle)
    table.remove(number, ThingState)
    with pytest.raises(InvalidHandleError):
        table.get(number, ThingState)


def test_the_limit_counts_what_is_held() -> None:
    """The handle above the limit is refused with its numbers; dropping one makes room."""
    table = HandleTable(2)
    first = table.add(ThingState())
    table.add(ThingState())

    with pytest.raises(LimitExceededError) as caught:
        table.add(ThingState())
    assert (caught.value.code, caught.value.used, caught.value.allowed) == ("handle_limit", 3, 2)

    table.discard(first)
    table.add(ThingState())
    assert len(table) == 2
