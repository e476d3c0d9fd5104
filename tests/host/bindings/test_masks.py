"""Masks as programs see them, through the raw interface. The fake model has bytes and two special tokens."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet.errors import InvalidHandleError

pytestmark = pytest.mark.runner

MAKERS = """
        from wit_world.imports.constraints import Mask
        model = models.Model.open(None)
        size = model.info().vocabulary_size
        def ids(mask):
            return [token for token in range(size) if mask.allows(token)]
"""


def test_sets_of_tokens(guest: Any) -> None:
    """Of tokens, of packed words, of all; what comes of putting them together is what sets give."""
    found = guest(
        MAKERS
        + """
        few, more = Mask.tokens(model, [1, 65, 200, 65]), Mask.tokens(model, [2, 65])
        packed = Mask.words(model, [2, 2, 0, 256] + [0] * (-(-size // 64) - 4))
        every = Mask.all(model)
        return [
            ids(few), ids(packed), every.count() == size,
            ids(few.intersection([more.id()])), ids(few.union([more.id(), packed.id()])),
            ids(few.complement()) == [t for t in range(size) if t not in (1, 65, 200)],
            ids(few.restrict([200, 3, 1])), few.complement().intersection([few.id()]).count(), ids(few.union([])),
        ]
    """
    )

    assert found == [[1, 65, 200], [1, 65, 200], True, [65], [1, 2, 65, 200], True, [1, 200], 0, [1, 65, 200]]


def test_refusals(guest: Any) -> None:
    """Tokens and bits outside the vocabulary, a wrong number of words, too many others, too many masks."""
    refusals = guest(
        MAKERS
        + """
        mask = Mask.all(model)
        words = -(-size // 64)
        codes = [refused(*call)[0] for call in (
            (Mask.tokens, model, [size]), (Mask.tokens, model, [1] * (size + 1)), (mask.allows, size),
            (Mask.words, model, [0] * (words - 1)), (Mask.words, model, [0] * (words - 1) + [1 << 63]),
            (mask.union, [mask.id()] * 65), (mask.restrict, [size]),
        )]
        kept = [Mask.all(model) for _ in range(1023)]
        codes.append(refused(Mask.all, model)[0])
        kept.pop().__exit__(None, None, None)
        return [codes, refused(Mask.all, model)]
    """
    )

    assert refusals == [["INVALID_ARGUMENT"] * 7 + ["QUOTA_EXCEEDED"], None]


def test_a_generation_takes_it_by_its_id(guest: Any, fake: Any) -> None:
    """Attached, it may be dropped at once; the fixture checks that nothing is left in the engine."""
    text = guest(
        MAKERS
        + """
        context = contexts.Context.create(model, None)
        context.fill("abc")
        with Mask.tokens(model, [97]) as mask:
            going = generation.generate(context, SAMPLING, STOP, options(mask=mask.id()))
        return going.next().text
    """
    )

    assert text == "abc"


@pytest.mark.parametrize("use", ["mask.union([gone])", "generate(gone)", "generate(model_event)"])
def test_a_forged_id_ends_the_run(guest: Any, use: str) -> None:
    """The id must be that of a mask which the run holds."""
    with pytest.raises(InvalidHandleError):
        guest(
            MAKERS
            + f"""
        context = contexts.Context.create(model, None)
        context.fill("abc")
        model_event = context.flush()
        mask = Mask.all(model)
        with Mask.all(model) as other:
            gone = other.id()
        def generate(number):
            generation.generate(context, SAMPLING, STOP, options(mask=number))
        {use}
    """
        )
