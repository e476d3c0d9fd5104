"""Where a stepped generation is: its text after each token, to go back to, and what its program has answered."""

from __future__ import annotations

from typing import NamedTuple

from tartlet_engine.api import StepAnswer
from tartlet_engine.constraints.vocabulary import Words
from tartlet_engine.sampler import SamplingRow
from tartlet_engine.stop import TextState


class _Mark(NamedTuple):
    """The text after a token."""

    state: TextState
    num_shown: int  # characters


class StepState:
    """What a stepped generation has besides any other. On the engine's thread."""

    def __init__(self, first_token: int, state: TextState) -> None:
        """Begin at the sequence's token `first_token`, which is to come, with a text of which nothing is shown."""
        self.answer: StepAnswer | None = None  # what its program wants of the next step; None: it has not said yet
        self.row: SamplingRow | None = None  # how that step is sampled
        self.allowed: Words | None = None  # what it may sample, besides what the generation may; None: all
        # When its program was told of the last outcome, on the monotonic clock, and how long before its last answer the
        # one before had been told; None: there was none.
        self.told_ns: int | None = None
        self.thought_ns: int | None = None
        self._first_token = first_token
        self._marks = [_Mark(state, 0)]  # before its first token, and after each

    def take_answer(self) -> StepAnswer:
        """Return the answer, once; then the next one may come."""
        answer = self.answer
        assert answer is not None
        self.answer = self.row = self.allowed = None
        return answer

    def note(self, text: str, state: TextState) -> None:
        """Note a token that was appended, the text that it has shown, and where the text is now. Cost: constant."""
        self._marks.append(_Mark(state, self._marks[-1].num_shown + len(text)))

    def go_back(self, length: int) -> tuple[TextState, int]:
        """Go back to when the sequence had `length` tokens, of those before the generation, too.

        Returns: where the text was then, and how many characters of it are taken back.
        """
        num_shown = self._marks[-1].num_shown
        self._first_token = min(self._first_token, length)
        del self._marks[length - self._first_token + 1 :]
        mark = self._marks[-1]
        return mark.state, num_shown - mark.num_shown

    @property
    def first_token(self) -> int:
        """The place in the sequence of the first token that the generation has added, or will add."""
        return self._first_token

    def fork(self) -> StepState:
        """Return one that is as far as this one."""
        other = StepState(self._first_token, self._marks[0].state)
        other._marks = self._marks.copy()
        return other
