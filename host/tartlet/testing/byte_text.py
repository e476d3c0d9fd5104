"""A tokenizer and chat template that need no model: a token is a byte, or one of two special tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence

END_OF_TURN = 256
START_OF_TURN = 257
VOCABULARY_SIZE = 258
SPECIAL_TOKENS = {END_OF_TURN: "<|im_end|>", START_OF_TURN: "<|im_start|>"}

_IDS = {text: token_id for token_id, text in SPECIAL_TOKENS.items()}
_SPECIAL = re.compile("(" + "|".join(map(re.escape, _IDS)) + ")")


class ByteText:
    """Implements `tartlet_engine.api.ModelText`: ids below 256 are bytes of UTF-8."""

    def encode(self, text: str) -> list[int]:
        """Token ids of a text; special tokens written out in it become their ids."""
        token_ids: list[int] = []
        for piece in _SPECIAL.split(text):
            if piece in _IDS:
                token_ids.append(_IDS[piece])
            else:
                token_ids.extend(piece.encode())
        return token_ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of token ids; bytes that are not UTF-8 become U+FFFD."""
        return b"".join(map(self.token_bytes, token_ids)).decode(errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of one token."""
        if not 0 <= token_id < VOCABULARY_SIZE:
            raise ValueError(f"token id {token_id} is not below {VOCABULARY_SIZE}")
        return SPECIAL_TOKENS[token_id].encode() if token_id in SPECIAL_TOKENS else bytes([token_id])

    def chat_message(self, roles: Sequence[str], role: str, text: str) -> list[int]:
        """The tokens of one message; like many templates, this one wants the system's message first."""
        if role == "system" and roles:
            raise ValueError("the system message must be the first")
        return [START_OF_TURN, *f"{role}\n{text}".encode(), END_OF_TURN, *b"\n"]

    def chat_cue(self, roles: Sequence[str]) -> list[int]:
        """The tokens that begin the assistant's turn."""
        return [START_OF_TURN, *b"assistant\n"]

    def chat_close(self, roles: Sequence[str], last_token_id: int | None) -> list[int]:
        """The tokens that end an assistant's turn."""
        return [*b"\n"] if last_token_id == END_OF_TURN else [END_OF_TURN, *b"\n"]
