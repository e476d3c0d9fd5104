"""What guessing the next tokens saves where a text is copied, and what it costs where nothing is.

All outputs are compared with those of the same generations without guesses: they must be equal.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.report import Row, at_least, at_most, row
from benchmarks.rounds import Figures, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose
from tartlet_engine.api import (
    AppendTokens,
    Chunk,
    CloseRun,
    CreateContext,
    EngineClient,
    Event,
    Failed,
    Finished,
    Generate,
    OpenRun,
    Sampling,
    Speculation,
    Stop,
)

ROUNDS = 5
NUM_TOKENS = 120
NUM_SEQUENCES = 8

RECIPE = (
    "To make bread you need flour, water, salt and yeast. Mix 500 grams of flour with 350 grams of water, 10 "
    "grams of salt and 3 grams of dry yeast. Knead the dough for ten minutes, until it is smooth, and let it rise "
    "in a covered bowl for an hour. Fold it, shape a loaf, and put the loaf into a floured basket. After another "
    "hour heat the oven to 240 degrees, turn the loaf out onto a hot tray, cut the top, and bake it for forty "
    "minutes. It is done when it sounds hollow. Let it cool on a rack before you slice it, because the crumb is "
    "still setting while the loaf is warm."
)
REPEATED = f"{RECIPE}\n\n{RECIPE}\n\n{RECIPE[:110]}"  # whoever goes on with it copies
REWRITE = f"Repeat this text word for word:\n\n{RECIPE}"
STORY = "Write a long story about a baker and her dragon."
SAMPLED = Sampling(seed=7, temperature=1.0)
GREEDY = Sampling(seed=0, temperature=0.0)


def measure(settings: Settings) -> Iterator[Row]:
    """Give rates with and without guesses, and tokens that come of one forward pass."""
    client = compose.start_engine(settings.model, threads=settings.threads, prefix_cache=False)
    bench = _Bench(client, settings.scaled(NUM_TOKENS, 24))
    rounds = measure_rounds(bench.round, settings.scaled(ROUNDS, 1), settings)
    client.close()
    for name, goal in (("copy", 2.0), ("copy, 8 sequences", 1.5), ("rewrite", 1.3)):
        yield row(rounds, f"{name}: without", "tokens/s")
        yield row(rounds, f"{name}: with", "tokens/s")
        yield row(rounds, f"{name}: tokens a pass", "tokens")
        yield row(rounds, f"{name}: accepted", "%")
        yield row(rounds, f"{name}: with / without", "ratio", at_least(goal))
    yield row(rounds, "story: without", "tokens/s")
    yield row(rounds, "story: with", "tokens/s")
    yield row(rounds, "story: accepted", "%")
    yield row(rounds, "story: time with / without", "ratio", at_most(1.03))


@dataclass(slots=True)
class _Outcome:
    """What some generations gave together."""

    tokens: list[list[int]]
    seconds: float  # from the first token to the last
    num_passes: int  # forward passes, prompts' included
    num_drafted: int
    num_accepted: int

    @property
    def rate(self) -> float:
        """Tokens per second, without the first ones."""
        return (sum(map(len, self.tokens)) - len(self.tokens)) / self.seconds


class _Bench:
    """Pairs of generations, with and without guesses."""

    def __init__(self, client: EngineClient, num_tokens: int) -> None:
        self._client = client
        self._events: queue.Queue[tuple[float, Event]] = queue.Queue()
        client.listen(lambda events: [self._events.put((time.perf_counter(), event)) for event in events])
        self._num_tokens = num_tokens
        (name,) = client.models
        self._text = client.text(name)

    def round(self, number: int) -> Figures:
        """Generate everything once with and once without, in alternating order."""
        expected, repeated = tuple(self._text.encode(RECIPE)), self._text.encode(REPEATED)
        pairs = {
            "copy": self._pair([repeated], GREEDY, Speculation(), number),
            "copy, 8 sequences": self._pair([repeated] * NUM_SEQUENCES, GREEDY, Speculation(), number),
            "rewrite": self._pair([self._chat(REWRITE)], GREEDY, Speculation(expected_token_ids=expected), number),
            "story": self._pair([self._chat(STORY)], SAMPLED, Speculation(), number),
        }
        figures: dict[str, float] = {}
        for name, (plain, drafted) in pairs.items():
            figures[f"{name}: without"] = plain.rate
            figures[f"{name}: with"] = drafted.rate
            num_each = sum(map(len, drafted.tokens)) / len(drafted.tokens)
            figures[f"{name}: tokens a pass"] = num_each / drafted.num_passes
            figures[f"{name}: accepted"] = 100 * drafted.num_accepted / max(1, drafted.num_drafted)
            figures[f"{name}: with / without"] = drafted.rate / plain.rate
            figures[f"{name}: time with / without"] = plain.rate / drafted.rate
        return figures

    def _chat(self, prompt: str) -> list[int]:
        return self._text.chat_message([], "user", prompt) + self._text.chat_cue(["user"])

    def _pair(
        self, prompts: Sequence[list[int]], sampling: Sampling, speculation: Speculation, number: int
    ) -> tuple[_Outcome, _Outcome]:
        """The same without and with guesses. Raises RuntimeError unless the tokens are the same."""
        order = [None, speculation] if number % 2 else [speculation, None]
        outcomes = {each is None: self._generate(prompts, sampling, each) for each in order}
        plain, drafted = outcomes[True], outcomes[False]
        if plain.tokens != drafted.tokens:
            raise RuntimeError(f"guesses have changed what follows {self._text.decode(prompts[0])!r}")
        return plain, drafted

    def _generate(self, prompts: Sequence[list[int]], sampling: Sampling, speculation: Speculation | None) -> _Outcome:
        run_id = self._client.new_id()
        commands: list[Any] = [OpenRun(run_id)]
        tokens: dict[int, list[int]] = {}
        for prompt in prompts:
            context_id, generation_id = self._client.new_id(), self._client.new_id()
            commands += [CreateContext(context_id, run_id), AppendTokens(context_id, tuple(prompt))]
            stop = Stop(max_tokens=self._num_tokens, ignore_eos=True)
            commands.append(Generate(generation_id, context_id, sampling, stop, speculation=speculation))
            tokens[generation_id] = []
        passes = self._client.stats().steps
        self._client.submit(commands)
        num_drafted = num_accepted = num_finished = 0
        first_at = at = 0.0
        while num_finished < len(tokens):
            at, event = self._events.get()
            if isinstance(event, Chunk):
                first_at = first_at or at
                tokens[event.generation_id] += event.token_ids
            elif isinstance(event, Finished):
                num_finished += 1
                num_drafted += event.usage.draft_tokens
                num_accepted += event.usage.accepted_tokens
            elif isinstance(event, Failed):
                raise RuntimeError(f"a generation failed: {event.error.message}")
        self._client.submit([CloseRun(run_id)])
        self._client.check_integrity()
        passes = self._client.stats().steps - passes
        return _Outcome(list(tokens.values()), at - first_at, passes, num_drafted, num_accepted)
