"""Drafts of a program's own: what is appended of them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_sdk import InvalidArgument, Model


@pytest.mark.runner
def test_a_draft_is_kept_as_far_as_it_is_right(sandbox: Any) -> None:
    """The fake model goes on with the next number: what it would write is appended, and one token more."""
    program = """
@inferlet
async def main():
    context = Model.default().context()
    context.fill_tokens([10])
    given = [await context.verify(draft) for draft in ([11, 12, 13], [15, 16, 99, 18], [99], [])]
    return [given, context.tokens]
"""
    given, tokens = sandbox.run(program)

    assert given == [[11, 12, 13, 14], [15, 16, 17], [18], [19]]
    assert tokens == list(range(10, 20))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"draft": range(64)}, "the number of tokens in draft must be from 0 to 63, not 64"),
        ({"draft": [-1]}, "draft must be token ids"),
        ({"draft": [1], "sampler": 0.5}, "sample must be a Sampler, not float"),
        ({"draft": [1], "sample_index": -1}, "sample_index must be from 0"),
    ],
)
def test_what_is_out_of_range(run_async: Any, arguments: dict[str, Any], message: str) -> None:
    """It is refused in the author's terms, and nothing is appended."""

    async def work() -> list[int]:
        context = Model.default().context()
        context.fill_tokens([1])
        with pytest.raises(InvalidArgument, match=message):
            await context.verify(**arguments)
        return context.tokens

    assert run_async(work()) == [1]
