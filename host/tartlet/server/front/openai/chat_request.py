"""The body of `POST /v1/chat/completions`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from tartlet.server.front.openai.parameters import (
    MOST_MESSAGES,
    MOST_TOOLS,
    MOST_TOP_LOGPROBS,
    Count,
    FunctionTool,
    GenerationParameters,
    Ignored,
    JsonSchema,
    Name,
    Strict,
    Unsupported,
    text_or_list,
)


class TextPart(Strict):
    """A part of a message."""

    type: Literal["text"]
    text: str


def _check_part(part: Any) -> Any:
    kind = part.get("type") if isinstance(part, dict) else None
    if isinstance(kind, str) and kind != "text":
        raise PydanticCustomError(
            "unsupported", "content of type {kind} is not supported: the models here read text", {"kind": kind[:40]}
        )
    return part


Part: TypeAlias = Annotated[TextPart, BeforeValidator(_check_part)]
Content: TypeAlias = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[Part], Tag("list")], Discriminator(text_or_list)
]


class FunctionCall(Strict):
    """What a tool was called with."""

    name: Name
    arguments: str


class ToolCall(Strict):
    """A call that the assistant has made."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class SystemMessage(Strict):
    """What the model is told to be."""

    role: Literal["system", "developer"]
    content: Content
    name: Ignored = None


class UserMessage(Strict):
    """What the user says."""

    role: Literal["user"]
    content: Content
    name: Ignored = None


class AssistantMessage(Strict):
    """What the model has said: text, tool calls, or both. Clients send back what they got, with its empty fields."""

    role: Literal["assistant"]
    content: Content | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None
    name: Ignored = None
    annotations: Ignored = None
    audio: Unsupported = None
    function_call: Unsupported = None

    @model_validator(mode="after")
    def _has_something(self) -> AssistantMessage:
        if self.content is None and self.refusal is None and not self.tool_calls:
            raise PydanticCustomError("empty", "an assistant's message needs content or tool_calls")
        return self


class ToolMessage(Strict):
    """What a tool has answered."""

    role: Literal["tool"]
    content: Content
    tool_call_id: str


Message: TypeAlias = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]


class Tool(Strict):
    """Something that the model may call."""

    type: Literal["function"]
    function: FunctionTool


class NamedFunction(Strict):
    """A function by its name."""

    name: Name


class NamedTool(Strict):
    """The tool that must be called."""

    type: Literal["function"]
    function: NamedFunction


class PlainFormat(Strict):
    """Text, or any JSON object."""

    type: Literal["text", "json_object"]


class SchemaFormat(Strict):
    """JSON of a schema."""

    type: Literal["json_schema"]
    json_schema: JsonSchema


class Prediction(Strict):
    """A text that is expected, at least in parts. What is generated does not depend on it, only the time it takes."""

    type: Literal["content"]
    content: Content


class ChatRequest(GenerationParameters):
    """The body. What is described as ignored or unsupported is part of OpenAI's interface."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=MOST_MESSAGES)]
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MOST_TOP_LOGPROBS)] | None = None
    response_format: Annotated[PlainFormat | SchemaFormat, Field(discriminator="type")] | None = None
    tools: Annotated[list[Tool], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    prediction: Prediction | None = None
    modalities: list[Literal["text"]] | None = None

    audio: Unsupported = None
    functions: Unsupported = None
    function_call: Unsupported = None
    moderation: Unsupported = None
    reasoning_effort: Unsupported = None
    verbosity: Unsupported = None
    web_search_options: Unsupported = None


def text_of(content: Content | None) -> str:
    """The text of a message's content."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.text for part in content)
