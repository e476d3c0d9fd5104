"""How a generation guesses its next tokens, so that several come of one step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tartlet_sdk import checks, wit
from tartlet_sdk.host_call import call

if TYPE_CHECKING:
    from wit_world.imports import generation as wit_generation
    from wit_world.imports import models as wit_models

MOST_DRAFTED = 32
LONGEST_NGRAM = 8


@dataclass(frozen=True, slots=True)
class Speculation:
    """Guesses of the next tokens, for `Context.generate(speculation=)`. What is generated does not depend on them.

    Where the context's last `ngram` tokens stood before, in the expected text or in the context itself, what followed
    them there is guessed to follow now. It makes texts that copy faster: edits, quotes, code, loops. A guess that is
    wrong costs the rows that were computed for it, so there are fewer and shorter ones where little comes of them.
    """

    expected: str | Iterable[int] = ()
    """A text that is expected, at least in parts, or its tokens (at most 16,384). It is guessed from its beginning."""
    max_draft: int = 8
    """Tokens guessed for one step, at most: 1 to 32."""
    ngram: int = 3
    """How many of the last tokens must have stood there: 1 to 8."""

    def __post_init__(self) -> None:
        checks.whole(self.max_draft, "max_draft", "Speculation", 1, MOST_DRAFTED)
        checks.whole(self.ngram, "ngram", "Speculation", 1, LONGEST_NGRAM)
        if isinstance(self.expected, str):
            checks.text(self.expected, "expected", "Speculation")
        else:
            object.__setattr__(self, "expected", tuple(checks.tokens(self.expected, "expected", "Speculation")))

    def to_wit(self, model: wit_models.Model) -> wit_generation.Speculation:
        """The contract's record, with an expected text in the model's tokens."""
        if isinstance(self.expected, str):
            expected = call("Context.generate", model.tokenize, self.expected)
        else:
            expected = list(self.expected)
        return wit.generation.Speculation(self.max_draft, self.ngram, expected)
