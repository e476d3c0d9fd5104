"""What a request asks of generations, as the input of the programs that carry it out."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from tartlet.server.front.errors import ApiError
from tartlet.server.front.openai.parameters import MOST_SCHEMA_BYTES, GenerationParameters, Sampling
from tartlet_engine.api import ModelInfo

ANY_OBJECT = {"type": "object"}
"""The schema of `json_object`."""
SMALLEST_TOP_P = 1e-6
"""Instead of 0, which leaves only the most likely token, too."""


def settings_of(
    request: Sampling,
    model: ModelInfo,
    *,
    max_tokens: int | None,
    logprobs: int | None = None,
    schema: dict[str, Any] | None = None,
    prediction: str | None = None,
    has_parallel_calls: bool = True,
) -> dict[str, Any]:
    """The `settings` of the programs' input, with OpenAI's defaults.

    Raises ApiError for what the model has not, or what does not go together.
    """
    own = request if isinstance(request, GenerationParameters) else None
    if own and own.stream_options is not None and not own.stream:
        message = "stream_options is only allowed with stream"
        raise ApiError(400, "invalid_request", message, param="stream_options")
    seed = own.seed if own else None
    return {
        "n": (own.n if own else None) or 1,
        "stream": bool(request.stream),
        "max_tokens": None if max_tokens is None else min(max_tokens, model.context_len),
        "stop": (own.stop if own else None) or [],
        "logprobs": logprobs,
        "schema": None if schema is None else _schema_text(schema, request.schema_param),
        "prediction": prediction,
        "parallel_calls": has_parallel_calls,
        "controller": None,
        "config": None,
        "sampler": {
            "temperature": _given(request.temperature, 1.0),
            "top_p": max(_given(request.top_p, 1.0), SMALLEST_TOP_P),
            "top_k": request.top_k or 0,
            "min_p": request.min_p or 0.0,
            "repetition_penalty": _given(request.repetition_penalty, 1.0),
            "presence_penalty": (own.presence_penalty if own else None) or 0.0,
            "frequency_penalty": (own.frequency_penalty if own else None) or 0.0,
            "logit_bias": _checked_biases((own.logit_bias if own else None) or {}, model),
            "seed": None if seed is None else seed % (1 << 64),
        },
    }


def input_json(value: dict[str, Any]) -> str:
    """A program's input as JSON text. Raises ApiError for text that is no Unicode."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ApiError(400, "invalid_request", "a text holds half of a surrogate pair") from None
    return text


def check_token(token_id: int, model: ModelInfo, param: str) -> None:
    """Raise ApiError for a token that the model has not."""
    if token_id >= model.vocabulary_size:
        message = f"{param}: the token {token_id:,} is outside the vocabulary: ids are below {model.vocabulary_size:,}"
        raise ApiError(400, "invalid_request", message, param=param)


def refuse_unknown(request: Sampling, known: Collection[str] = ()) -> None:
    """Raise ApiError for a parameter that is neither OpenAI's nor one of those known."""
    for name in request.model_extra or ():
        if name in known:
            continue
        message = f"Unrecognized request argument supplied: {name[:100]}"
        raise ApiError(400, "unknown_parameter", message, param=name[:100])


def _given(value: float | None, default: float) -> float:
    return default if value is None else value


def _checked_biases(biases: dict[str, float], model: ModelInfo) -> dict[str, float]:
    for token in biases:
        check_token(int(token), model, "logit_bias")
    return biases


def _schema_text(schema: dict[str, Any], param: str) -> str:
    text = json.dumps(schema, ensure_ascii=False)
    if len(text) > MOST_SCHEMA_BYTES:
        message = f"the schema has {len(text):,} characters, at most {MOST_SCHEMA_BYTES:,} are allowed"
        raise ApiError(400, "invalid_request", message, param=param)
    return text
