"""The answer of `/v1/chat/completions`: an object, or chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tartlet.errors import TartletError
from tartlet.server.front.openai.answers import Answer, Choice, Piece
from tartlet.server.front.openai.shapes import DONE, About, data_event, error_event, usage_object
from tartlet.server.front.openai.token_text import chat_logprobs


class ChatShape:
    """Writes chat completions. Implements `Shape`.

    Args:
        about: what stands in all parts.
        has_logprobs: they are asked for.
        include_usage: a stream ends with a chunk about usage.
    """

    def __init__(self, about: About, *, has_logprobs: bool, include_usage: bool) -> None:
        self._about = about
        self._has_logprobs = has_logprobs
        self._include_usage = include_usage
        self._num_calls: dict[int, int] = {}  # of choices that have begun

    def whole(self, answer: Answer) -> dict[str, Any]:
        """See `Shape`."""
        choices = [self._choice(index, choice) for index, choice in enumerate(answer.choices)]
        return {**self._head("chat.completion"), "choices": choices, "usage": usage_object(answer.usage)}

    def opening(self) -> Iterator[str]:
        """Nothing: each choice opens with its role."""
        return iter(())

    def of_piece(self, piece: Piece) -> Iterator[str]:
        """See `Shape`."""
        index = piece.index
        if index not in self._num_calls:
            self._num_calls[index] = 0
            yield self._chunk(index, {"role": "assistant", "content": ""})
        if piece.text or piece.logprobs:
            yield self._chunk(index, {"content": piece.text}, piece)
        if piece.call is not None:
            number = self._num_calls[index]
            self._num_calls[index] += 1
            call = self._call(index, number, piece.call, piece.arguments)
            yield self._chunk(index, {"tool_calls": [{"index": number, **call}]})
        elif piece.arguments:
            number = self._num_calls[index] - 1
            delta = {"index": number, "function": {"arguments": piece.arguments}}
            yield self._chunk(index, {"tool_calls": [delta]})
        if piece.finish is not None:
            yield self._chunk(index, {}, piece)

    def closing(self, answer: Answer) -> Iterator[str]:
        """See `Shape`."""
        if self._include_usage:
            usage = usage_object(answer.usage)
            yield data_event({**self._head("chat.completion.chunk"), "choices": [], "usage": usage})
        yield DONE

    def failing(self, error: TartletError) -> Iterator[str]:
        """See `Shape`."""
        yield error_event(error)

    def _choice(self, index: int, choice: Choice) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": choice.text or None, "refusal": None}
        if not choice.calls:
            message["content"] = choice.text
        else:
            message["tool_calls"] = [
                self._call(index, number, call.name, call.arguments) for number, call in enumerate(choice.calls)
            ]
        logprobs = {"content": chat_logprobs(choice.logprobs), "refusal": None} if self._has_logprobs else None
        return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": choice.finish}

    def _chunk(self, index: int, delta: dict[str, Any], piece: Piece | None = None) -> str:
        logprobs = None
        if piece is not None and self._has_logprobs and piece.logprobs:
            logprobs = {"content": chat_logprobs(piece.logprobs), "refusal": None}
        finish = piece.finish if piece is not None and not delta else None
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        usage = {"usage": None} if self._include_usage else {}
        return data_event({**self._head("chat.completion.chunk"), "choices": [choice], **usage})

    def _call(self, index: int, number: int, name: str, arguments: str) -> dict[str, Any]:
        function = {"name": name, "arguments": arguments}
        return {"id": self._about.id("call_", index, number), "type": "function", "function": function}

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": self._about.id("chatcmpl-"),
            "object": kind,
            "created": self._about.created,
            "model": self._about.model,
            "service_tier": None,
            "system_fingerprint": self._about.fingerprint,
        }
