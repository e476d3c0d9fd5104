"""A model's text side: text to token ids and back, and chat messages in the form of the model's chat template.

Works on the `tokenizers` library alone: neither torch nor transformers is imported, so that it is there at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

import msgspec
from tokenizers import Tokenizer

from tartlet_engine.chat import ChatTemplate
from tartlet_engine.template import ChatError
from tartlet_engine.token_table import TokenTable

# Special tokens that chat templates can use, by their names in tokenizer_config.json.
_TEMPLATE_TOKENS = {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}


class _TokenizerFile(TypedDict, total=False):
    """What the token table reads of a `tokenizer.json`. The rest, megabytes of vocabulary, is skipped."""

    added_tokens: list[dict[str, Any]] | None
    decoder: dict[str, Any] | None


class ModelTokenizer:
    """The `api.ModelText` of one model folder.

    Args:
        folder: with `tokenizer.json`, `config.json` and, as far as there are, `tokenizer_config.json`,
            `generation_config.json` and `chat_template.jinja`.

    Raises:
        ValueError: there is no `tokenizer.json`, or its vocabulary is of an unknown kind.

    Cost: 0.1 to 0.4 s, by the size of the vocabulary. Thread: any.
    """

    def __init__(self, folder: Path | str) -> None:
        folder = Path(folder)
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise ValueError(f"{folder} has no tokenizer.json: only models with a fast tokenizer can be served")
        source = path.read_text(encoding="utf-8")
        self._tokenizer = _without_limits(Tokenizer.from_str(source))
        settings = _read_json(folder / "tokenizer_config.json")
        config = _read_json(folder / "config.json")
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
        stated_size = config.get("vocab_size", config.get("text_config", {}).get("vocab_size", 0))
        size = max(int(stated_size), max(vocabulary.values(), default=-1) + 1)
        self.table = TokenTable(msgspec.json.decode(source, type=_TokenizerFile), vocabulary, size)
        self.eos_token_ids = self._find_eos(settings, config, _read_json(folder / "generation_config.json"))
        self._chat = self._find_chat(folder, settings)

    @property
    def vocabulary_size(self) -> int:
        """Valid ids are below this; the last ones may have no token."""
        return len(self.table)

    @property
    def has_chat_template(self) -> bool:
        """Whether there is one, and it can be compiled: otherwise every chat method raises ValueError."""
        return isinstance(self._chat, ChatTemplate)

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text; special tokens written out in it become their ids."""
        _require_utf8(text)
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of token ids, special tokens included; bytes that are not UTF-8 become U+FFFD.

        Vocabularies that put a space before every text lose it here again, so that a text survives the round trip.
        """
        text = b"".join([self.token_bytes(token_id) for token_id in token_ids]).decode("utf-8", "replace")
        return text.removeprefix(" ") if self.table.strips_first_space else text

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of one token. Raises ValueError for an id outside the vocabulary."""
        if not 0 <= token_id < len(self.table):
            raise ValueError(f"token id {token_id} is outside the vocabulary: ids are 0 to {len(self.table) - 1}")
        return self.table[token_id]

    def chat_message(self, roles: Sequence[str], role: str, text: str) -> list[int]:
        """Return the tokens that append a message by `role` to a chat of messages by `roles`.

        Special tokens in the text stay text. Raises ValueError if the model has no template, or its template refuses
        this order of roles or cannot be continued message by message.
        """
        _require_utf8(text)
        return self._template.message(roles, role, text)

    def chat_cue(self, roles: Sequence[str]) -> list[int]:
        """Return the tokens that begin the assistant's turn. Raises ValueError as `chat_message` does."""
        return self._template.cue(roles)

    def chat_close(self, roles: Sequence[str], last_token_id: int | None) -> list[int]:
        """Return the tokens that end an assistant's turn, which came after messages by `roles`.

        If `last_token_id`, the last one generated, already is the first of them, it is left out. Raises ValueError as
        `chat_message` does.
        """
        return self._template.close(roles, last_token_id)

    @property
    def _template(self) -> ChatTemplate:
        if isinstance(self._chat, ChatError):
            raise self._chat
        return self._chat

    def _find_eos(self, *sources: dict[str, Any]) -> tuple[int, ...]:
        """The ids that end a text or a turn, by generation_config.json or config.json, and by the tokenizer."""
        settings, config, generation_config = sources
        stated = generation_config.get("eos_token_id", config.get("eos_token_id"))
        ids = list(stated) if isinstance(stated, list) else [] if stated is None else [stated]
        by_tokenizer = self._tokenizer.token_to_id(_token_text(settings.get("eos_token")))
        if by_tokenizer is not None:
            ids.append(by_tokenizer)
        return tuple(dict.fromkeys(int(token_id) for token_id in ids if 0 <= token_id < len(self.table)))

    def _find_chat(self, folder: Path, settings: dict[str, Any]) -> ChatTemplate | ChatError:
        source = settings.get("chat_template")
        if (path := folder / "chat_template.jinja").is_file():
            source = path.read_text(encoding="utf-8")
        if isinstance(source, list):  # several, by name
            source = next((item["template"] for item in source if item["name"] == "default"), None)
        if not isinstance(source, str):
            return ChatError("the model has no chat template: fill its contexts with text instead")
        tokens = {name: _token_text(token) for name, token in settings.items() if name in _TEMPLATE_TOKENS}
        try:
            return ChatTemplate(source, tokens, self._tokenizer, self.table)
        except ChatError as error:
            return error


def _require_utf8(text: str) -> None:
    """Raise ValueError for half a surrogate pair, which the tokenizers library answers with a misleading TypeError."""
    text.encode()


def _without_limits(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _token_text(token: str | dict[str, Any] | None) -> str:
    """A special token's text: the files state it alone or as an object."""
    if isinstance(token, dict):
        return str(token["content"])
    return token or ""


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a file, or an empty one if there is no such file."""
    if not path.is_file():
        return {}
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
