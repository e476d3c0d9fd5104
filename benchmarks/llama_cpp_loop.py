"""The same work by llama.cpp, through its C interface: batches of sequences, a unified cache, greedy by NumPy.

Needs `llama-cpp-python`, built from source for this machine; benchmarks/README.md has the line.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import llama_cpp
import numpy

MAX_BATCH = 512  # tokens of one call
MAX_SEQUENCES = 33


def convert(source: Path, target: Path, file_type: str) -> Path:
    """Write a GGUF file with its weights in another format: "BF16", "F16" or "Q8_0"."""
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{file_type}")
    params.allow_requantize = True
    if llama_cpp.llama_model_quantize(str(source).encode(), str(target).encode(), params):
        raise RuntimeError(f"llama.cpp cannot convert {source} to {file_type}")
    return target


class LlamaCppLoop:
    """A model of llama.cpp with its cache."""

    def __init__(self, path: Path, threads: int, num_tokens: int) -> None:
        """Load a GGUF file, and make a cache of `num_tokens` tokens that all sequences share."""
        self._model = llama_cpp.llama_model_load_from_file(str(path).encode(), llama_cpp.llama_model_default_params())
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = num_tokens, MAX_BATCH, MAX_BATCH
        params.n_seq_max, params.kv_unified = MAX_SEQUENCES, True
        params.n_threads = params.n_threads_batch = threads
        self._context = llama_cpp.llama_init_from_model(self._model, params)
        if not self._model or not self._context:
            raise RuntimeError(f"llama.cpp cannot load {path}")
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._vocabulary_size = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self._model))
        self._batch = llama_cpp.llama_batch_init(MAX_BATCH, 0, 1)

    def close(self) -> None:
        """Free everything."""
        llama_cpp.llama_batch_free(self._batch)
        llama_cpp.llama_free(self._context)
        llama_cpp.llama_model_free(self._model)

    def prefill_seconds(self, prompt: list[int]) -> float:
        """The time that it takes to compute a prompt up to its first token."""
        llama_cpp.llama_memory_clear(self._memory, True)
        began = time.monotonic()
        self._compute_prompt(0, prompt)
        return time.monotonic() - began

    def decode_rate(self, prompts: list[list[int]], num_tokens: int) -> float:
        """Tokens per second after the first of each, greedy, no stops: prompts of equal length."""
        llama_cpp.llama_memory_clear(self._memory, True)
        tokens = [self._compute_prompt(sequence, prompt) for sequence, prompt in enumerate(prompts)]
        began = time.monotonic()
        self._decode(tokens, len(prompts[0]), num_tokens - 1)
        return len(prompts) * (num_tokens - 1) / (time.monotonic() - began)

    def best_of_seconds(self, prompt: list[int], num_sequences: int, num_tokens: int) -> float:
        """The time for a prompt that is computed once, and then continued several times."""
        llama_cpp.llama_memory_clear(self._memory, True)
        began = time.monotonic()
        first = self._compute_prompt(0, prompt)
        for sequence in range(1, num_sequences):
            llama_cpp.llama_memory_seq_cp(self._memory, 0, sequence, -1, -1)
        self._decode([first] * num_sequences, len(prompt), num_tokens - 1)
        return time.monotonic() - began

    def _compute_prompt(self, sequence: int, prompt: list[int]) -> int:
        """Compute a sequence's prompt, and choose its first token."""
        for start in range(0, len(prompt), MAX_BATCH):
            piece = prompt[start : start + MAX_BATCH]
            is_last = start + len(piece) == len(prompt)
            for row, token in enumerate(piece):
                self._set_row(row, token, start + row, sequence, is_last and row == len(piece) - 1)
            self._compute(len(piece))
        return self._choose(1)[0]

    def _decode(self, tokens: list[int], position: int, num_steps: int) -> None:
        """Continue the sequences 0, 1, ... from the tokens chosen last."""
        for step in range(num_steps):
            for sequence, token in enumerate(tokens):
                self._set_row(sequence, token, position + step, sequence, True)
            self._compute(len(tokens))
            tokens = self._choose(len(tokens))

    def _set_row(self, row: int, token: int, position: int, sequence: int, wants_logits: bool) -> None:
        batch: Any = self._batch
        batch.token[row], batch.pos[row], batch.logits[row] = token, position, wants_logits
        batch.n_seq_id[row], batch.seq_id[row][0] = 1, sequence

    def _compute(self, num_rows: int) -> None:
        self._batch.n_tokens = num_rows
        if llama_cpp.llama_decode(self._context, self._batch):
            raise RuntimeError("llama.cpp cannot compute a batch: its cache is too small")

    def _choose(self, num_rows: int) -> list[int]:
        logits = llama_cpp.llama_get_logits(self._context)
        table = numpy.ctypeslib.as_array(logits, shape=(num_rows, self._vocabulary_size))
        chosen: list[int] = table.argmax(axis=1).tolist()
        return chosen


@llama_cpp.llama_log_callback
def _silent(_level: int, _text: bytes, _user_data: object) -> None:
    """Log nothing."""


llama_cpp.llama_log_set(_silent, None)
