"""The model's distribution at one row: log-probabilities, the most likely tokens, entropy."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tartlet_engine.api import TokenLogprob
from tartlet_engine.command_error import CommandError
from tartlet_engine.sampler import largest, no_choice


class Distribution:
    """What a row of logits says, before anything is done to it."""

    def __init__(self, logits: NDArray[np.float32]) -> None:
        """Normalise `logits`, float32[V], which must not change. Cost: one pass of exponentials.

        Raises CommandError `internal` if the greatest is not finite.
        """
        best_id = int(logits.argmax())  # the first NaN, if there is one
        best = logits[best_id]
        if not np.isfinite(best):
            error = no_choice(best, best_id)
            raise CommandError(error.code, error.message, error.hint)
        self._logits = logits
        self._weights = np.exp(logits - best)  # the greatest is 1
        self._sum = float(self._weights.sum(dtype=np.float64))
        self._best = float(best)
        self._normaliser = self._best + float(np.log(self._sum))

    def logprob(self, token_id: int) -> float:
        """Return the natural logarithm of a token's probability."""
        return float(self._logits[token_id]) - self._normaliser

    def logprobs(self, token_ids: Iterable[int]) -> tuple[float, ...]:
        """Return those of several tokens."""
        return tuple(self.logprob(token_id) for token_id in token_ids)

    def top(self, count: int) -> tuple[TokenLogprob, ...]:
        """Return the `count` most likely tokens, the most likely first; of equals, the one of the least id."""
        ids = largest(self._logits, min(count, len(self._logits)))
        ids = ids[np.argsort(-self._logits[ids], kind="stable")][:count]
        return tuple(TokenLogprob(int(token_id), self.logprob(token_id)) for token_id in ids)

    def entropy(self) -> float:
        """Return the entropy in nats: 0 if one token is certain, log V if all are equally likely."""
        surprise = np.where(self._weights > 0, self._best - self._logits, np.float32(0))  # 0 * inf is no number
        weighted = float((self._weights * surprise).sum(dtype=np.float64)) / self._sum
        return max(0.0, float(np.log(self._sum)) + weighted)
