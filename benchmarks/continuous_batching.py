"""How fast the engine serves several requests at once, against transformers' own continuous batching.

Both take requests of 32 tokens and answer them with tokens chosen greedily, in bfloat16. The time is that from the
requests to the last token, so it has the prompts in it, and for transformers the start of its manager.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterator

import torch
from transformers import AutoModelForCausalLM, GenerationConfig
from transformers.utils import logging as transformers_logging

from benchmarks.direct import DirectCaller, SharedEngine
from benchmarks.report import Row, at_least, row
from benchmarks.rounds import Figures, in_turn, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose, models

PROMPT_LEN = 32
LOADS = ((1, 32), (8, 24), (32, 16))  # requests at once, tokens of each
ROUNDS = 3


def measure(settings: Settings) -> Iterator[Row]:
    """Give tokens per second of both, and their ratio."""
    torch.set_num_threads(settings.threads)
    transformers_logging.disable_progress_bar()
    logging.getLogger("ContinuousBatchingLogger").setLevel(logging.ERROR)
    folder = models.local_path(settings.model)
    peer = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
    engine = SharedEngine(
        compose.start_engine(settings.model, dtype="bfloat16", threads=settings.threads, prefix_cache=False)
    )
    caller = DirectCaller(engine)
    [model] = engine.models.values()
    for num_requests, num_tokens in LOADS[:1] if settings.is_quick else LOADS:

        def serve(number: int, num_requests: int = num_requests, num_tokens: int = num_tokens) -> Figures:
            choose = random.Random(number).choices
            prompts = [choose(range(model.vocabulary_size), k=PROMPT_LEN) for _ in range(num_requests)]
            config = GenerationConfig(max_new_tokens=num_tokens, do_sample=False, eos_token_id=-1, pad_token_id=0)
            seconds = in_turn(
                number,
                {
                    "Tartlet": lambda: caller.generate(prompts, num_tokens).seconds,
                    "transformers": lambda: _serve(peer, prompts, config),
                },
            )
            rates = {name: num_requests * num_tokens / value for name, value in seconds.items()}
            return {**rates, "ratio": rates["Tartlet"] / rates["transformers"]}

        rounds = measure_rounds(serve, settings.scaled(ROUNDS, 1), settings)
        label = f"{num_requests} at once"
        yield row(rounds, "Tartlet", "tokens/s", label=f"{label}: Tartlet on {model.backend}")
        yield row(rounds, "transformers", "tokens/s", label=f"{label}: transformers, generate_batch")
        yield row(rounds, "ratio", "ratio", at_least(5.0), label=f"{label}: Tartlet / transformers")
    engine.close()


def _serve(model: torch.nn.Module, prompts: list[list[int]], config: GenerationConfig) -> float:
    began = time.monotonic()
    answers = model.generate_batch(prompts, generation_config=config, progress_bar=False)
    seconds = time.monotonic() - began
    assert all(len(answer.generated_tokens) == config.max_new_tokens for answer in answers.values())
    return seconds
