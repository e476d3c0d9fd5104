"""Speculation: what it sends to the host, what it refuses, and what a program sees of it."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_sdk import InvalidArgument, Model, Speculation

from .conftest import Sandbox


def test_tokens_go_over_as_they_are(stub: Any) -> None:
    """Any iterable of token ids, once."""
    sent = Speculation(iter([5, 6]), max_draft=4, ngram=2).to_wit(Model.default()._handle)

    assert (sent.max_draft, sent.ngram, sent.expected) == (4, 2, [5, 6])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_draft": 0}, "max_draft must be from 1 to 32, not 0"),
        ({"max_draft": 33}, "max_draft must be from 1 to 32, not 33"),
        ({"ngram": 9}, "ngram must be from 1 to 8, not 9"),
        ({"ngram": 2.0}, "ngram must be an int, not float"),
        ({"expected": [1, -1]}, "expected must be token ids from 0 to 4294967295, not -1"),
        ({"expected": "\ud800"}, "expected cannot be encoded as UTF-8"),
    ],
)
def test_an_argument_out_of_range_is_refused_at_once(arguments: dict[str, Any], message: str) -> None:
    """The error names the argument, its range and what was given."""
    with pytest.raises(InvalidArgument) as caught:
        Speculation(**arguments)

    assert message in str(caught.value)


def test_something_else_is_refused(stub: Any) -> None:
    """A generation takes a Speculation or none."""
    with pytest.raises(InvalidArgument, match="speculation must be a Speculation, not bool"):
        Model.default().context().generate(speculation=True)  # type: ignore[arg-type]


@pytest.mark.runner
def test_a_program_speculates(sandbox: Sandbox) -> None:
    """A text or tokens are accepted, and the usage reports drafts: the fake engine makes none."""
    program = """
@inferlet
async def main():
    context = Model.default().context()
    context.fill("Say it again: one two three")
    draft = await context.generate(max_tokens=9, speculation=Speculation("one two three"))
    more = await context.generate(max_tokens=9, speculation=Speculation([1, 2], ngram=1, max_draft=32))
    return [draft.usage.draft_tokens, draft.usage.accepted_tokens, len(more.tokens)]
"""

    assert sandbox.run(program) == [0, 0, 9]
