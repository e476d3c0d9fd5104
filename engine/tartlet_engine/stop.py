"""When a generation ends, and the text that it shows until then."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from tartlet_engine.api import FinishReason, Stop
from tartlet_engine.detokenizer import Detokenizer
from tartlet_engine.token_table import TokenTable


class StopMatcher:
    """Finds stop strings in a text that comes in pieces, and holds back what may be the beginning of one.

    What it finds does not depend on where the pieces are cut: the string that is complete first counts, the longest of
    them if several are complete at the same character.

    Source: the automaton of Knuth, Morris and Pratt (1977), one for each string. Cost: constant for each character and
    stop string.
    """

    def __init__(self, strings: Sequence[str]) -> None:
        self._strings = sorted({string for string in strings if string}, key=len, reverse=True)
        self._borders = [_borders(string) for string in self._strings]
        self._matched = [0] * len(self._strings)  # how much of each string the text so far ends with
        self._held = ""

    def feed(self, text: str) -> tuple[str, str | None]:
        """Take more text; return the text that may be shown now, and the stop string that is complete, if one is.

        After a stop string nothing may be fed any more.
        """
        if not self._strings:
            return text, None
        text = self._held + text
        for position in range(len(self._held), len(text)):
            if (string := self._advance(text[position])) is not None:
                self._held = ""
                return text[: position + 1 - len(string)], string
        shown = len(text) - max(self._matched)
        self._held = text[shown:]
        return text[:shown], None

    def copy(self) -> StopMatcher:
        """Return one that is as far as this one, and goes on by itself."""
        other = copy.copy(self)
        other._matched = self._matched.copy()
        return other

    def flush(self) -> str:
        """Return what was held back; no stop string follows."""
        held, self._held = self._held, ""
        return held

    @property
    def state(self) -> tuple[tuple[int, ...], str]:
        """How far each string is matched, and what is held back, to go back to."""
        return tuple(self._matched), self._held

    @state.setter
    def state(self, state: tuple[tuple[int, ...], str]) -> None:
        matched, self._held = state
        self._matched[:] = matched

    def _advance(self, char: str) -> str | None:
        """Move every automaton on by a character; return the longest string that is complete."""
        for number, string in enumerate(self._strings):
            borders, matched = self._borders[number], self._matched[number]
            while matched and string[matched] != char:
                matched = borders[matched - 1]
            if string[matched] == char:
                matched += 1
            self._matched[number] = matched
            if matched == len(string):
                return string
        return None


def _borders(string: str) -> list[int]:
    """For each prefix, the length of the longest shorter prefix that it also ends with."""
    borders = [0] * len(string)
    length = 0
    for position in range(1, len(string)):
        while length and string[position] != string[length]:
            length = borders[length - 1]
        if string[position] == string[length]:
            length += 1
        borders[position] = length
    return borders


@dataclass(slots=True, frozen=True)
class TextState:
    """Where a generation's text is, for a `StopDecider` to go back to."""

    decoder: tuple[bytes, int]
    matcher: tuple[tuple[int, ...], str]


@dataclass(slots=True, frozen=True)
class StopStep:
    """What one token did to its generation."""

    text: str  # to be shown now
    finish_reason: FinishReason | None = None
    stop_string: str | None = None


class StopDecider:
    """Follows one generation token by token: its text, and whether it goes on.

    The text leaves out the eos tokens, all special tokens, and the string that stopped it. If one token meets several
    conditions, the first of these counts: eos, stop string, stop token, length.

    Args:
        stop: the conditions asked for.
        eos_token_ids: the model's.
        max_tokens: the greatest number of tokens, which is never more than `stop.max_tokens`: the context's room.
        table: the model's tokens.
    """

    def __init__(self, stop: Stop, eos_token_ids: Sequence[int], max_tokens: int, table: TokenTable) -> None:
        self._ending_ids = frozenset() if stop.ignore_eos else frozenset(eos_token_ids)
        self._stop_ids = frozenset(stop.token_ids)
        self.tokens_left = max_tokens
        self._detokenizer = Detokenizer(table, table.special_ids | frozenset(eos_token_ids))
        self._matcher = StopMatcher(stop.strings)

    def feed(self, token_id: int) -> StopStep:
        """Take the next token. After one that finishes the generation nothing may be fed any more."""
        self.tokens_left -= 1
        if token_id in self._ending_ids:
            return self._finish("", FinishReason.EOS)
        text, stop_string = self._matcher.feed(self._detokenizer.feed(token_id))
        if stop_string is not None:
            return StopStep(text, FinishReason.STOP_STRING, stop_string)
        if token_id in self._stop_ids:
            return self._finish(text, FinishReason.STOP_TOKEN)
        if self.tokens_left <= 0:
            return self._finish(text, FinishReason.LENGTH)
        return StopStep(text)

    @property
    def state(self) -> TextState:
        """Where the text is, to go back to."""
        return TextState(self._detokenizer.state, self._matcher.state)

    def go_back(self, state: TextState, num_tokens: int) -> None:
        """Go back to where the text was, over so many tokens, which may come again."""
        self._detokenizer.state, self._matcher.state = state.decoder, state.matcher
        self.tokens_left += num_tokens

    def copy(self) -> StopDecider:
        """Return one that is as far as this one, and goes on by itself."""
        other = copy.copy(self)
        other._detokenizer = self._detokenizer.copy()
        other._matcher = self._matcher.copy()
        return other

    def flush(self) -> str:
        """Return the text held back, when the generation ends for a reason of its own, such as a cancel."""
        text, _ = self._matcher.feed(self._detokenizer.flush())
        return text + self._matcher.flush()

    def _finish(self, text: str, reason: FinishReason) -> StopStep:
        return StopStep(text + self.flush(), reason)
