"""What requests have in common: how it is generated, and what is refused by name."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

MOST_CHOICES = 128
"""Of a request, over all its prompts."""
MOST_STOPS = 16
MOST_STOP_CHARS = 1024
MOST_BIASES = 1024
MOST_TOP_LOGPROBS = 20
MOST_TOOLS = 128
MOST_MESSAGES = 1024
MOST_SCHEMA_BYTES = 256 * 1024

_TOKEN_ID = re.compile(r"\d{1,10}", re.ASCII)


class Strict(BaseModel):
    """An object of which every field is known, and has its very type: no text that looks like a number."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


def _refuse(value: Any) -> None:
    if value is not None and value is not False:
        raise PydanticCustomError("unsupported", "this parameter is not supported here")


def text_or_list(value: Any) -> str:
    """Tell which of the two a value is meant to be, so that an error is about that one."""
    return "text" if isinstance(value, str) else "list"


def _check_biases(biases: dict[str, float]) -> dict[str, float]:
    for token in biases:
        if not _TOKEN_ID.fullmatch(token):
            raise PydanticCustomError("token_id", "keys must be token ids, as text")
    return biases


def _as_list(stop: str | list[str]) -> list[str]:
    return [stop] if isinstance(stop, str) else stop


Unsupported: TypeAlias = Annotated[None, BeforeValidator(_refuse)]
"""A parameter of OpenAI's that is refused if it is set."""
Ignored: TypeAlias = Any
"""A parameter of OpenAI's that makes no difference here."""
StopText: TypeAlias = Annotated[str, Field(min_length=1, max_length=MOST_STOP_CHARS)]
Stop: TypeAlias = Annotated[
    Annotated[StopText, Tag("text")] | Annotated[Annotated[list[StopText], Field(max_length=MOST_STOPS)], Tag("list")],
    Discriminator(text_or_list),
    AfterValidator(_as_list),
]
Count: TypeAlias = Annotated[int, Field(ge=1, lt=1 << 31)]
Bias: TypeAlias = Annotated[float, Field(ge=-100, le=100)]
Biases: TypeAlias = Annotated[dict[str, Bias], Field(max_length=MOST_BIASES), AfterValidator(_check_biases)]
Name: TypeAlias = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
"""Of a function, or a schema."""


class StreamOptions(Strict):
    """What a stream has besides."""

    include_usage: bool | None = None
    include_obfuscation: Ignored = None


class Sampling(BaseModel):
    """How the next token is chosen, and when it ends: parameters of all endpoints, some of which OpenAI does not have.

    Fields that no endpoint knows are kept: a published inferlet may have declared them.
    """

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)
    schema_param: ClassVar[str] = "response_format"
    """The parameter that has the schema of the answer."""

    model: Annotated[str, Field(min_length=1, max_length=512)]
    stream: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0.001, le=100)] | None = None

    user: Ignored = None
    metadata: Ignored = None
    store: Ignored = None
    service_tier: Ignored = None
    safety_identifier: Ignored = None
    prompt_cache_key: Ignored = None
    prompt_cache_retention: Ignored = None


class GenerationParameters(Sampling):
    """Of chat completions and completions."""

    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] | None = None
    stop: Stop | None = None
    seed: Annotated[int, Field(ge=-(1 << 63), lt=1 << 64)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    logit_bias: Biases | None = None
    max_tokens: Count | None = None
    stream_options: StreamOptions | None = None

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with what was used."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)


class FunctionTool(Strict):
    """A function that the model may call."""

    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    """JSON schema of its arguments."""
    strict: bool | None = None


class JsonSchema(Strict):
    """A schema that the answer follows."""

    name: Name
    description: str | None = None
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    strict: bool | None = None
    type: Literal["json_schema"] = "json_schema"
