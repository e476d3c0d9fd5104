"""Scoring texts: which passes are made of them, and that each gets the sum of its own tokens."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tartlet_sdk import InvalidArgument, Model
from tartlet_sdk.scoring import MOST_BRANCHES, Branches


def test_beginnings_are_shared() -> None:
    """What texts have in common is one branch, and last tokens are not computed."""
    branches = Branches()
    texts = [[1, 2, 3], [1, 2, 4], [1, 5], [6], [1, 2, 3, 7]]
    numbers = []
    for text in texts:
        numbers.append(branches.num_new(text))
        branches.add(text)
        assert branches.num_new(text) == 0

    assert numbers == [2, 0, 0, 0, 1]
    assert branches.tokens == [1, 2, 3]
    assert branches.parents == [-1, 0, 1]
    logprobs = {(-1, 1): 1.0, (0, 2): 10.0, (1, 3): 100.0, (1, 4): 200.0, (0, 5): 20.0, (-1, 6): 2.0, (2, 7): 1000.0}
    assert [branches.total(text, logprobs) for text in texts] == [111, 211, 21, 2, 1111]


def test_each_text_has_a_score(run_async: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are and however long: as many passes as needed, none larger than it may be."""
    sizes = []
    logprobs = Branches.logprobs

    async def counted(branches: Branches, context: Any, name: str) -> dict[tuple[int, int], float]:
        sizes.append(len(branches.tokens))
        return await logprobs(branches, context, name)

    monkeypatch.setattr(Branches, "logprobs", counted)

    async def work() -> list[float]:
        context = Model.default().context()
        context.fill("x")
        return await context.score(["a", "b" * 200, "c" * 200, "d" * 900, "e"])

    assert run_async(work()) == [0.0] * 5
    assert len(sizes) == 3
    assert max(sizes) <= MOST_BRANCHES
    assert math.isclose(sum(sizes), 398)


def test_what_is_refused(run_async: Any) -> None:
    """One text instead of several, and what is empty or no text."""

    async def work() -> list[str]:
        context = Model.default().context()
        context.fill("x")
        messages = []
        for call in (context.score("yes"), context.score(["a", ""]), context.score([3]), context.logprobs("")):  # type: ignore[list-item]
            with pytest.raises(InvalidArgument) as caught:
                await call
            messages.append(str(caught.value))
        return messages

    several, empty, number, nothing = run_async(work())
    assert "several texts" in several
    assert "an option is empty" in empty
    assert "must be a str" in number
    assert "text is empty" in nothing
