"""Forward passes in the SDK: what it sends to the host, and what it makes of the answer."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest

from tartlet_sdk import Ask, InvalidArgument, Model, Row, Sampler


def test_rows_are_numbered_from_the_last_token(stub: Any) -> None:
    """-1 in the SDK is 0 in the contract."""
    last = Ask().to_wit()
    sent = Ask(
        4, sample=Sampler.top_k(3, seed=9), sample_index=2, top=5, given=(7,), entropy=True, logits=True
    ).to_wit()

    assert (last.row, last.sampling, last.top, last.given, last.entropy, last.logits) == (0, None, 0, [], False, False)
    assert (sent.row, sent.sample_index, sent.top, sent.given, sent.entropy, sent.logits) == (5, 2, 5, [7], True, True)
    assert (sent.sampling.top_k, sent.sampling.seed) == (3, 9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"row": -2}, "row must be from -1"),
        ({"sample": 0.5}, "sample must be a Sampler, not float"),
        ({"sample_index": -1}, "sample_index must be from 0"),
        ({"top": 1.5}, "top must be an int"),
        ({"given": ["a"]}, "given must be token ids"),
    ],
)
def test_what_is_out_of_range(stub: Any, arguments: dict[str, Any], message: str) -> None:
    """It is refused in the author's terms."""
    with pytest.raises(InvalidArgument, match=message):
        Ask(**arguments).to_wit()


@pytest.mark.parametrize("size", [4, 5])
def test_logits_are_unpacked(size: int) -> None:
    """Two of them come in each number; a vocabulary of odd size has one that is none."""
    values = [0.5, -1.0, 3.25, float("-inf"), 7.0][:size]
    packed = struct.pack(f"<{size}f", *values) + b"\0\0\0\0" * (size % 2)
    numbers = struct.unpack(f"<{len(packed) // 8}Q", packed)
    row = Row.of(SimpleNamespace(sampled=None, top=[], given=[], entropy=None, logits=list(numbers)), size)  # type: ignore[arg-type]

    assert row.logits == tuple(values)


@pytest.mark.parametrize("ask", [Ask(0), [5], 5])
def test_what_is_asked_for_must_be_several(run_async: Any, ask: Any) -> None:
    """One alone is told so, as are other types."""

    async def work() -> None:
        context = Model.default().context()
        context.fill_tokens([1])
        with pytest.raises(InvalidArgument, match=r"Context.forward: ask must be several Ask"):
            await context.forward([2], ask=ask)

    run_async(work())


def test_a_pass_ends_once(run_async: Any) -> None:
    """Committed or discarded; left as a block it is discarded."""

    async def work() -> list[int]:
        context = Model.default().context()
        context.fill_tokens([1])
        found = await context.forward([2, 3], logprobs=True)
        assert len(found.logprobs) == 2
        found.commit([0])
        with pytest.raises(InvalidArgument, match="before"):
            found.commit([])
        with await context.forward([4], parents=[-1], positions=[9], ask=[Ask(0, top=2)]) as found:
            assert len(found.rows[0].top) == 2
        with pytest.raises(InvalidArgument):
            found.commit([0])
        return context.tokens

    assert run_async(work()) == [1, 2]
