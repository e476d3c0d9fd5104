"""Where a context stands in its chat, at every length that it has had."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

_VERSION = 1  # of the text of a history


@dataclass(frozen=True, slots=True)
class ChatState:
    """How far the chat has come at one point of a context."""

    roles: tuple[str, ...] = ()
    """Of the messages that are complete."""
    is_turn_open: bool = False
    """The assistant's turn has begun and has not been closed."""
    needs_cue: bool = False
    """The last thing filled is a message of somebody else, which the assistant's turn should follow."""


class ChatHistory:
    """The states of a context's chat, each with the length at which it was reached, so that truncating restores it."""

    def __init__(self) -> None:
        self._marks: list[tuple[int, ChatState]] = [(0, ChatState())]

    @property
    def state(self) -> ChatState:
        """The state at the end of the context."""
        return self._marks[-1][1]

    def has_grown(self, length: int) -> bool:
        """Whether tokens were appended since the state was reached."""
        return length > self._marks[-1][0]

    def add_message(self, length: int, role: str) -> None:
        """Note that a message ends at `length`."""
        roles = (*self.state.roles, role)
        self._mark(length, ChatState(roles, needs_cue=role != "assistant"))

    def open_turn(self, length: int) -> None:
        """Note that the assistant's turn begins at `length`."""
        self._mark(length, ChatState(self.state.roles, is_turn_open=True))

    def close_turn(self, length: int) -> None:
        """Note that the assistant's turn ends at `length`."""
        self._mark(length, ChatState((*self.state.roles, "assistant")))

    def add_text(self, length: int) -> None:
        """Note that what ends at `length` is no message."""
        if self.state.needs_cue:
            self._mark(length, replace(self.state, needs_cue=False))

    def truncate(self, length: int) -> None:
        """Go back to the state in which the context was at `length`, or, inside a message, before that message."""
        while self._marks[-1][0] > length:
            self._marks.pop()

    def evict(self, start: int, end: int) -> None:
        """Take out tokens, of which the last is not one. The messages in them still count as having been.

        What was reached within the range is then reached with the first token after it.
        """
        moved: dict[int, ChatState] = {}
        for length, state in self._marks:
            moved[length if length <= start else max(start + 1, length - (end - start))] = state
        self._marks = list(moved.items())

    def copy(self, length: int) -> ChatHistory:
        """The history of a fork that begins with the first `length` tokens."""
        history = ChatHistory()
        history._marks = self._marks.copy()
        history.truncate(length)
        return history

    def to_json(self) -> str:
        """Write the history as text, for a context that is saved."""
        marks = [(length, len(state.roles), state.is_turn_open, state.needs_cue) for length, state in self._marks]
        return json.dumps([_VERSION, self.state.roles, marks], separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> ChatHistory:
        """Read what `to_json` wrote. Raises ValueError for the text of another version."""
        try:
            version, roles, marks = json.loads(text)
            if version != _VERSION:
                raise ValueError(f"a chat of version {version!r}, not {_VERSION}")
            history = cls()
            history._marks = [
                (length, ChatState(tuple(roles[:num_roles]), is_turn_open, needs_cue))
                for length, num_roles, is_turn_open, needs_cue in marks
            ]
        except (TypeError, ValueError) as error:
            raise ValueError(f"its chat cannot be read: {error}") from error
        return history

    def _mark(self, length: int, state: ChatState) -> None:
        if self._marks[-1][0] == length and length:
            self._marks[-1] = (length, state)
        else:
            self._marks.append((length, state))
