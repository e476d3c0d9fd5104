"""Sets of tokens, as programs use them."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_sdk import InvalidArgument, Mask, Model


def test_made_of_tokens_and_of_what_they_say(stub: Any) -> None:
    """Of ids, of all, of a predicate over bytes, whose bits are packed in the right order."""
    model = Model.default()
    assert sorted(token for token in range(256) if token in Mask.of([3, 200], model)) == [3, 200]
    assert len(Mask.all()) == 256
    digits = Mask.where(lambda text: text.isdigit(), model)
    assert [token for token in range(256) if token in digits] == list(b"0123456789")
    assert len(~digits) == 246
    assert len(digits.restrict([48, 65])) == 1
    assert not Mask.of([])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mask.of("ab"), "Mask.of: tokens must be token ids"),
        (lambda: Mask.all().restrict([-1]), "Mask.restrict: tokens must be token ids"),
        (lambda: "a" in Mask.all(), "Mask.in: token must be an int"),
        (lambda: Model.default().context().generate(mask=[5]), "Context.generate: mask must be a Mask, not list"),
    ],
)
def test_wrong_types_are_told_by_name(stub: Any, make: Any, message: str) -> None:
    """They never reach the host, where they would end the run."""
    with pytest.raises(InvalidArgument, match=message):
        make()


def test_only_masks_go_together(stub: Any) -> None:
    """Anything else is a TypeError, as for Python's own sets."""
    for operation in (lambda: Mask.all() & {5}, lambda: Mask.all() | 5, lambda: Mask.all() - [5]):
        with pytest.raises(TypeError):
            operation()


@pytest.mark.runner
def test_in_the_sandbox(sandbox: Any) -> None:
    """Operators give what sets give, and a mask stays on the host while a generation uses it."""
    assert (
        sandbox.run("""
@inferlet
async def main():
    model = Model.default()
    letters = Mask.where(lambda text: text.isalpha() and len(text) == 1, model)
    vowels = Mask.of(model.tokenize("aeiou"), model)
    assert len(letters) == 52 and len(vowels) == 5
    assert len(letters & vowels) == 5 and len(letters | vowels) == 52 and len(letters - vowels) == 47
    assert model.tokenize("a")[0] not in ~vowels
    with model.context() as context:
        context.user("hi")
        return (await context.generate(mask=vowels | Mask.of(model.eos_tokens))).text
""")
        == "hi"
    )
