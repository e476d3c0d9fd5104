"""Sets of tokens, which stay on the host: what a generation may sample besides its constraint."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tartlet_sdk import checks, wit
from tartlet_sdk.errors import InvalidArgument
from tartlet_sdk.host_call import call
from tartlet_sdk.vocabulary import vocabulary_of

if TYPE_CHECKING:
    from wit_world.imports import constraints as wit_constraints
    from wit_world.imports import models as wit_models

    from tartlet_sdk.model import Model


class Mask:
    """A set of tokens of a model. Nothing changes it: `&`, `|`, `-` and `~` make others, on the host.

    Attach it to a generation with `generate(mask=...)`: only its tokens are sampled, so have `model.eos_tokens` in it
    if the model may end the text.
    """

    def __init__(self, handle: wit_constraints.Mask) -> None:
        self.handle = handle

    def __deepcopy__(self, _: object) -> Mask:
        """Itself: nothing changes it, so that forks of a controller share it."""
        return self

    @classmethod
    def of(cls, tokens: Iterable[int], model: Model | None = None) -> Mask:
        """Make a mask of some tokens, by default of the host's default model's."""
        ids = checks.tokens(tokens, "tokens", "Mask.of")
        return cls(call("Mask.of", wit.constraints.Mask.tokens, _model(model), ids))

    @classmethod
    def all(cls, model: Model | None = None) -> Mask:
        """Make a mask of all tokens."""
        return cls(call("Mask.all", wit.constraints.Mask.all, _model(model)))

    @classmethod
    def where(cls, predicate: Callable[[bytes], object], model: Model | None = None) -> Mask:
        """Make a mask of the tokens whose bytes the predicate is true of; special tokens have those of their names.

        The first call for a model asks the host for all of its tokens.
        """
        handle = _model(model)
        texts = vocabulary_of(handle)
        words = [0] * -(-len(texts) // 64)
        for token, text in enumerate(texts):
            if predicate(text):
                words[token >> 6] |= 1 << (token & 63)
        return cls(call("Mask.where", wit.constraints.Mask.words, handle, words))

    def restrict(self, tokens: Iterable[int]) -> Mask:
        """Make a mask of those of these tokens that are in this one."""
        return Mask(call("Mask.restrict", self.handle.restrict, checks.tokens(tokens, "tokens", "Mask.restrict")))

    def __and__(self, other: Mask) -> Mask:
        if not isinstance(other, Mask):
            return NotImplemented
        return Mask(call("Mask.&", self.handle.intersection, [other.handle.id()]))

    def __or__(self, other: Mask) -> Mask:
        if not isinstance(other, Mask):
            return NotImplemented
        return Mask(call("Mask.|", self.handle.union, [other.handle.id()]))

    def __invert__(self) -> Mask:
        return Mask(call("Mask.~", self.handle.complement))

    def __sub__(self, other: Mask) -> Mask:
        return NotImplemented if not isinstance(other, Mask) else self & ~other

    def __contains__(self, token: int) -> bool:
        return call("Mask.in", self.handle.allows, checks.whole(token, "token", "Mask.in"))

    def __len__(self) -> int:
        """Number of tokens."""
        return self.handle.count()

    def __bool__(self) -> bool:
        return len(self) > 0

    def __repr__(self) -> str:
        return f"<Mask, {len(self):,} tokens>"


def mask_id(mask: Mask | None, call_name: str) -> int | None:
    """The number that the host knows it by. Raises `InvalidArgument` for anything else."""
    if mask is None:
        return None
    if not isinstance(mask, Mask):
        raise InvalidArgument(
            f"mask must be a Mask, not {type(mask).__name__}", hint="Make one with Mask.of(tokens).", call=call_name
        )
    return mask.handle.id()


def _model(model: Model | None) -> wit_models.Model:
    return call("Mask", wit.models.Model.open, None) if model is None else model._handle
