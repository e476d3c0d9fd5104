"""Generations submitted to an engine directly, without a host and without a program."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tartlet_engine.api import (
    AppendTokens,
    Chunk,
    CloseRun,
    Command,
    CreateContext,
    EngineClient,
    EngineStats,
    EngineStopped,
    Event,
    Failed,
    Finished,
    ForkContext,
    Generate,
    ModelInfo,
    ModelText,
    OpenRun,
    Sampling,
    Stop,
)

Listener = Callable[[list[Event]], None]


def _ignore(events: list[Event]) -> None:
    """Listen to nothing."""


class SharedEngine:
    """An engine client that a host and a `DirectCaller` use by turns: an engine has only one listener.

    Implements `tartlet_engine.api.EngineClient`.
    """

    def __init__(self, client: EngineClient) -> None:
        self._client = client
        self._host_listener: Listener = _ignore
        self.direct_listener: Listener | None = None  # set: it hears of everything, and the host of nothing
        client.listen(self._listen)

    @property
    def models(self) -> Mapping[str, ModelInfo]:
        """As the client's."""
        return self._client.models

    def text(self, model: str) -> ModelText:
        """As the client's."""
        return self._client.text(model)

    def new_id(self) -> int:
        """As the client's."""
        return self._client.new_id()

    def submit(self, commands: Sequence[Command], run_id: int | None = None) -> None:
        """As the client's."""
        self._client.submit(commands, run_id)

    def listen(self, listener: Listener | None) -> None:
        """Set the host's listener."""
        self._host_listener = listener or _ignore

    def stats(self) -> EngineStats:
        """As the client's."""
        return self._client.stats()

    def check_integrity(self) -> None:
        """As the client's."""
        self._client.check_integrity()

    def close(self) -> None:
        """As the client's."""
        self._client.close()

    def _listen(self, events: list[Event]) -> None:
        (self.direct_listener or self._host_listener)(events)


@dataclass(slots=True)
class Timeline:
    """When the tokens of some generations came, in `time.monotonic_ns`."""

    began_ns: int
    ended_ns: int = 0
    arrivals: list[tuple[int, int]] = field(default_factory=list)  # (time, generation), one for each token

    @property
    def seconds(self) -> float:
        """From the submission to the last end."""
        return (self.ended_ns - self.began_ns) / 1e9

    @property
    def first_token_seconds(self) -> float:
        """From the submission to the first token of all."""
        return (self.arrivals[0][0] - self.began_ns) / 1e9

    @property
    def decode_rate(self) -> float:
        """Tokens per second from the moment on at which every generation has its first token."""
        firsts = {generation_id: at_ns for at_ns, generation_id in reversed(self.arrivals)}
        began_ns, ended_ns = max(firsts.values()), self.arrivals[-1][0]
        return sum(at_ns > began_ns for at_ns, _ in self.arrivals) / ((ended_ns - began_ns) / 1e9)


class DirectCaller:
    """Submits generations and waits for their ends."""

    def __init__(self, engine: SharedEngine) -> None:
        self._engine = engine
        self._timeline = Timeline(0)
        self._num_open = 0
        self._problem: Event | None = None
        self._is_done = threading.Event()

    def encode(self, text: str) -> list[int]:
        """Token ids of a text."""
        return self._engine.text(next(iter(self._engine.models))).encode(text)

    def generate(self, prompts: Sequence[Sequence[int]], num_tokens: int) -> Timeline:
        """Generate exactly so many tokens after each prompt, greedily, all at once.

        Raises RuntimeError with the engine's own words if one fails.
        """
        run_id = self._engine.new_id()
        commands: list[Command] = []
        for prompt in prompts:
            context_id = self._engine.new_id()
            commands += [CreateContext(context_id, run_id), AppendTokens(context_id, tuple(prompt))]
            commands.append(_greedy(self._engine.new_id(), context_id, num_tokens))
        return self._carry_out(run_id, commands, len(prompts))

    def best_of(self, prompt: Sequence[int], num_forks: int, num_tokens: int) -> Timeline:
        """Generate several times after the same prompt, in forks of its context. Raises as `generate` does."""
        run_id, base_id = self._engine.new_id(), self._engine.new_id()
        commands: list[Command] = [CreateContext(base_id, run_id), AppendTokens(base_id, tuple(prompt))]
        for _ in range(num_forks):
            child_id = self._engine.new_id()
            commands += [
                ForkContext(base_id, child_id, len(prompt)),
                _greedy(self._engine.new_id(), child_id, num_tokens),
            ]
        return self._carry_out(run_id, commands, num_forks)

    def _carry_out(self, run_id: int, commands: list[Command], num_generations: int) -> Timeline:
        """Submit the commands of a run, and wait for the ends of its generations."""
        self._timeline, self._num_open, self._problem = Timeline(time.monotonic_ns()), num_generations, None
        self._is_done.clear()
        self._engine.direct_listener = self._listen
        self._engine.submit([OpenRun(run_id), *commands])
        self._is_done.wait()
        self._engine.direct_listener = None
        self._engine.submit([CloseRun(run_id)])
        if self._problem is not None:
            raise RuntimeError(f"the generation failed: {self._problem}")
        return self._timeline

    def _listen(self, events: list[Event]) -> None:
        """Called on the engine's thread."""
        now_ns = time.monotonic_ns()
        for event in events:
            if isinstance(event, Chunk):
                self._timeline.arrivals.extend((now_ns, event.generation_id) for _ in event.token_ids)
            elif isinstance(event, Finished):
                self._num_open -= 1
            elif isinstance(event, Failed | EngineStopped):
                self._problem, self._num_open = event, 0
        if self._num_open == 0:
            self._timeline.ended_ns = now_ns
            self._is_done.set()


def _greedy(generation_id: int, context_id: int, num_tokens: int) -> Generate:
    """A generation of exactly so many tokens."""
    stop = Stop(max_tokens=num_tokens, ignore_eos=True)
    return Generate(generation_id, context_id, Sampling(seed=0, temperature=0.0), stop)
