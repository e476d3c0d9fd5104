"""The body of `POST /v1/completions`."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import Discriminator, Field, Tag

from tartlet.server.front.openai.parameters import (
    MOST_CHOICES,
    MOST_TOP_LOGPROBS,
    GenerationParameters,
    Unsupported,
)

MOST_PROMPT_TOKENS = 1 << 20

PromptText: TypeAlias = Annotated[str, Field(min_length=1)]
TokenId: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 32)]
PromptTokens: TypeAlias = Annotated[list[TokenId], Field(min_length=1, max_length=MOST_PROMPT_TOKENS)]


def _kind_of(prompt: Any) -> str:
    if isinstance(prompt, str):
        return "text"
    first = prompt[0] if isinstance(prompt, list) and prompt else None
    return {int: "tokens", list: "lists of tokens"}.get(type(first), "texts")


Prompts: TypeAlias = Annotated[
    Annotated[PromptText, Tag("text")]
    | Annotated[PromptTokens, Tag("tokens")]
    | Annotated[Annotated[list[PromptText], Field(min_length=1, max_length=MOST_CHOICES)], Tag("texts")]
    | Annotated[Annotated[list[PromptTokens], Field(min_length=1, max_length=MOST_CHOICES)], Tag("lists of tokens")],
    Discriminator(_kind_of),
]


class CompletionRequest(GenerationParameters):
    """The body. What is described as ignored or unsupported is part of OpenAI's interface."""

    prompt: Prompts
    logprobs: Annotated[int, Field(ge=0, le=MOST_TOP_LOGPROBS)] | None = None
    echo: bool | None = None
    best_of: Annotated[int, Field(ge=1, le=MOST_CHOICES)] | None = None

    suffix: Unsupported = None


def prompts_of(request: CompletionRequest) -> list[str] | list[list[int]]:
    """Its prompts, each as text or as tokens."""
    prompt = request.prompt
    if isinstance(prompt, str):
        return [prompt]
    if isinstance(prompt[0], int):
        return [prompt]
    return prompt
