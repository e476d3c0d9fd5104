"""The models that the host serves, and their tokenizers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tartlet_sdk import checks, wit
from tartlet_sdk.context import Context
from tartlet_sdk.host_call import call
from tartlet_sdk.vocabulary import vocabulary_of

if TYPE_CHECKING:
    from wit_world.imports import models as wit_models


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Facts about a model."""

    name: str
    """The name it is opened by."""
    architecture: str
    """As the model's configuration names it, for example `LlamaForCausalLM`."""
    context_length: int
    """The greatest length of a context, in tokens."""
    vocabulary_size: int
    """Valid token ids are 0 to this, exclusive."""
    page_size: int
    """Tokens in one page of the KV cache."""
    eos_tokens: tuple[int, ...]
    """The tokens that end a turn or a text; each ends a generation unless told otherwise."""
    features: frozenset[str]
    """What the model can do beyond plain text, for example `chat`."""
    adapters: tuple[str, ...]
    """The names of the LoRA adapters that contexts can be made with."""


class Model:
    """A model that contexts can be made of. Open one with `Model.default()` or `Model.open(name)`."""

    def __init__(self, handle: wit_models.Model) -> None:
        self._handle = handle

    def __deepcopy__(self, _: object) -> Model:
        """Itself: it never changes, so that forks of a controller share it."""
        return self

    @classmethod
    def default(cls) -> Model:
        """Open the host's default model."""
        return cls(call("Model.default", wit.models.Model.open, None))

    @classmethod
    def open(cls, name: str) -> Model:
        """Open the model of that name. Raises `NotFound`, and names those that there are."""
        return cls(call("Model.open", wit.models.Model.open, checks.text(name, "name", "Model.open")))

    @staticmethod
    def available() -> list[ModelInfo]:
        """The facts of every model that the run may open, the default first."""
        return [_info(info) for info in wit.models.list_models()]

    @cached_property
    def info(self) -> ModelInfo:
        """The model's facts."""
        return _info(self._handle.info())

    @property
    def name(self) -> str:
        """The name it is opened by."""
        return self.info.name

    @property
    def context_length(self) -> int:
        """The greatest length of a context, in tokens."""
        return self.info.context_length

    @property
    def eos_tokens(self) -> tuple[int, ...]:
        """The tokens that end a turn or a text."""
        return self.info.eos_tokens

    @property
    def adapters(self) -> tuple[str, ...]:
        """The names of the LoRA adapters that contexts can be made with."""
        return self.info.adapters

    def context(self, *, adapter: str | None = None) -> Context:
        """Make an empty context.

        Args:
            adapter: One of `adapters`: what the context and its forks compute is as if it were merged into the model.

        Raises `NotFound` for another name, and names those that there are.
        """
        if adapter is not None:
            checks.text(adapter, "adapter", "Model.context")
        return Context(call("Model.context", wit.contexts.Context.create, self._handle, adapter), self._handle)

    def tokenize(self, text: str) -> list[int]:
        """Token ids of a text. Special tokens that are written out in it become their ids."""
        return call("Model.tokenize", self._handle.tokenize, checks.text(text, "text", "Model.tokenize"))

    def detokenize(self, tokens: Iterable[int]) -> str:
        """The text of token ids, special tokens included. Bytes that are not UTF-8 become U+FFFD."""
        return call("Model.detokenize", self._handle.detokenize, checks.tokens(tokens, "tokens", "Model.detokenize"))

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token, which need not be whole characters."""
        return bytes(
            call("Model.token_bytes", self._handle.token_bytes, checks.whole(token, "token", "Model.token_bytes"))
        )

    @property
    def vocabulary(self) -> list[bytes]:
        """The bytes of every token, by id; special tokens have those of their names. Asked for once, by one call."""
        return list(vocabulary_of(self._handle))

    def __repr__(self) -> str:
        return f"Model({self.name!r})"


def _info(info: wit_models.ModelInfo) -> ModelInfo:
    return ModelInfo(
        name=info.name,
        architecture=info.architecture,
        context_length=info.context_length,
        vocabulary_size=info.vocabulary_size,
        page_size=info.page_size,
        eos_tokens=tuple(info.eos_tokens),
        features=frozenset(info.features),
        adapters=tuple(info.adapters),
    )
