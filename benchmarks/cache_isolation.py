"""Whether a tenant can tell by the time to its first token what another tenant has computed.

Half of the probes are prompts that somebody has generated after just before, half are new. The area under the ROC curve
is the chance that a guess by time is right, 0.5 for none; p is that of the Mann-Whitney test (normal approximation, two
sides). The control is the tenant's own cache, which must be told apart, or the test could not tell anything.
"""

from __future__ import annotations

import math
import queue
import random
from collections.abc import Iterator, Sequence

from benchmarks.report import Row, at_least, row
from benchmarks.rounds import Figures, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose
from tartlet_engine.api import (
    AppendTokens,
    CloseRun,
    CreateContext,
    Event,
    Finished,
    Generate,
    OpenRun,
    Sampling,
    Stop,
)

ROUNDS = 2
PROBES = 200
PROMPT_LEN = 64  # tokens


def measure(settings: Settings) -> Iterator[Row]:
    """Give how well probes tell what another tenant has computed, and what oneself has."""
    prober = _Prober(settings)
    rounds = measure_rounds(prober.round, settings.scaled(ROUNDS, 1), settings, warm_up=0)
    prober.close()
    yield row(rounds, "other, auc", "AUC", label="another tenant's prompts: area under the ROC curve")
    yield row(rounds, "other, p", "p", at_least(0.05), label="another tenant's prompts: Mann-Whitney p")
    yield row(rounds, "own, auc", "AUC", label="one's own prompts (control): area under the ROC curve")
    yield row(rounds, "own, p", "p", label="one's own prompts (control): Mann-Whitney p")


class _Prober:
    """Generates one token after many prompts, on behalf of this tenant or that."""

    def __init__(self, settings: Settings) -> None:
        self._engine = compose.start_engine(settings.model, threads=settings.threads)
        self._events: queue.Queue[Event] = queue.Queue()
        self._engine.listen(lambda events: [self._events.put(event) for event in events])
        self._num_probes = settings.scaled(PROBES, 12)

    def close(self) -> None:
        """Stop the engine."""
        self._engine.close()

    def round(self, number: int) -> Figures:
        """Probe for what another tenant has, then for what is one's own."""
        figures: dict[str, float] = {}
        for whose, owner in (("other", "victim"), ("own", "prober")):
            draw = random.Random(f"{number} {whose}")
            prompts = [tuple(draw.randrange(10, 250) for _ in range(PROMPT_LEN)) for _ in range(self._num_probes)]
            seen = set(draw.sample(range(self._num_probes), self._num_probes // 2))
            hits, misses = [], []
            for probe, prompt in enumerate(prompts):
                if probe in seen:
                    self._first_token_ns(owner, prompt)
                else:  # something else is computed instead, so that what came before is alike
                    self._first_token_ns(owner, tuple(draw.randrange(10, 250) for _ in prompt))
                (hits if probe in seen else misses).append(self._first_token_ns("prober", prompt))
            auc, p = mann_whitney(hits, misses)
            figures |= {f"{whose}, auc": auc, f"{whose}, p": p}
        return figures

    def _first_token_ns(self, tenant: str, prompt: tuple[int, ...]) -> int:
        run_id, context_id = self._engine.new_id(), self._engine.new_id()
        sampling, stop = Sampling(seed=0, temperature=0.0), Stop(max_tokens=1, ignore_eos=True)
        self._engine.submit(
            [
                OpenRun(run_id, tenant),
                CreateContext(context_id, run_id),
                AppendTokens(context_id, prompt),
                Generate(self._engine.new_id(), context_id, sampling, stop),
            ]
        )
        while not isinstance(event := self._events.get(), Finished):
            pass
        self._engine.submit([CloseRun(run_id)])
        return event.usage.first_token_ns


def mann_whitney(lower: Sequence[float], higher: Sequence[float]) -> tuple[float, float]:
    """The chance that one of `lower` is below one of `higher`, and p that both are of one distribution, two-sided.

    H. B. Mann and D. R. Whitney (1947); the normal approximation, without a correction for ties.
    """
    wins = sum((a < b) + 0.5 * (a == b) for a in lower for b in higher)
    count = len(lower) * len(higher)
    deviation = math.sqrt(count * (len(lower) + len(higher) + 1) / 12)
    return wins / count, math.erfc(abs(wins - count / 2) / deviation / math.sqrt(2))
