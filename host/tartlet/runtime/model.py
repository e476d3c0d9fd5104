"""A model that a program has opened."""

from __future__ import annotations

from collections.abc import Sequence

from tartlet.runtime.refusal import invalid_argument, refusal
from tartlet.wasm.host_function import Constant
from tartlet_engine.api import ErrorCode, ModelInfo, ModelText

TOKEN_END = "\u0100"
"""After each token of a vocabulary: a character that no byte is."""


def info_record(info: ModelInfo) -> Constant:
    """The record `models.model-info` of wit/."""
    return Constant(
        {
            "name": info.name,
            "architecture": info.architecture,
            "context-length": info.context_len,
            "vocabulary-size": info.vocabulary_size,
            "page-size": info.page_size,
            "eos-tokens": list(info.eos_token_ids),
            "features": list(info.features),
            "adapters": list(info.adapters),
        }
    )


class ModelHandle:
    """One opened model: its facts and its text side."""

    def __init__(self, info: ModelInfo, text: ModelText) -> None:
        self.info = info
        self.text = text
        self.record = info_record(info)

    def vocabulary(self, first: int, end: int) -> str:
        """The bytes of some tokens, as `models.model.vocabulary` of wit/ gives them."""
        return "".join(self.text.token_bytes(token).decode("latin-1") + TOKEN_END for token in range(first, end))

    def check_tokens(self, token_ids: Sequence[int], what: str = "token") -> None:
        """Raise a refusal unless all are ids of the vocabulary. O(n), some 10 ns each."""
        if token_ids and max(token_ids) >= self.info.vocabulary_size:
            position, token_id = next((i, t) for i, t in enumerate(token_ids) if t >= self.info.vocabulary_size)
            raise invalid_argument(
                f"{what} {token_id} at position {position} is not below {self.info.vocabulary_size:,}, "
                f"the vocabulary size of {self.info.name}"
            )

    def check_token(self, token_id: int) -> None:
        """Raise a refusal unless it is an id of the vocabulary."""
        if token_id >= self.info.vocabulary_size:
            raise invalid_argument(
                f"token {token_id} is not below {self.info.vocabulary_size:,}, the vocabulary size of {self.info.name}"
            )

    def check_adapter(self, name: str) -> None:
        """Raise a refusal, with the names that there are, if the model has no adapter of that name."""
        if name not in self.info.adapters:
            known = ", ".join(self.info.adapters)
            raise refusal(
                ErrorCode.NOT_FOUND,
                f"{self.info.name} has no adapter {name[:200]!r}",
                f"There are: {known}." if known else "The host was started without adapters.",
            )

    def check_chat(self) -> None:
        """Raise a refusal if the model has no chat template."""
        if "chat" not in self.info.features:
            raise refusal(
                ErrorCode.UNSUPPORTED, f"{self.info.name} has no chat template", "Fill the context with text instead."
            )
