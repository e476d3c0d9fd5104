"""Logits processors: the penalties and biases that change a row of logits before a token is chosen from it.

One `LogitsProcessor` per generation that asks for any: the step tells it each token, and the sampler applies it.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tartlet_engine.api import Sampling


def needs_processor(sampling: Sampling) -> bool:
    """Whether anything changes the logits before temperature."""
    return (
        sampling.repetition_penalty != 1.0
        or sampling.presence_penalty != 0.0
        or sampling.frequency_penalty != 0.0
        or bool(sampling.logit_bias)
    )


@dataclass(frozen=True, slots=True)
class Penalties:
    """What a generation's penalties do to the logits of some tokens, as tables."""

    token_ids: NDArray[np.int64]  # distinct
    repetition: float  # positive logits are divided by it, negative ones multiplied
    subtracted: NDArray[np.float32]  # then this is subtracted


class LogitsProcessor:
    """Penalties and bias of one generation, with the counts of the tokens that they depend on.

    Args:
        sampling: validated: ids within the vocabulary, finite numbers.
        context_ids: the tokens in the context when the generation begins.

    Thread: one at a time.
    """

    def __init__(self, sampling: Sampling, context_ids: Sequence[int]) -> None:
        self._repetition = sampling.repetition_penalty
        self._presence = sampling.presence_penalty
        self._frequency = sampling.frequency_penalty
        # The same token may be named twice: its biases add up.
        biases: dict[int, float] = {}
        for token_id, bias in sampling.logit_bias:
            biases[token_id] = biases.get(token_id, 0.0) + bias
        self._biases = biases
        self._bias_ids = np.array(list(biases), dtype=np.int64)
        self._bias = np.array(list(biases.values()), dtype=np.float32)
        self._in_context = Counter(context_ids) if self._repetition != 1.0 else Counter()
        penalised = list(self._in_context)
        self._position = {token_id: position for position, token_id in enumerate(penalised)}
        room = max(64, 2 * len(penalised))
        self._ids = np.zeros(room, dtype=np.int64)  # distinct ids; only the first len(self._position) are set
        self._ids[: len(penalised)] = penalised
        self._counts = np.zeros(room, dtype=np.float32)  # how often each of them was generated
        self._is_gone = np.zeros(room, dtype=np.bool_)  # it is neither in the context nor generated any more
        self._num_gone = 0

    def note(self, token_id: int) -> None:
        """Count a generated token. Cost: constant, amortised."""
        position = self._position.setdefault(token_id, len(self._position))
        if position == len(self._ids):
            self._ids = np.concatenate([self._ids, np.zeros_like(self._ids)])
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
            self._is_gone = np.concatenate([self._is_gone, np.zeros_like(self._is_gone)])
        self._ids[position] = token_id
        self._counts[position] += 1
        if self._num_gone:
            self._num_gone -= int(self._is_gone[position])
            self._is_gone[position] = False

    def forget(self, token_id: int, *, was_generated: bool) -> None:
        """Take back a generated token, or one of the context when the generation began. Cost: constant."""
        position = self._position.get(token_id)
        if position is None:
            return  # of the context, and nothing is made of those
        if was_generated:
            self._counts[position] -= 1
        elif self._repetition != 1.0:
            self._in_context[token_id] -= 1
        if self._counts[position] == 0 and self._in_context[token_id] == 0:
            self._is_gone[position] = True
            self._num_gone += 1

    def copy(self) -> LogitsProcessor:
        """Return one with the same counts, which goes on by itself."""
        other = copy.copy(self)
        other._in_context, other._position = self._in_context.copy(), self._position.copy()
        other._ids, other._counts, other._is_gone = self._ids.copy(), self._counts.copy(), self._is_gone.copy()
        return other

    def biased(
        self, biases: Sequence[tuple[int, float]], boosts: Sequence[tuple[NDArray[np.uint32], float]]
    ) -> LogitsProcessor:
        """Return one that adds these biases as well, and shares its counts with this one: for one row only.

        Args:
            biases: tokens, and what is added to the logit of each.
            boosts: masks, of `uint32[ceil(V / 32)]`, and what is added to the logits of all of their tokens.
        """
        other = copy.copy(self)
        sums = self._biases.copy()
        for token_id, bias in biases:
            sums[token_id] = sums.get(token_id, 0.0) + bias
        other._bias_ids = np.array(list(sums), dtype=np.int64)
        other._bias = np.array(list(sums.values()), dtype=np.float32)
        if boosts:
            total = np.zeros(32 * len(boosts[0][0]), dtype=np.float32)
            total[other._bias_ids] = other._bias
            for mask, boost in boosts:
                bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
                np.add(total, np.float32(boost), out=total, where=bits.view(np.bool_))
            other._bias_ids = np.flatnonzero(total)
            other._bias = total[other._bias_ids]
        return other

    def apply(self, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the row with penalties and bias applied, in this order: repetition, presence and frequency, bias.

        Repetition divides positive logits and multiplies negative ones, for every token of the context and of the
        generation (Keskar et al. 2019, CTRL, section 4.1). Presence and frequency subtract from what was generated.

        Shape: `float32[V]` to `float32[V]`; the argument is not written to.

        Cost: a copy of the row, and the number of distinct tokens counted.
        """
        result = logits.copy()
        table = self.penalties()
        if len(table.token_ids):
            values = result[table.token_ids]
            if table.repetition != 1.0:
                values = np.where(values > 0, values / table.repetition, values * table.repetition)
            result[table.token_ids] = values - table.subtracted
        result[self._bias_ids] += self._bias
        return result

    def penalties(self) -> Penalties:
        """Return what the penalties do now, for whoever applies them elsewhere."""
        ids = self._ids[: len(self._position)]
        counts = self._counts[: len(ids)]
        if self._num_gone:
            stays = ~self._is_gone[: len(ids)]
            ids, counts = ids[stays], counts[stays]
        subtracted = np.float32(self._presence) * (counts > 0) + np.float32(self._frequency) * counts
        return Penalties(ids, self._repetition, subtracted)

    def bias(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the tokens, each once, to whose logits something is added after the penalties, and what."""
        return self._bias_ids, self._bias
