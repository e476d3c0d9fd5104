"""What each token id stands for in bytes, worked out from a `tokenizer.json`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_WORD_START = "\u2581"  # how sentencepiece-style vocabularies write a space


class TokenTable:
    """The bytes of every token of one tokenizer.

    Knows the two kinds of vocabulary that language models use: byte-level (GPT-2, Llama 3, Qwen), in which every
    character of a token stands for a byte, and sentencepiece-style (Llama 2, Mistral, Gemma), with a mark for the
    space and tokens such as `<0x0A>` for bytes that have no token of their own.

    Args:
        tokenizer_json: the parsed file.
        vocabulary: id by token, added tokens included.
        size: how many ids there are; those that no token has stand for no bytes.

    Raises:
        ValueError: the vocabulary is of another kind.

    Thread: any.
    """

    def __init__(self, tokenizer_json: Mapping[str, Any], vocabulary: Mapping[str, int], size: int) -> None:
        added = tokenizer_json.get("added_tokens") or []
        self._added_ids = frozenset(int(token["id"]) for token in added)
        self.special_ids = frozenset(int(token["id"]) for token in added if token["special"])
        self.special_texts = tuple(str(token["content"]) for token in added if token["special"])
        self._tokens: list[str | None] = [None] * size
        for token, token_id in vocabulary.items():
            self._tokens[token_id] = token
        decoders = list(_flat(tokenizer_json.get("decoder")))
        kinds = {decoder["type"] for decoder in decoders}
        self._is_byte_level = "ByteLevel" in kinds
        if not self._is_byte_level and not kinds & {"ByteFallback", "Metaspace", "Replace"}:
            names = ", ".join(sorted(kinds)) or "none"
            raise ValueError(
                f"the tokenizer's decoder ({names}) is of an unknown kind: known are byte-level and sentencepiece-style"
            )
        self.strips_first_space = any(_strips_first_space(decoder) for decoder in decoders)
        self._bytes: list[bytes | None] = [None] * size

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, token_id: int) -> bytes:
        """The bytes of `token_id`, which must lie within the vocabulary. Cost: 0.1 us once it was asked for."""
        known = self._bytes[token_id]
        if known is None:
            known = self._bytes[token_id] = self._work_out(token_id)
        return known

    def _work_out(self, token_id: int) -> bytes:
        token = self._tokens[token_id]
        if token is None:
            return b""
        if token_id in self._added_ids:
            return token.encode()
        if self._is_byte_level:
            table = _byte_by_character()
            return b"".join(bytes([table[char]]) if char in table else char.encode() for char in token)
        if byte := _BYTE_TOKEN.fullmatch(token):
            return bytes([int(byte[1], 16)])
        return token.replace(_WORD_START, " ").encode()


@functools.cache
def _byte_by_character() -> dict[str, int]:
    """How byte-level vocabularies write bytes: printable Latin-1 as itself, the other 68 as U+0100 and following.

    Source: `bytes_to_unicode` of GPT-2's encoder (Radford et al. 2019).
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted(set(range(256)) - set(printable))
    return {chr(byte): byte for byte in printable} | {chr(0x100 + n): byte for n, byte in enumerate(others)}


def _flat(decoder: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    if decoder is None:
        return
    if decoder["type"] == "Sequence":
        for part in decoder["decoders"]:
            yield from _flat(part)
    else:
        yield decoder


def _strips_first_space(decoder: Mapping[str, Any]) -> bool:
    if decoder["type"] == "Strip":
        return bool(decoder["content"] == " " and decoder["start"] > 0)
    return bool(decoder["type"] == "Metaspace" and decoder.get("prepend_scheme", "always") != "never")
