"""What forward passes cost: options scored in one pass against a fork for each, and a long text against its prefill."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.report import Row, at_least, at_most, row
from benchmarks.rounds import Figures, in_turn, measure_rounds
from benchmarks.settings import Settings
from tartlet import models
from tartlet_engine.api import (
    AppendTokens,
    CloseRun,
    CreateContext,
    DiscardForward,
    Done,
    EngineConfig,
    Event,
    FlushContext,
    ForkContext,
    Forward,
    Forwarded,
    FreeContext,
    OpenRun,
    RowRequest,
)
from tartlet_engine.engine import start_engine

ROUNDS = 5
REPEATS = 5  # in a round
PROMPT_LEN = 200
OPTION_LEN = 5
NUM_OPTIONS = 16
TEXT_LEN = 1024


def measure(settings: Settings) -> Iterator[Row]:
    """Give times of each way to find out the same."""
    bench = _Bench(settings)
    times = settings.scaled(REPEATS, 1)

    def round_(number: int) -> Figures:
        return in_turn(
            number,
            {
                "16 options, one pass": lambda: bench.timed(bench.score_in_one_pass, times),
                "16 options, a fork each": lambda: bench.timed(bench.score_in_forks, times),
                "next distribution": lambda: bench.timed(bench.next_distribution, times),
                "1,024 tokens, prefill": lambda: bench.timed(bench.prefill, 1),
                "1,024 tokens, log-probabilities": lambda: bench.timed(bench.logprobs, 1),
            },
        )

    rounds = measure_rounds(lambda number: _with_ratios(round_(number)), settings.scaled(ROUNDS, 1), settings)
    bench.close()
    yield row(rounds, "16 options, one pass", "ms")
    yield row(rounds, "16 options, a fork each", "ms")
    yield row(rounds, "forks / pass", "times", at_least(1))
    yield row(rounds, "next distribution", "ms")
    yield row(rounds, "1,024 tokens, prefill", "ms")
    yield row(rounds, "1,024 tokens, log-probabilities", "ms")
    yield row(rounds, "log-probabilities / prefill", "times", at_most(2.5))


def _with_ratios(figures: Figures) -> Figures:
    return {
        **figures,
        "forks / pass": figures["16 options, a fork each"] / figures["16 options, one pass"],
        "log-probabilities / prefill": figures["1,024 tokens, log-probabilities"] / figures["1,024 tokens, prefill"],
    }


class _Bench:
    """An engine, and a context on it that is computed."""

    def __init__(self, settings: Settings) -> None:
        self._engine = start_engine(
            EngineConfig(
                model_name=settings.model,
                model_path=str(models.pull(settings.model)),
                threads=settings.threads,
                kv_pages=1024,
                prefix_cache=False,
            )
        )
        vocabulary_size = self._engine.models[settings.model].vocabulary_size
        self._text_len = settings.scaled(TEXT_LEN, 32)
        self._tokens = [3 + (7919 * i) % (vocabulary_size - 3) for i in range(PROMPT_LEN + TEXT_LEN)]
        self._events: queue.Queue[Event] = queue.Queue()
        self._engine.listen(lambda events: [self._events.put(event) for event in events])
        self._run_id, self._context_id = self._engine.new_id(), self._engine.new_id()
        self._prompt = tuple(self._tokens[: settings.scaled(PROMPT_LEN, 20)])
        self._send(
            OpenRun(self._run_id),
            CreateContext(self._context_id, self._run_id),
            AppendTokens(self._context_id, self._prompt),
            FlushContext(self._context_id, self._engine.new_id()),
        )
        self._wait_for(Done, 1)
        self._options = [
            tuple(self._tokens[OPTION_LEN * k + PROMPT_LEN : OPTION_LEN * (k + 1) + PROMPT_LEN])
            for k in range(NUM_OPTIONS)
        ]

    def close(self) -> None:
        """Stop the engine, once its books have been checked."""
        self._engine.check_integrity()
        self._send(CloseRun(self._run_id))
        self._engine.close()

    def timed(self, action: Callable[[], None], times: int) -> float:
        """Milliseconds of each of some calls, on average."""
        began = time.perf_counter()
        for _ in range(times):
            action()
        return (time.perf_counter() - began) * 1000 / times

    def score_in_one_pass(self) -> None:
        """All options but their last tokens are branches; rows are asked for the token that follows."""
        tokens: list[int] = []
        parents: list[int] = []
        requests = [RowRequest(-1, token_ids=tuple(option[0] for option in self._options))]
        for option in self._options:
            for place, token in enumerate(option[:-1]):
                parents.append(-1 if place == 0 else len(tokens) - 1)
                requests.append(RowRequest(len(tokens), token_ids=(option[place + 1],)))
                tokens.append(token)
        self._forward(self._context_id, tokens, parents, requests)
        self._wait_for(Forwarded, 1)
        self._send(DiscardForward(self._context_id))

    def score_in_forks(self) -> None:
        """A fork for each option, with a pass that is a line."""
        forks = [self._engine.new_id() for _ in self._options]
        for fork, option in zip(forks, self._options, strict=True):
            self._send(ForkContext(self._context_id, fork, len(self._prompt)))
            requests = [RowRequest(place - 1, token_ids=(token,)) for place, token in enumerate(option)]
            self._forward(fork, option[:-1], None, requests)
        self._wait_for(Forwarded, len(forks))
        self._send(*(FreeContext(fork) for fork in forks))

    def next_distribution(self) -> None:
        """What comes next, from logits that are there."""
        self._forward(self._context_id, (), None, [RowRequest(-1, top=20, entropy=True)])
        self._wait_for(Forwarded, 1)
        self._send(DiscardForward(self._context_id))

    def prefill(self) -> None:
        """A text that is appended and computed, and no more."""
        fork = self._engine.new_id()
        self._send(
            ForkContext(self._context_id, fork, len(self._prompt)),
            AppendTokens(fork, self._text),
            FlushContext(fork, self._engine.new_id()),
        )
        self._wait_for(Done, 1)
        self._send(FreeContext(fork))

    def logprobs(self) -> None:
        """The log-probability of each token of the text."""
        self._send(Forward(self._engine.new_id(), self._context_id, self._text, logprobs=True))
        self._wait_for(Forwarded, 1)
        self._send(DiscardForward(self._context_id))

    @property
    def _text(self) -> tuple[int, ...]:
        return tuple(self._tokens[PROMPT_LEN : PROMPT_LEN + self._text_len])

    def _forward(
        self, context_id: int, tokens: Sequence[int], parents: Sequence[int] | None, requests: Sequence[RowRequest]
    ) -> None:
        tree = None if parents is None else tuple(parents)
        self._send(Forward(self._engine.new_id(), context_id, tuple(tokens), tree, requests=tuple(requests)))

    def _send(self, *commands: Any) -> None:
        self._engine.submit(commands, self._run_id)

    def _wait_for(self, kind: type[Any], count: int) -> None:
        while count:
            count -= isinstance(self._events.get(timeout=600), kind)
