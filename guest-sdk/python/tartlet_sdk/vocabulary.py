"""The bytes of all of a model's tokens, which are asked for once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tartlet_sdk.host_call import call

if TYPE_CHECKING:
    from wit_world.imports import models as wit_models

_TOKEN_END = "\u0100"
_VOCABULARIES: dict[str, list[bytes]] = {}
"""By model, of those that have been asked for theirs."""


def vocabulary_of(handle: wit_models.Model) -> list[bytes]:
    """The bytes of every token of a model, by id. Not the caller's to change."""
    info = handle.info()
    if info.name not in _VOCABULARIES:
        text = call("Model.vocabulary", handle.vocabulary, 0, info.vocabulary_size)
        _VOCABULARIES[info.name] = [token.encode("latin-1") for token in text.split(_TOKEN_END)[:-1]]
    return _VOCABULARIES[info.name]
