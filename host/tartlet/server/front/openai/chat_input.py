"""From the body of a chat completion to the input of the program that carries it out."""

from __future__ import annotations

from typing import Any

from tartlet.server.front.errors import ApiError
from tartlet.server.front.openai.chat_request import (
    AssistantMessage,
    ChatRequest,
    Message,
    NamedTool,
    PlainFormat,
    SchemaFormat,
    text_of,
)
from tartlet.server.front.openai.generation import ANY_OBJECT, settings_of
from tartlet.server.front.openai.published import Conversation
from tartlet_engine.api import ModelInfo


def chat_input(request: ChatRequest, model: ModelInfo) -> dict[str, Any]:
    """The input of `inferlets/chat.py`. Raises ApiError for what does not go together."""
    if request.top_logprobs and not request.logprobs:
        raise _conflict("top_logprobs", "top_logprobs needs logprobs to be true")
    tools = [tool.function.model_dump(exclude_none=True, exclude={"strict"}) for tool in request.tools or ()]
    forced = forced_names(
        tools, request.tool_choice.function.name if isinstance(request.tool_choice, NamedTool) else request.tool_choice
    )
    schema = schema_of(request.response_format)
    if schema is not None and forced:
        raise _conflict("tool_choice", "an answer is a tool's call or of a response_format, not both")
    return {
        "model": model.name,
        "messages": [message_input(message) for message in request.messages],
        "tools": [] if request.tool_choice == "none" else tools,
        "forced": forced,
        "settings": settings_of(
            request,
            model,
            max_tokens=request.max_completion_tokens or request.max_tokens,
            logprobs=(request.top_logprobs or 0) if request.logprobs else None,
            schema=schema,
            prediction=text_of(request.prediction.content) if request.prediction else None,
            has_parallel_calls=request.parallel_tool_calls is not False,
        ),
    }


def chat_conversation(request: ChatRequest) -> Conversation:
    """What a published inferlet gets."""
    messages = [message.model_dump(exclude_none=True) for message in request.messages]
    prompt = next((text_of(message.content) for message in reversed(request.messages) if message.role == "user"), "")
    return Conversation(messages, prompt, request.n or 1)


def forced_names(tools: list[dict[str, Any]], choice: str | None) -> list[str]:
    """The tools of which one must be called; `choice` is one's name, `none`, `auto` or `required`."""
    names = [tool["name"] for tool in tools]
    if len(set(names)) < len(names):
        raise _conflict("tools", "two tools have the same name")
    if choice in (None, "none", "auto"):
        return []
    if choice == "required":
        if not names:
            raise _conflict("tool_choice", "tool_choice is only allowed with tools")
        return names
    if choice not in names:
        raise _conflict("tool_choice", f"there is no tool {choice!r}")
    return [choice]


def schema_of(response_format: PlainFormat | SchemaFormat | None) -> dict[str, Any] | None:
    """The schema that the answer must follow, if any."""
    if isinstance(response_format, SchemaFormat):
        return response_format.json_schema.schema_
    return ANY_OBJECT if response_format is not None and response_format.type == "json_object" else None


def message_input(message: Message) -> dict[str, Any]:
    """A message as the program takes it."""
    role = "system" if message.role == "developer" else message.role
    fields: dict[str, Any] = {"role": role, "text": text_of(message.content)}
    if isinstance(message, AssistantMessage):
        fields["text"] = fields["text"] or message.refusal or ""
        fields["calls"] = [
            {"name": call.function.name, "arguments": call.function.arguments} for call in message.tool_calls or ()
        ]
    return fields


def _conflict(param: str, message: str) -> ApiError:
    return ApiError(400, "invalid_request", message, param=param)
