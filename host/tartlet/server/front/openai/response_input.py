"""From the body of a response to the input of the program that carries it out, which is that of chat completions."""

from __future__ import annotations

from typing import Any

from tartlet.server.front.errors import ApiError
from tartlet.server.front.openai.chat_input import forced_names
from tartlet.server.front.openai.generation import ANY_OBJECT, settings_of
from tartlet.server.front.openai.parameters import JsonSchema
from tartlet.server.front.openai.published import Conversation
from tartlet.server.front.openai.response_request import (
    InputCall,
    InputCallOutput,
    InputItem,
    ResponseNamedTool,
    ResponseRequest,
    input_text_of,
)
from tartlet_engine.api import ModelInfo


def response_input(request: ResponseRequest, model: ModelInfo) -> dict[str, Any]:
    """The input of `inferlets/chat.py`. Raises ApiError for what does not go together."""
    tools = [tool.model_dump(exclude_none=True, exclude={"strict", "type"}) for tool in request.tools or ()]
    choice = request.tool_choice
    forced = forced_names(tools, choice.name if isinstance(choice, ResponseNamedTool) else choice)
    schema = schema_of(request)
    if schema is not None and forced:
        message = "an answer is a tool's call or of a text.format, not both"
        raise ApiError(400, "invalid_request", message, param="tool_choice")
    wants_logprobs = request.top_logprobs is not None or bool(request.include)
    return {
        "model": model.name,
        "messages": response_messages(request),
        "tools": [] if choice == "none" else tools,
        "forced": forced,
        "settings": settings_of(
            request,
            model,
            max_tokens=request.max_output_tokens,
            logprobs=(request.top_logprobs or 0) if wants_logprobs else None,
            schema=schema,
            has_parallel_calls=request.parallel_tool_calls is not False,
        ),
    }


def response_conversation(request: ResponseRequest) -> Conversation:
    """What a published inferlet gets."""
    messages = response_messages(request)
    prompt = next((message["text"] for message in reversed(messages) if message["role"] == "user"), "")
    return Conversation([_chat_message(message) for message in messages], prompt)


def schema_of(request: ResponseRequest) -> dict[str, Any] | None:
    """The schema that the answer must follow, if any."""
    text_format = request.text.format if request.text is not None else None
    if isinstance(text_format, JsonSchema):
        return text_format.schema_
    return ANY_OBJECT if text_format is not None and text_format.type == "json_object" else None


def response_messages(request: ResponseRequest) -> list[dict[str, Any]]:
    """The conversation as the program takes it. Calls belong to the assistant's message before them, if any."""
    messages: list[dict[str, Any]] = []
    if request.instructions:
        messages.append({"role": "system", "text": request.instructions})
    items: list[InputItem] | str = request.input
    if isinstance(items, str):
        return [*messages, {"role": "user", "text": items}]
    for item in items:
        if isinstance(item, InputCall):
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "text": "", "calls": []})
            messages[-1]["calls"].append({"name": item.name, "arguments": item.arguments})
        elif isinstance(item, InputCallOutput):
            messages.append({"role": "tool", "text": input_text_of(item.output)})
        else:
            role = "system" if item.role == "developer" else item.role
            messages.append({"role": role, "text": input_text_of(item.content)})
            if role == "assistant":
                messages[-1]["calls"] = []
    return messages


def _chat_message(message: dict[str, Any]) -> dict[str, Any]:
    """A message as a chat completion has it."""
    calls = [{"type": "function", "function": call} for call in message.get("calls", ())]
    fields = {"role": message["role"], "content": message["text"]}
    return {**fields, "tool_calls": calls} if calls else fields
