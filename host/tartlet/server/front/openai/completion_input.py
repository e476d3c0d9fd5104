"""From the body of a completion to the input of the program that carries it out."""

from __future__ import annotations

from typing import Any

from tartlet.server.front.errors import ApiError
from tartlet.server.front.openai.completion_request import CompletionRequest, prompts_of
from tartlet.server.front.openai.generation import check_token, settings_of
from tartlet.server.front.openai.parameters import MOST_CHOICES
from tartlet.server.front.openai.published import Conversation
from tartlet_engine.api import ModelInfo

DEFAULT_MAX_TOKENS = 16
"""As OpenAI's."""


def completion_input(request: CompletionRequest, model: ModelInfo) -> dict[str, Any]:
    """The input of `inferlets/completions.py`. Raises ApiError for what does not go together."""
    prompts, n = prompts_of(request), request.n or 1
    if len(prompts) * n > MOST_CHOICES:
        message = f"{len(prompts)} prompts with {n} choices each: {MOST_CHOICES} choices are allowed"
        raise ApiError(400, "invalid_request", message, param="n")
    if request.best_of not in (None, n):
        raise ApiError(400, "invalid_request", "best_of is only supported if it is equal to n", param="best_of")
    if request.echo and request.logprobs is not None:
        raise ApiError(400, "invalid_request", "echo together with logprobs is not supported", param="echo")
    for prompt in prompts:
        if not isinstance(prompt, str):
            check_token(max(prompt), model, "prompt")
    return {
        "model": model.name,
        "prompts": prompts,
        "echo": bool(request.echo),
        "settings": settings_of(
            request, model, max_tokens=request.max_tokens or DEFAULT_MAX_TOKENS, logprobs=request.logprobs
        ),
    }


def completion_conversation(request: CompletionRequest) -> Conversation:
    """What a published inferlet gets. Raises ApiError for several prompts, or one in tokens."""
    prompts = prompts_of(request)
    if len(prompts) > 1 or not isinstance(prompts[0], str):
        raise ApiError(400, "unsupported", "an inferlet takes one prompt, as text", param="prompt")
    return Conversation([{"role": "user", "content": prompts[0]}], prompts[0], request.n or 1)
