"""A set of tokens of a run: one big number here; the engine gets a copy when something is sampled under it."""

from __future__ import annotations

from collections.abc import Sequence

from tartlet.runtime.guest_state import GuestState
from tartlet.runtime.model import ModelHandle
from tartlet.runtime.refusal import invalid_argument, refusal
from tartlet_engine.api import ErrorCode, FreeMask, MakeMask

MOST_MASKS = 1024  # of a run
MOST_OTHERS = 64  # masks that are put together with one
_DIGITS = bytes.maketrans(b"\0\1", b"01")


class MaskState:
    """One mask of a run, which nothing changes. Lives on the executor's thread.

    Attributes:
        bits: bit t is that of token t.
    """

    def __init__(self, run: GuestState, model: ModelHandle, bits: int) -> None:
        """Keep a set of tokens. Raises a refusal if the run has too many."""
        if run.num_masks >= MOST_MASKS:
            raise refusal(
                ErrorCode.QUOTA_EXCEEDED,
                f"the run holds {run.num_masks:,} masks; {MOST_MASKS:,} are allowed",
                "Drop some of them.",
            )
        run.num_masks += 1
        self.run = run
        self.model = model
        self.bits = bits
        self._engine_id: int | None = None  # once the engine has it
        self._num_holders = 1

    def engine_id_for(self, model: ModelHandle) -> int:
        """The engine's id, for a generation of that model. Raises a refusal if it is another's."""
        self.require_model(model)
        if self._engine_id is None:
            self._engine_id = self.run.link.new_id()
            words = self.bits.to_bytes(-(-model.info.vocabulary_size // 32) * 4, "little")
            self.run.submit(MakeMask(self._engine_id, self.run.engine_id, words))
        return self._engine_id

    def require_model(self, model: ModelHandle) -> None:
        """Raise a refusal unless it is a mask of that model's tokens."""
        if model.info.name != self.model.info.name:
            raise invalid_argument(f"the mask is one of {self.model.info.name}'s tokens, not of {model.info.name}'s")

    def hold(self) -> None:
        """Keep it for one more who drops it."""
        self._num_holders += 1

    def drop(self) -> None:
        """Free it, once all who hold it have dropped it; what it is attached to goes on with it."""
        self._num_holders -= 1
        if self._num_holders:
            return
        self.run.num_masks -= 1
        if self._engine_id is not None:
            self.run.submit(FreeMask(self._engine_id, self.run.engine_id))


def all_bits(model: ModelHandle) -> int:
    """The set of all tokens."""
    return (1 << model.info.vocabulary_size) - 1


def bits_of_tokens(model: ModelHandle, token_ids: Sequence[int]) -> int:
    """The set of some tokens. Raises a refusal for one outside the vocabulary. Cost: 1 ms for 49,152 tokens."""
    size = model.info.vocabulary_size
    if len(token_ids) > size:
        raise invalid_argument(f"{len(token_ids):,} tokens; {model.info.name} has {size:,}")
    model.check_tokens(token_ids)
    flags = bytearray(size)
    for token_id in token_ids:
        flags[token_id] = 1
    flags.reverse()
    return int(flags.translate(_DIGITS), 2)  # in base 2 this is linear


def bits_of_words(model: ModelHandle, words: Sequence[int]) -> int:
    """The set whose bits are packed in words of 64. Raises a refusal unless they are those of the vocabulary."""
    size = model.info.vocabulary_size
    num_words = -(-size // 64)
    if len(words) != num_words:
        raise invalid_argument(
            f"{len(words):,} words; the {size:,} tokens of {model.info.name} are {num_words:,} words"
        )
    bits = int.from_bytes(b"".join(word.to_bytes(8, "little") for word in words), "little")
    if bits >> size:
        raise invalid_argument(f"bit {bits.bit_length() - 1} is set; {model.info.name} has {size:,} tokens")
    return bits
