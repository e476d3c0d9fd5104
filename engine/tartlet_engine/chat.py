"""Chat messages as tokens, one message at a time.

A model's chat template renders a whole conversation; a context grows by one message. What a message adds is found by
rendering the conversation with and without it. In the messages before it placeholders stand for the texts: only their
roles count, so that the context's text need not be kept.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

from tartlet_engine.template import ChatError, Template
from tartlet_engine.token_table import TokenTable

_CACHED_FRAMES = 1024


@dataclass(slots=True, frozen=True)
class _Frame:
    """What the template writes around a message's text."""

    left: str  # after the text of the message before it, which is in the context already
    before: str
    after: str
    special_ids: tuple[int, ...]  # of the special tokens in before and after


class ChatTemplate:
    """One model's chat template.

    The tokens are those of the whole conversation, if the template starts every message with a special token and
    writes it in the same way whatever follows, as most do. A template that rewrites earlier messages (Qwen 3 drops the
    thinking of earlier turns) cannot do so here: what was appended stays.

    Args:
        source: the Jinja template.
        special_tokens: the texts of `bos_token`, `eos_token` ... for the template to use.
        tokenizer: the model's; it is not changed.
        table: the model's tokens.

    Raises:
        ChatError: the template cannot be compiled.

    Thread: any. Cost: see `message`.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str], tokenizer: Tokenizer, table: TokenTable) -> None:
        self._template = Template(source)
        self._special_tokens = dict(special_tokens)
        self._tokenizer = tokenizer
        self._special_ids = table.special_ids
        longest_first = sorted(table.special_texts, key=len, reverse=True)
        self._special_pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        self._lock = threading.Lock()
        self._literal_tokenizer: Tokenizer | None = None  # takes special tokens for text; made when first needed
        self._frame = functools.lru_cache(_CACHED_FRAMES)(self._find_frame)
        self._cue = functools.lru_cache(_CACHED_FRAMES)(self._find_cue)

    def message(self, roles: Sequence[str], role: str, text: str) -> list[int]:
        """Return the tokens that a message by `role` adds to a chat of messages by `roles`.

        Special tokens in the text stay text. Raises ChatError if the template refuses the roles, or does not write the
        message after those before it.

        Cost: rendering the roles once, three times if they are new; 20 us for a short chat.
        """
        roles = tuple(roles)
        frame = self._frame(roles, role)
        messages = [*_placeholders(roles), {"role": role, "content": text}]
        tail = self._after_last_text(messages, len(roles))
        if not tail.startswith(frame.left):
            raise ChatError(f"the chat template rewrites the chat when this {role} message is appended")
        added = tail.removeprefix(frame.left)
        token_ids = self._encode_after(frame.left, added)
        if self._special_in(token_ids) == frame.special_ids:
            return token_ids
        # The frame is rendered anew: it may hold the date.
        return self._encode_literally(self._find_frame(roles, role), role, added)

    def cue(self, roles: Sequence[str]) -> list[int]:
        """Return the tokens that begin the assistant's turn; none if the template has no cue. Raises ChatError."""
        return list(self._cue(tuple(roles)))

    def close(self, roles: Sequence[str], last_token_id: int | None) -> list[int]:
        """Return the tokens that end the assistant's turn that follows messages by `roles`.

        The first of them is left out if it is `last_token_id`, the last token generated. Raises ChatError.
        """
        roles = tuple(roles)
        after = self._frame(roles, "assistant").after
        token_ids = self._encode_after(_placeholder(len(roles)), after)
        return token_ids[1:] if token_ids[:1] == [last_token_id] else token_ids

    def _find_frame(self, roles: tuple[str, ...], role: str) -> _Frame:
        """Render a placeholder for the message's text, and cut at it."""
        left = self._after_last_text(_placeholders(roles), len(roles))
        tail = self._after_last_text(_placeholders((*roles, role)), len(roles))
        before, found, after = tail.removeprefix(left).partition(_placeholder(len(roles)))
        if not tail.startswith(left) or not found:
            raise ChatError(
                f"the chat template does not write a {role} message by itself after what it wrote before "
                f"({', '.join(roles[-8:]) or 'nothing'}): it is unsupported to append one"
            )
        special_ids = self._special_in(self._encode_after(left, before + found + after))
        return _Frame(left, before, after, special_ids)

    def _find_cue(self, roles: tuple[str, ...]) -> tuple[int, ...]:
        messages = _placeholders(roles)
        left = self._after_last_text(messages, len(roles))
        tail = self._after_last_text(messages, len(roles), add_generation_prompt=True)
        if not tail.startswith(left):
            raise ChatError("the chat template rewrites the last message when it begins the assistant's turn")
        return tuple(self._encode_after(left, tail.removeprefix(left)))

    def _after_last_text(
        self, messages: Sequence[Mapping[str, str]], num_before: int, add_generation_prompt: bool = False
    ) -> str:
        """Render, and return what follows the text of message number `num_before - 1`; all of it if that is 0."""
        if not messages and not add_generation_prompt:
            return ""  # many templates look at the first message without asking whether there is one
        rendered = self._template.render(
            messages, {**self._special_tokens, "add_generation_prompt": add_generation_prompt}
        )
        if num_before == 0:
            return rendered
        _, found, tail = rendered.partition(_placeholder(num_before - 1))
        if not found:
            raise ChatError(
                f"the chat template does not write {messages[num_before - 1]['role']} messages as they are: "
                "it is unsupported to go on after one"
            )
        return tail

    def _encode_after(self, left: str, text: str) -> list[int]:
        """The tokens of `text` when it follows `left`."""
        if left:
            left_ids = self._tokenizer.encode(left, add_special_tokens=False).ids
            token_ids: list[int] = self._tokenizer.encode(left + text, add_special_tokens=False).ids
            if token_ids[: len(left_ids)] == left_ids:
                return token_ids[len(left_ids) :]
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _encode_literally(self, frame: _Frame, role: str, added: str) -> list[int]:
        """The tokens of a message whose text holds special tokens, which are to stay text."""
        text_end = len(added) - len(frame.after)
        if not (added.startswith(frame.before) and added.endswith(frame.after) and len(frame.before) <= text_end):
            raise ChatError(f"the text of a {role} message holds special tokens, and the chat template rewrites it")
        specials_before = list(self._special_pattern.finditer(frame.before))
        special_after = self._special_pattern.search(frame.after)
        start = specials_before[-1].end() if specials_before else 0
        end = text_end + (special_after.start() if special_after else len(frame.after))
        literal_ids = self._literal().encode(added[start:end], add_special_tokens=False).ids
        return [*self._encode_after(frame.left, added[:start]), *literal_ids, *self._encode_after("", added[end:])]

    def _literal(self) -> Tokenizer:
        with self._lock:
            if self._literal_tokenizer is None:
                self._literal_tokenizer = Tokenizer.from_str(self._tokenizer.to_str())
                self._literal_tokenizer.encode_special_tokens = True
            return self._literal_tokenizer

    def _special_in(self, token_ids: Sequence[int]) -> tuple[int, ...]:
        return tuple([token_id for token_id in token_ids if token_id in self._special_ids])


def _placeholder(number: int) -> str:
    """A text that no template changes and that is found again: private use characters around the message's number."""
    return f"\ue000{number}\ue001"


def _placeholders(roles: Sequence[str]) -> list[dict[str, str]]:
    return [{"role": role, "content": _placeholder(number)} for number, role in enumerate(roles)]
