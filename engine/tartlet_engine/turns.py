"""What each tenant wants of the next step, in the order in which it gets it. Pure Python.

Within a tenant, decodes come first, because someone reads along; prefill takes turns between runs, so that a long
prompt of one does not hold up the others, and within a run goes in the order of arrival.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tartlet_engine.accounts import RunAccount
from tartlet_engine.fairness import DECODE_COST, PREFILL_COST, TenantShare
from tartlet_engine.sequence import Sequence

# Part of the token budget that decodes leave to prefill, if both want all of it.
PREFILL_SHARE = 0.25


class TenantTurns:
    """One tenant's sequences that have something to compute, and what it has taken of the step so far."""

    def __init__(self, share: TenantShare, decodes: list[Sequence], prefills: list[Sequence], is_crowded: bool) -> None:
        """Line up.

        Args:
            share: the tenant's.
            decodes: its sequences that compute the token sampled last.
            prefills: all others of its sequences that have something to compute.
            is_crowded: there are so many decodes that prefill must have its share reserved.
        """
        self.share = share
        self._is_refused = False  # something found too few pages
        self._decodes = deque(sorted(decodes, key=lambda sequence: (sequence.last_served_step, sequence.demand_order)))
        self._prefills = deque(_in_turns(prefills))
        self._is_crowded = is_crowded
        self._num_decode_tokens = 0
        self._num_prefill_tokens = 0
        self._line = self._decodes  # whose turn it is: the first in this line

    @property
    def charged(self) -> float:
        """What the tenant will have been charged, if the step ends here."""
        cost = DECODE_COST * self._num_decode_tokens + PREFILL_COST * self._num_prefill_tokens
        return self.share.counter + cost / self.share.weight

    @property
    def is_backlogged(self) -> bool:
        """Tell whether something has not had its turn, or could not use it."""
        return bool(self._is_refused or self._decodes or self._prefills)

    @property
    def num_decodes(self) -> int:
        """Decodes that are left."""
        return len(self._decodes)

    @property
    def has_two_lines(self) -> bool:
        """Tell whether both decodes and prompts are left."""
        return bool(self._decodes and self._prefills)

    @property
    def is_decode(self) -> bool:
        """Tell whether the one whose turn it is computes a single token, the one sampled last."""
        return self._line is self._decodes

    def choose(self) -> Sequence | None:
        """Decide whose turn it is, and return it; None if nobody is left. Comes before each of the following."""
        if self.has_two_lines:
            prefill_is_due = self._num_prefill_tokens * (1 - PREFILL_SHARE) < self._num_decode_tokens * PREFILL_SHARE
            self._line = self._prefills if self._is_crowded and prefill_is_due else self._decodes
        else:
            self._line = self._decodes or self._prefills
        return self._line[0] if self._line else None

    def take(self, num_tokens: int, step: int, is_last: bool) -> None:
        """Let the one whose turn it is have so many tokens of this step; is it the last that it can use?"""
        sequence = self._line[0]
        if is_last:
            self._line.popleft()
        sequence.last_served_step = self.share.last_served_step = step
        if self.is_decode:
            self._num_decode_tokens += num_tokens
        else:
            self._num_prefill_tokens += num_tokens
            sequence.account.last_prefill_step = step

    def put_back(self) -> None:
        """Go on without the one whose turn it is: it cannot take part in this step."""
        self._line.popleft()
        self._is_refused = True

    def skip(self) -> None:
        """Go on without the one whose turn it is: it has more of the next step."""
        self._line.popleft()


def sort_turns(sequences: Iterable[Sequence], max_batch_tokens: int) -> list[TenantTurns]:
    """Line up the sequences that have something to compute, by tenant."""
    decodes: dict[TenantShare, list[Sequence]] = {}
    prefills: dict[TenantShare, list[Sequence]] = {}
    for sequence in sequences:
        if (num_to_compute := sequence.num_to_compute) == 0:
            sequence.is_waiting = False
        else:
            kind = decodes if num_to_compute == 1 and sequence.is_decoding else prefills
            kind.setdefault(sequence.account.share, []).append(sequence)
    is_crowded = sum(map(len, decodes.values())) > (1 - PREFILL_SHARE) * max_batch_tokens
    return [
        TenantTurns(share, decodes.get(share, []), prefills.get(share, []), is_crowded)
        for share in dict.fromkeys((*decodes, *prefills))
    ]


def _in_turns(sequences: Iterable[Sequence]) -> list[Sequence]:
    """Order sequences by turns between their runs, the run whose last turn is longest ago first."""
    queues: dict[RunAccount, list[Sequence]] = {}
    for sequence in sorted(sequences, key=lambda sequence: sequence.demand_order):
        queues.setdefault(sequence.account, []).append(sequence)
    runs = sorted(queues, key=lambda account: account.last_prefill_step)
    turns = [(turn, sequence) for run in runs for turn, sequence in enumerate(queues[run])]
    return [sequence for _, sequence in sorted(turns, key=lambda entry: entry[0])]
