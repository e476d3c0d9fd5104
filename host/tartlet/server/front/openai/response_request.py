"""The body of `POST /v1/responses`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from tartlet.server.front.openai.chat_request import PlainFormat
from tartlet.server.front.openai.parameters import (
    MOST_MESSAGES,
    MOST_TOOLS,
    MOST_TOP_LOGPROBS,
    Count,
    FunctionTool,
    Ignored,
    JsonSchema,
    Name,
    Sampling,
    Strict,
    Unsupported,
    text_or_list,
)

_TEXT_PARTS = ("input_text", "output_text", "text", "refusal")


class InputPart(Strict):
    """A part of a message: of the user, or of an answer that is sent back."""

    type: Literal["input_text", "output_text", "text", "refusal"]
    text: str = ""
    refusal: str = ""
    annotations: Ignored = None
    logprobs: Ignored = None
    prompt_cache_breakpoint: Ignored = None


def _check_part(part: Any) -> Any:
    kind = part.get("type") if isinstance(part, dict) else None
    if isinstance(kind, str) and kind not in _TEXT_PARTS:
        raise PydanticCustomError(
            "unsupported", "content of type {kind} is not supported: the models here read text", {"kind": kind[:40]}
        )
    return part


Parts: TypeAlias = Annotated[InputPart, BeforeValidator(_check_part)]
InputContent: TypeAlias = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[Parts], Tag("list")], Discriminator(text_or_list)
]


class InputMessage(Strict):
    """A message."""

    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: InputContent
    id: Ignored = None
    status: Ignored = None
    phase: Ignored = None


class InputCall(Strict):
    """A call that the model has made."""

    type: Literal["function_call"]
    call_id: str
    name: Name
    arguments: str
    id: Ignored = None
    status: Ignored = None
    namespace: Unsupported = None
    caller: Ignored = None


class InputCallOutput(Strict):
    """What a call has given."""

    type: Literal["function_call_output"]
    call_id: str
    output: InputContent
    id: Ignored = None
    status: Ignored = None
    caller: Ignored = None


def _kind_of(item: Any) -> str:
    kind = item.get("type", "message") if isinstance(item, dict) else getattr(item, "type", "message")
    return kind if isinstance(kind, str) else ""


InputItem: TypeAlias = Annotated[
    Annotated[InputMessage, Tag("message")]
    | Annotated[InputCall, Tag("function_call")]
    | Annotated[InputCallOutput, Tag("function_call_output")],
    Discriminator(_kind_of),
]


class ResponseTool(FunctionTool):
    """Something that the model may call: functions alone."""

    type: Literal["function"]


class ResponseNamedTool(Strict):
    """The tool that must be called."""

    type: Literal["function"]
    name: Name


class TextSettings(Strict):
    """What the text is like."""

    format: Annotated[PlainFormat | JsonSchema, Field(discriminator="type")] | None = None
    verbosity: Unsupported = None


class ResponseStreamOptions(Strict):
    """What a stream has besides."""

    include_obfuscation: Ignored = None


class ResponseRequest(Sampling):
    """The body. What is described as ignored or unsupported is part of OpenAI's interface."""

    schema_param: ClassVar[str] = "text.format"

    input: Annotated[
        Annotated[str, Tag("text")]
        | Annotated[Annotated[list[InputItem], Field(min_length=1, max_length=MOST_MESSAGES)], Tag("list")],
        Discriminator(text_or_list),
    ]
    instructions: str | None = None
    max_output_tokens: Count | None = None
    text: TextSettings | None = None
    tools: Annotated[list[ResponseTool], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: Literal["none", "auto", "required"] | ResponseNamedTool | None = None
    parallel_tool_calls: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MOST_TOP_LOGPROBS)] | None = None
    include: list[Literal["message.output_text.logprobs"]] | None = None
    truncation: Literal["disabled"] | None = None
    stream_options: ResponseStreamOptions | None = None

    background: Unsupported = None
    context_management: Unsupported = None
    conversation: Unsupported = None
    max_tool_calls: Unsupported = None
    moderation: Unsupported = None
    previous_response_id: Unsupported = None
    prompt: Unsupported = None
    reasoning: Unsupported = None


def input_text_of(content: InputContent) -> str:
    """The text of an item's content."""
    return content if isinstance(content, str) else "".join(part.text or part.refusal for part in content)
