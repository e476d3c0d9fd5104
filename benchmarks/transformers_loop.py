"""The same work by transformers alone: its own modules, attention and cache, without an engine around them."""

from __future__ import annotations

import time
from typing import Any

import torch
from transformers import AutoModelForCausalLM, DynamicCache
from transformers.generation.streamers import BaseStreamer
from transformers.utils import logging


class TransformersLoop:
    """A model of transformers, as it is loaded by default."""

    def __init__(self, folder: str, dtype: str, threads: int) -> None:
        """Load it. `threads` holds for the calling thread, on which everything else here has to be called."""
        torch.set_num_threads(threads)
        logging.disable_progress_bar()
        self._model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()

    @torch.inference_mode()
    def prefill_seconds(self, prompt: list[int]) -> float:
        """The time that it takes to compute a prompt up to its first token."""
        began = time.monotonic()
        self._next_tokens(torch.tensor([prompt]), DynamicCache(config=self._model.config)).tolist()
        return time.monotonic() - began

    @torch.inference_mode()
    def decode_rate(self, prompts: list[list[int]], num_tokens: int) -> float:
        """Tokens per second after the first of each, by the barest loop: prompts of equal length, greedy, no stops."""
        cache = DynamicCache(config=self._model.config)
        tokens = self._next_tokens(torch.tensor(prompts), cache)
        began = time.monotonic()
        for _ in range(num_tokens - 1):
            tokens = self._next_tokens(tokens, cache)
            tokens.tolist()  # somebody wants to have them
        return len(prompts) * (num_tokens - 1) / (time.monotonic() - began)

    def generate_rate(self, prompts: list[list[int]], num_tokens: int) -> float:
        """Tokens per second after the first of each, by `generate`."""
        ids = torch.tensor(prompts)
        lengths = {"max_new_tokens": num_tokens, "min_new_tokens": num_tokens}
        clock = _Clock()
        self._model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, pad_token_id=0, streamer=clock, **lengths
        )
        first, last = clock.times[1], clock.times[-1]  # the prompt comes before the first token
        return len(prompts) * (num_tokens - 1) / (last - first)

    def _next_tokens(self, ids: torch.Tensor, cache: DynamicCache) -> torch.Tensor:
        """Compute int64[B, T] and choose greedily: int64[B, 1]."""
        output = self._model(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=1)
        chosen: torch.Tensor = output.logits[:, -1].argmax(-1, keepdim=True)
        return chosen


class _Clock(BaseStreamer):  # type: ignore[misc]
    """Notes when `generate` has the prompt, and when it has each step's tokens."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def put(self, value: torch.Tensor) -> None:
        self.times.append(time.monotonic())

    def end(self) -> None:
        pass
