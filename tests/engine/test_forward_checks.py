"""What a forward pass may ask for: every bound has a typed error that says what was asked and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_engine.api import ErrorCode, Forward, ModelInfo, RowRequest, Sampling
from tartlet_engine.command_error import CommandError
from tartlet_engine.forward_checks import check_forward

SAMPLING = Sampling(seed=1)


def check(token_ids: Any = (1, 2, 3), features: tuple[str, ...] = ("evict",), **options: Any) -> None:
    info = ModelInfo("m", "a", 100, 50, 4, 10, (), features, "float32", "cpu")
    check_forward(Forward(1, 2, tuple(token_ids), **options), info, next_position=40, max_batch_tokens=200)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({"token_ids": (1, 50)}, ErrorCode.INVALID_ARGUMENT, "token_ids[1]"),
        ({"parents": (-1, 0)}, ErrorCode.INVALID_ARGUMENT, "parents must be one for each of 3"),
        ({"positions": (40,)}, ErrorCode.INVALID_ARGUMENT, "positions must be one for each of 3"),
        (
            {"parents": (-1, 1, 0)},
            ErrorCode.INVALID_ARGUMENT,
            "parents[1] must be one of the 1 tokens before it, or the context's last token",
        ),
        ({"parents": (-2, 0, 0)}, ErrorCode.INVALID_ARGUMENT, "parents[0]"),
        ({"token_ids": [1] * 201, "parents": (-1,) * 201}, ErrorCode.INVALID_ARGUMENT, "200 tokens, got 201"),
        ({"token_ids": [1] * 61}, ErrorCode.CONTEXT_OVERFLOW, "101 positions"),
        ({"positions": (41, 42, 42)}, ErrorCode.INVALID_ARGUMENT, "positions[2] must be at least 43"),
        ({"positions": (39, 42, 43)}, ErrorCode.INVALID_ARGUMENT, "positions[0] must be at least 40"),
        ({"positions": (40, 41, 100)}, ErrorCode.CONTEXT_OVERFLOW, "101 positions"),
        ({"positions": (40, 41, 43), "features": ()}, ErrorCode.UNSUPPORTED, "sliding windows"),
        ({"token_ids": ()}, ErrorCode.INVALID_ARGUMENT, "must ask for something"),
        (
            {"requests": (RowRequest(3),)},
            ErrorCode.INVALID_ARGUMENT,
            "requests[0].row must be one of the pass's 3 tokens, or the context's last token",
        ),
        ({"requests": (RowRequest(0), RowRequest(-2))}, ErrorCode.INVALID_ARGUMENT, "requests[1].row"),
        ({"requests": (RowRequest(0, top=-1),)}, ErrorCode.INVALID_ARGUMENT, "negative"),
        ({"requests": (RowRequest(0, sample_index=-1),)}, ErrorCode.INVALID_ARGUMENT, "negative"),
        ({"requests": (RowRequest(0, token_ids=(9, 50)),)}, ErrorCode.INVALID_ARGUMENT, "token_ids[1]"),
        ({"requests": (RowRequest(0, Sampling(seed=1, top_p=2.0)),)}, ErrorCode.INVALID_ARGUMENT, "top_p"),
        ({"requests": (RowRequest(0),) * 513}, ErrorCode.INVALID_ARGUMENT, "513 requests"),
        ({"requests": (RowRequest(0, top=16_385),)}, ErrorCode.INVALID_ARGUMENT, "16,385 log-probabilities"),
        ({"requests": (RowRequest(0, SAMPLING),) * 65}, ErrorCode.INVALID_ARGUMENT, "65 samples"),
        ({"requests": (RowRequest(0, logits=True),) * 9}, ErrorCode.INVALID_ARGUMENT, "9 rows of raw logits"),
    ],
)
def test_what_is_refused(options: dict[str, Any], code: ErrorCode, words: str) -> None:
    """By name, with the bound."""
    with pytest.raises(CommandError) as caught:
        check(**options)
    assert caught.value.error.code is code
    assert words in caught.value.error.message


@pytest.mark.parametrize(
    "options",
    [
        {"token_ids": [1] * 60},
        {"token_ids": [1] * 200, "parents": (-1,) * 200},
        {"token_ids": (), "requests": (RowRequest(-1, top=16_384),)},
        {"positions": (44, 60, 99)},
        {"parents": (-1, -1, 0), "positions": (40, 50, 41)},
        {"positions": (40, 41, 42), "features": ()},
        {"requests": (RowRequest(2, SAMPLING, logits=True),) * 8},
    ],
)
def test_what_is_just_within_the_bounds(options: dict[str, Any]) -> None:
    """It passes."""
    check(**options)
