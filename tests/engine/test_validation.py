"""Every number of a command is checked, and the refusal names field, value and range."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tartlet_engine.api import ErrorCode, Generate, Sampling, Speculation, Stop
from tartlet_engine.command_error import CommandError
from tartlet_engine.validation import check_generate, check_token_ids

BAD_SAMPLING: list[tuple[dict[str, Any], str]] = [
    ({"seed": -1}, r"sampling.seed must be 0 to 2\*\*64 - 1, got -1"),
    ({"seed": 2**64}, "sampling.seed"),
    ({"temperature": -0.1}, "sampling.temperature must be 0 to 100, got -0.1"),
    ({"temperature": math.nan}, "sampling.temperature .* got nan"),
    ({"temperature": math.inf}, "sampling.temperature"),
    ({"top_k": -1}, "sampling.top_k must be 0 or greater, got -1"),
    ({"top_p": 0.0}, "sampling.top_p must be greater than 0, up to 1, got 0.0"),
    ({"top_p": 1.5}, "sampling.top_p"),
    ({"top_p": math.nan}, "sampling.top_p"),
    ({"min_p": -0.5}, "sampling.min_p"),
    ({"min_p": 1.5}, "sampling.min_p"),
    ({"repetition_penalty": 0.0}, "sampling.repetition_penalty"),
    ({"repetition_penalty": math.nan}, "sampling.repetition_penalty"),
    ({"presence_penalty": math.inf}, "sampling.presence_penalty"),
    ({"frequency_penalty": 1e9}, "sampling.frequency_penalty"),
    ({"logit_bias": ((5, 1.0), (99, 1.0))}, r"sampling.logit_bias\[1\] must be 0 to 49, got 99"),
    ({"logit_bias": ((5, math.nan),)}, r"sampling.logit_bias\[0\]"),
    ({"logit_bias": ((5, 1.0),) * 1025}, "at most 1024 entries, got 1025 entries"),
]

BAD_STOP: list[tuple[dict[str, Any], str]] = [
    ({"max_tokens": 0}, "stop.max_tokens must be 1 or greater, got 0"),
    ({"token_ids": (3, -7)}, r"stop.token_ids\[1\] must be 0 to 49, got -7"),
    ({"token_ids": (1,) * 1025}, "stop.token_ids must be at most 1024 ids"),
    ({"strings": ("x",) * 17}, "stop.strings must be at most 16 strings, got 17 strings"),
    ({"strings": ("ok", "")}, r"stop.strings\[1\] must be 1 to 1024 characters, got 0 characters"),
    ({"strings": ("x" * 1025,)}, r"stop.strings\[0\]"),
]


@pytest.mark.parametrize(("sampling", "message"), BAD_SAMPLING)
def test_bad_sampling(sampling: dict[str, Any], message: str) -> None:
    """Sampling parameters out of range are refused."""
    command = Generate(1, 2, Sampling(**({"seed": 0} | sampling)))

    with pytest.raises(CommandError, match=message) as caught:
        check_generate(command, 50)
    assert caught.value.error.code == ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize(("stop", "message"), BAD_STOP)
def test_bad_stop(stop: dict[str, Any], message: str) -> None:
    """Stop conditions out of range are refused."""
    with pytest.raises(CommandError, match=message):
        check_generate(Generate(1, 2, Sampling(0), Stop(**stop)), 50)


BAD_SPECULATION: list[tuple[dict[str, Any], str]] = [
    ({"max_draft": 0}, "speculation.max_draft must be 1 to 32, got 0"),
    ({"max_draft": 33}, "speculation.max_draft"),
    ({"ngram": 0}, "speculation.ngram must be 1 to 8, got 0"),
    ({"ngram": 9}, "speculation.ngram"),
    ({"expected_token_ids": (3, 50)}, r"speculation.expected_token_ids\[1\] must be 0 to 49, got 50"),
    ({"expected_token_ids": (3,) * 16_385}, "speculation.expected_token_ids must be at most 16,384 ids"),
]


@pytest.mark.parametrize(("speculation", "message"), BAD_SPECULATION)
def test_bad_speculation(speculation: dict[str, Any], message: str) -> None:
    """Drafts of no length, and expected texts that are too long or not in the vocabulary, are refused."""
    with pytest.raises(CommandError, match=message):
        check_generate(Generate(1, 2, Sampling(0), speculation=Speculation(**speculation)), 50)


@pytest.mark.parametrize("num_logprobs", [-1, 21])
def test_bad_logprobs(num_logprobs: int) -> None:
    """At most 20 log-probabilities can be had."""
    with pytest.raises(CommandError, match=f"num_logprobs must be 0 to 20, got {num_logprobs}"):
        check_generate(Generate(1, 2, Sampling(0), num_logprobs=num_logprobs), 50)


def test_the_limits_themselves_are_allowed() -> None:
    """The greatest and least values of each range pass."""
    sampling = Sampling(2**64 - 1, 100.0, 2**32 - 1, 1.0, 1.0, 100.0, -100.0, 100.0, ((49, -1000.0),) * 1024)
    check_generate(Generate(1, 2, sampling, Stop(1, (0, 49), ("x" * 1024,) * 16), 20), 50)


@pytest.mark.parametrize("token_ids", [(50,), (0, -1), (2**40,)])
def test_ids_outside_the_vocabulary(token_ids: tuple[int, ...]) -> None:
    """The first id that is outside is named with its place."""
    with pytest.raises(CommandError, match=rf"tokens\[{len(token_ids) - 1}\] must be 0 to 49, got {token_ids[-1]}"):
        check_token_ids("tokens", token_ids, 50)
    check_token_ids("tokens", (), 50)
    check_token_ids("tokens", (0, 49), 50)
