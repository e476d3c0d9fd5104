"""The log-probabilities of tokens, as they go with the text."""

from __future__ import annotations

import codecs

from tartlet_sdk import Model
from tartlet_sdk.draft import TokenLogprobs

Entry = tuple[int, str, float, list[tuple[str, float]]]
"""Of a token: the character of the text at which it begins, its bytes in hexadecimal, its log-probability, and the
bytes and log-probabilities of the most likely tokens."""


class TokenLine:
    """The tokens of one choice in order. Each comes out once its first character is there.

    So those of the stop string do not come out, nor does the eos token, and what comes out does not depend on how the
    generation was cut into chunks.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._bytes: dict[int, bytes] = {}
        self._text_len = 0
        self._tokens_len = 0  # characters of the tokens so far
        self._waiting: list[Entry] = []

    def add(self, text: str, positions: tuple[TokenLogprobs, ...]) -> list[Entry]:
        """Take in a chunk; the entries of the tokens whose text has come."""
        self._text_len += len(text)
        for position in positions:
            top = [(self._token(each.token).hex(), each.logprob) for each in position.top]
            token = self._token(position.chosen.token)
            self._waiting.append((self._tokens_len, token.hex(), position.chosen.logprob, top))
            self._tokens_len += len(self._decoder.decode(token))
        num_ready = sum(entry[0] < self._text_len for entry in self._waiting)
        ready, self._waiting = self._waiting[:num_ready], self._waiting[num_ready:]
        return ready

    def _token(self, token: int) -> bytes:
        if token not in self._bytes:
            self._bytes[token] = self._model.token_bytes(token)
        return self._bytes[token]
