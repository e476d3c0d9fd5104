"""Log-probabilities of tokens in the shapes of the endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tartlet.server.front.openai.answers import TokenEntry


def chat_logprobs(entries: Sequence[TokenEntry]) -> list[dict[str, Any]]:
    """As chat completions and responses have them."""
    return [
        {**_token(token, logprob), "top_logprobs": [_token(*each) for each in top]}
        for _, token, logprob, top in entries
    ]


def completion_logprobs(entries: Sequence[TokenEntry]) -> dict[str, Any]:
    """As completions have them: a list for each figure."""
    return {
        "tokens": [_written(token) for _, token, _, _ in entries],
        "token_logprobs": [logprob for _, _, logprob, _ in entries],
        "top_logprobs": [{_written(token): logprob for token, logprob in top} for _, _, _, top in entries],
        "text_offset": [start for start, _, _, _ in entries],
    }


def _token(token: str, logprob: float) -> dict[str, Any]:
    data = bytes.fromhex(token)
    return {"token": data.decode("utf-8", "replace"), "bytes": list(data), "logprob": logprob}


def _written(token: str) -> str:
    """A token as text; parts of characters as OpenAI writes them."""
    data = bytes.fromhex(token)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)
