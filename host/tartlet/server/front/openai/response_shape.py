"""The answer of `/v1/responses`: an object, or events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tartlet.errors import TartletError
from tartlet.server.front.errors import error_fields
from tartlet.server.front.openai.answers import Answer, Piece, TokenEntry, Usage
from tartlet.server.front.openai.response_request import ResponseRequest
from tartlet.server.front.openai.shapes import About
from tartlet.server.front.openai.token_text import chat_logprobs


class ResponseShape:
    """Writes responses. Implements `Shape`. The output is a message, if there is text, and the calls.

    Args:
        about: what stands in all parts.
        request: the body, parts of which the response repeats.
    """

    def __init__(self, about: About, request: ResponseRequest) -> None:
        self._about = about
        self._request = request
        self._has_logprobs = request.top_logprobs is not None or bool(request.include)
        self._number = 0  # of the next event
        self._items: list[dict[str, Any]] = []  # of a stream
        self._message: int | None = None  # the message's index among them, while it is written
        self._call: int | None = None  # that of the call that is written
        self._finish = "stop"

    def whole(self, answer: Answer) -> dict[str, Any]:
        """See `Shape`."""
        (choice,) = answer.choices
        calls = [
            self._call_item(number, call.name, call.arguments, "completed") for number, call in enumerate(choice.calls)
        ]
        has_message = bool(choice.text) or not calls
        status = "incomplete" if choice.finish == "length" else "completed"
        message = [self._message_item(choice.text, choice.logprobs, status)] if has_message else []
        return self._response(status, [*message, *calls], usage=answer.usage)

    def opening(self) -> Iterator[str]:
        """See `Shape`."""
        yield self._event("response.created", response=self._response("in_progress", []))
        yield self._event("response.in_progress", response=self._response("in_progress", []))

    def of_piece(self, piece: Piece) -> Iterator[str]:
        """See `Shape`."""
        if piece.text or piece.logprobs:
            yield from self._add_text(piece.text, piece.logprobs or [])
        if piece.call is not None:
            yield from self._begin_call(piece.call)
        if piece.arguments and self._call is not None:
            self._items[self._call]["arguments"] += piece.arguments
            place = self._place(self._call)
            yield self._event("response.function_call_arguments.delta", **place, delta=piece.arguments)
        if piece.finish is not None:
            self._finish = piece.finish

    def closing(self, answer: Answer) -> Iterator[str]:
        """See `Shape`."""
        if not self._items:
            yield from self._add_text("", [])
        status = "incomplete" if self._finish == "length" else "completed"
        yield from self._end_call()
        yield from self._end_message(status)
        yield self._event(f"response.{status}", response=self._response(status, self._items, usage=answer.usage))

    def failing(self, error: TartletError) -> Iterator[str]:
        """See `Shape`."""
        fields = error_fields(error)
        told = {"code": fields["code"], "message": fields["message"]}
        yield self._event("response.failed", response=self._response("failed", self._items, error=told))

    def _add_text(self, text: str, entries: list[TokenEntry]) -> Iterator[str]:
        if self._message is None:
            self._message = len(self._items)
            item = self._message_item("", [], "in_progress")
            self._items.append(item)
            added = {**item, "content": []}
            yield self._event("response.output_item.added", output_index=self._message, item=added)
            yield self._event("response.content_part.added", **self._part_place(), part=item["content"][0])
        part = self._items[self._message]["content"][0]
        logprobs = chat_logprobs(entries) if self._has_logprobs else []
        part["text"] += text
        part["logprobs"] += logprobs
        if text or logprobs:
            yield self._event("response.output_text.delta", **self._part_place(), delta=text, logprobs=logprobs)

    def _end_message(self, status: str) -> Iterator[str]:
        if self._message is None:
            return
        item = self._items[self._message]
        item["status"] = status
        part = item["content"][0]
        place = self._part_place()
        yield self._event("response.output_text.done", **place, text=part["text"], logprobs=part["logprobs"])
        yield self._event("response.content_part.done", **place, part=part)
        yield self._event("response.output_item.done", output_index=self._message, item=item)

    def _begin_call(self, name: str) -> Iterator[str]:
        yield from self._end_call()
        num_calls = sum(item["type"] == "function_call" for item in self._items)
        self._call = len(self._items)
        self._items.append(self._call_item(num_calls, name, "", "in_progress"))
        yield self._event("response.output_item.added", output_index=self._call, item=self._items[self._call])

    def _end_call(self) -> Iterator[str]:
        if self._call is None:
            return
        item, place = self._items[self._call], self._place(self._call)
        item["status"] = "completed"
        yield self._event(
            "response.function_call_arguments.done", **place, name=item["name"], arguments=item["arguments"]
        )
        yield self._event("response.output_item.done", output_index=self._call, item=item)
        self._call = None

    def _place(self, index: int) -> dict[str, Any]:
        return {"item_id": self._items[index]["id"], "output_index": index}

    def _part_place(self) -> dict[str, Any]:
        assert self._message is not None
        return {**self._place(self._message), "content_index": 0}

    def _event(self, kind: str, **fields: Any) -> str:
        text = json.dumps({"type": kind, "sequence_number": self._number, **fields}, separators=(",", ":"))
        self._number += 1
        return f"event: {kind}\ndata: {text}\n\n"

    def _message_item(self, text: str, entries: list[TokenEntry], status: str) -> dict[str, Any]:
        logprobs = chat_logprobs(entries) if self._has_logprobs else []
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}
        about = {"id": self._about.id("msg_"), "type": "message", "status": status, "role": "assistant"}
        return {**about, "content": [part]}

    def _call_item(self, number: int, name: str, arguments: str, status: str) -> dict[str, Any]:
        ids = {"id": self._about.id("fc_", number), "call_id": self._about.id("call_", 0, number)}
        return {**ids, "type": "function_call", "status": status, "name": name, "arguments": arguments}

    def _response(
        self,
        status: str,
        output: list[dict[str, Any]],
        *,
        usage: Usage | None = None,
        error: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        request = self._request
        repeated = request.model_dump(mode="json", by_alias=True, include={"text", "tools", "tool_choice"})
        text = repeated["text"] or {}
        return {
            "id": self._about.id("resp_"),
            "object": "response",
            "created_at": self._about.created,
            "status": status,
            "background": False,
            "error": error,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": request.instructions,
            "max_output_tokens": request.max_output_tokens,
            "metadata": request.metadata if isinstance(request.metadata, dict) else {},
            "model": self._about.model,
            "output": output,
            "parallel_tool_calls": request.parallel_tool_calls is not False,
            "previous_response_id": None,
            "reasoning": {"effort": None, "summary": None},
            "service_tier": None,
            "store": False,
            "temperature": 1.0 if request.temperature is None else request.temperature,
            "text": {"format": text.get("format") or {"type": "text"}},
            "tool_choice": repeated["tool_choice"] or "auto",
            "tools": repeated["tools"] or [],
            "top_logprobs": request.top_logprobs or 0,
            "top_p": 1.0 if request.top_p is None else request.top_p,
            "truncation": "disabled",
            "usage": None if usage is None else _usage_object(usage),
        }


def _usage_object(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
