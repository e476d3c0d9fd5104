"""The arguments of `generate`, checked against the ranges that wit/ gives, as the engine's messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tartlet.runtime.model import ModelHandle
from tartlet.runtime.refusal import invalid_argument
from tartlet_engine.api import Sampling, Speculation, Stop

# As the engine allows: what is refused here is told at once, by the contract's names.
MAX_TEMPERATURE = 100
MAX_PENALTY = 100
MIN_REPETITION_PENALTY = 0.001
"""Not allowed itself."""
MAX_BIAS = 1000
MAX_LOGPROBS = 20
MAX_LOGIT_BIAS = 1024
MAX_STOP_TOKENS = 1024
MAX_STOP_STRINGS = 16
MAX_STOP_STRING = 1024
"""Characters."""
MAX_DRAFT = 32
"""Tokens guessed for one step."""
MAX_NGRAM = 8
MAX_EXPECTED = 16_384
"""Tokens of an expected text."""


def to_sampling(record: dict[str, Any], model: ModelHandle, draw_seed: Callable[[], int]) -> Sampling:
    """The sampling message of a `sampling` record. Raises a refusal that names the field."""
    _check_range("temperature", record["temperature"], 0, MAX_TEMPERATURE)
    _check_range("top-p", record["top-p"], 0, 1)
    if record["top-p"] == 0:
        raise invalid_argument("top-p is 0; it must be above 0", "For the most likely token, use temperature 0.")
    _check_range("min-p", record["min-p"], 0, 1)
    repetition = record["repetition-penalty"]
    if not MIN_REPETITION_PENALTY < repetition <= MAX_PENALTY:
        allowed = f"above {MIN_REPETITION_PENALTY:g}, up to {MAX_PENALTY}"
        raise invalid_argument(f"repetition-penalty is {repetition:g}; it must be {allowed}", "1 is none.")
    _check_range("presence-penalty", record["presence-penalty"], -MAX_PENALTY, MAX_PENALTY)
    _check_range("frequency-penalty", record["frequency-penalty"], -MAX_PENALTY, MAX_PENALTY)
    bias = record["logit-bias"]
    _check_count("logit-bias", len(bias), MAX_LOGIT_BIAS)
    model.check_tokens([token_id for token_id, _ in bias], "logit-bias token")
    for token_id, value in bias:
        _check_range(f"logit-bias of token {token_id}", value, -MAX_BIAS, MAX_BIAS)
    seed = record["seed"]
    return Sampling(
        seed=draw_seed() if seed is None else seed,
        temperature=record["temperature"],
        top_k=record["top-k"],
        top_p=record["top-p"],
        min_p=record["min-p"],
        repetition_penalty=repetition,
        presence_penalty=record["presence-penalty"],
        frequency_penalty=record["frequency-penalty"],
        logit_bias=tuple(bias),
    )


def to_stop(record: dict[str, Any], model: ModelHandle) -> Stop:
    """The stop message of a `stop-conditions` record. Raises a refusal that names the field."""
    if record["max-tokens"] == 0:
        raise invalid_argument("max-tokens is 0; a generation has at least one token")
    _check_count("stop tokens", len(record["tokens"]), MAX_STOP_TOKENS)
    model.check_tokens(record["tokens"], "stop token")
    strings = record["strings"]
    _check_count("stop strings", len(strings), MAX_STOP_STRINGS)
    if "" in strings:
        raise invalid_argument("a stop string is empty")
    _check_count("characters of a stop string", max(map(len, strings), default=0), MAX_STOP_STRING)
    return Stop(
        max_tokens=record["max-tokens"],
        token_ids=tuple(record["tokens"]),
        strings=tuple(strings),
        ignore_eos=record["ignore-eos"],
    )


def to_num_logprobs(record: dict[str, Any]) -> int | None:
    """How many log-probabilities an `options` record asks for. Raises a refusal if too many."""
    num_logprobs: int | None = record["log-probabilities"]
    if num_logprobs is not None:
        _check_count("log-probabilities", num_logprobs, MAX_LOGPROBS)
    return num_logprobs


def to_speculation(record: dict[str, Any], model: ModelHandle) -> Speculation | None:
    """The speculation message of an `options` record. Raises a refusal that names the field."""
    speculation = record["speculation"]
    if speculation is None:
        return None
    _check_whole("speculation's max-draft", speculation["max-draft"], MAX_DRAFT)
    _check_whole("speculation's ngram", speculation["ngram"], MAX_NGRAM)
    _check_count("expected tokens", len(speculation["expected"]), MAX_EXPECTED)
    model.check_tokens(speculation["expected"], "expected token")
    return Speculation(
        max_draft=speculation["max-draft"],
        ngram=speculation["ngram"],
        expected_token_ids=tuple(speculation["expected"]),
    )


def _check_whole(name: str, value: int, high: int) -> None:
    if not 1 <= value <= high:
        raise invalid_argument(f"{name} is {value:,}; it must be between 1 and {high}")


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # never true of NaN
        raise invalid_argument(f"{name} is {value:g}; it must be between {low} and {high}")


def _check_count(name: str, count: int, allowed: int) -> None:
    if count > allowed:
        raise invalid_argument(f"{count:,} {name}; at most {allowed:,} can be given")
