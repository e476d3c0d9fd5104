"""What requests hold and what answers look like, as `/openapi.json` describes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tartlet.server.failures import to_error
from tartlet.server.front.errors import ApiError, error_fields
from tartlet.server.front.live_run import NO_USAGE, LiveRun
from tartlet.server.front.run_events import outcome_fields, usage_fields
from tartlet.server.front.storage import InferletRecord, RunRecord
from tartlet.server.raw_json import RawJson, to_json
from tartlet.server.requests import Control

MOST_NAMED = 16
"""Programs that a run can ask for by name."""
MAX_SEED = 2**64 - 1


class Body(BaseModel):
    """What is common to all bodies: a field that nobody knows is refused."""

    model_config = ConfigDict(extra="forbid")


class ControlBody(Body):
    """A generation that the program, a controller, steers."""

    prompt: str
    config: Any = Field(None, description="The controller's settings.")
    chat: bool = Field(False, description="The prompt is a user's message.")
    max_tokens: int | None = Field(None, ge=1, le=2**31, description="The most tokens of a sequence.")
    temperature: float = Field(0.0, ge=0, le=100, allow_inf_nan=False)

    def to_control(self) -> Control:
        """As whoever runs programs takes it."""
        return Control(
            self.prompt, json_text(self.config, "control.config"), self.chat, self.max_tokens, self.temperature
        )


class RunBody(Body):
    """A run to start."""

    input: Any = Field({}, description="The program's input.")
    limits: dict[Annotated[str, Field(max_length=64)], int | None] = Field(
        {}, max_length=64, description="What the run may use, by the names of `tartlet.Limits`."
    )
    seed: int | None = Field(None, ge=0, le=MAX_SEED, description="Where its random choices come from.")
    wait: bool = Field(True, description="Answer when the run has ended; if not, at once, and the run goes on.")
    stream: bool = Field(False, description="Answer with the run's events as they come, as server-sent events.")
    detached: bool = Field(False, description="The run goes on when the client is gone.")
    programs: list[Annotated[str, Field(max_length=200)]] = Field(
        [], max_length=MOST_NAMED, description="Inferlets that the program can ask for by these names."
    )
    control: ControlBody | None = Field(None, description="Of a controller: the generation that it steers.")


class TagBody(Body):
    """What a name stands for."""

    inferlet: str = Field(max_length=200, description="An id, the first digits of one, or another name.")


class ErrorFields(BaseModel):
    """What is wrong."""

    message: str
    type: str
    param: str | None
    code: str
    hint: str | None = None
    limit: str | None = None
    used: float | None = None
    allowed: float | None = None


class ErrorBody(BaseModel):
    """An error."""

    error: ErrorFields


class Usage(BaseModel):
    """What a run has used."""

    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    shared_pages: int
    page_seconds: float
    first_token_ms: float | None
    tokens_per_second: float | None
    cpu_ms: float
    wall_ms: float
    host_calls: int
    output_bytes: int
    generations: int
    forks: int


class UsageDay(BaseModel):
    """What a tenant's runs that ended on a day have used, in all."""

    tenant: str
    day: str = Field(description="As 2026-12-01, in UTC.")
    runs: int
    failures: int = Field(description="Of these, runs that did not succeed: cancelled ones, too.")
    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    cpu_ms: float
    wall_ms: float
    host_calls: int
    page_seconds: float = Field(description="Pages of the KV cache that were held, times seconds.")


class UsageList(BaseModel):
    """Days on which something was used, the newest first."""

    object: Literal["list"] = "list"
    data: list[UsageDay]


class ServedRequest(BaseModel):
    """A request that an inferlet answers."""

    run: str
    method: str
    path: str = Field(description="Below the inferlet's address, without the query.")
    created: float = Field(description="Seconds since 1970.")


class ServedInferlet(BaseModel):
    """An inferlet that answers HTTP."""

    name: str = Field(description="As it was asked for.")
    object: Literal["served_inferlet"] = "served_inferlet"
    requests: list[ServedRequest]


class ServedList(BaseModel):
    """Inferlets that answer requests now."""

    object: Literal["list"] = "list"
    data: list[ServedInferlet]


class RunShape(BaseModel):
    """A run."""

    id: str
    object: Literal["run"] = "run"
    inferlet: str = Field(description="The id of the inferlet, which may have been deleted.")
    name: str = Field(description="What the inferlet was called.")
    created: float = Field(description="Seconds since 1970.")
    status: Literal["running", "succeeded", "failed", "cancelled"]
    result: Any = Field(None, description="What the program has returned.")
    error: ErrorFields | None = Field(None, description="Why there is no result.")
    note: str | None = Field(None, description="Why a result is not kept.")
    usage: Usage | None = Field(
        None, description="What it has used, so far or in all; null as long as nothing is known."
    )


class ParameterShape(BaseModel):
    """A parameter of an inferlet's input."""

    name: str
    is_required: bool
    annotation: str
    default: str


class InferletShape(BaseModel):
    """An inferlet."""

    id: str = Field(description="SHA-256 of its file.")
    object: Literal["inferlet"] = "inferlet"
    kind: Literal["component", "source"]
    bytes: int
    created: float
    names: list[str]
    is_inferlet: bool
    is_controller: bool
    imports: list[str]
    parameters: list[ParameterShape] | None
    description: str


class RunList(BaseModel):
    """Runs, the newest first."""

    object: Literal["list"] = "list"
    data: list[RunShape]
    has_more: bool


class InferletList(BaseModel):
    """Inferlets, the newest first."""

    object: Literal["list"] = "list"
    data: list[InferletShape]
    has_more: bool


class Deleted(BaseModel):
    """Something that is gone."""

    id: str
    object: Literal["inferlet", "name"]
    deleted: bool = True


def json_text(value: Any, param: str) -> str:
    """A value as JSON, as it is if it is `RawJson`. Raises ApiError for numbers that JSON does not have."""
    try:
        return to_json(value, allow_nan=False)
    except (ValueError, RecursionError):
        raise ApiError(400, "invalid_request", f"{param} cannot be written as JSON", param=param) from None


def live_run_fields(run: LiveRun) -> dict[str, Any]:
    """A run that goes on, or ended not long ago, as JSON."""
    return {
        "id": run.run_id,
        "object": "run",
        "inferlet": run.digest,
        "name": run.program,
        "created": run.created_ms / 1000,
        **outcome_fields(run.outcome),
        "note": None,
        "usage": usage_fields(run.usage_so_far) if run.has_ended or run.usage_so_far != NO_USAGE else None,
    }


def run_record_fields(record: RunRecord) -> dict[str, Any]:
    """A run that is on record, as JSON."""
    return {
        "id": record.run_id,
        "object": "run",
        "inferlet": record.digest,
        "name": record.name,
        "created": record.started_ms / 1000,
        "status": record.state,
        "result": None if record.result_json is None else RawJson(record.result_json),
        "error": None if record.failure is None else error_fields(to_error(record.failure)),
        "note": record.note or None,
        "usage": None if record.usage is None else usage_fields(record.usage),
    }


def inferlet_fields(record: InferletRecord) -> dict[str, Any]:
    """An inferlet as JSON."""
    facts = record.facts
    parameters = None
    if facts.parameters is not None:
        parameters = [
            {"name": each.name, "is_required": each.is_required, "annotation": each.annotation, "default": each.default}
            for each in facts.parameters
        ]
    return {
        "id": record.digest,
        "object": "inferlet",
        "kind": record.kind,
        "bytes": record.num_bytes,
        "created": record.created_ms / 1000,
        "names": [*record.names],
        "is_inferlet": facts.is_inferlet,
        "is_controller": facts.is_controller,
        "imports": [*facts.imports],
        "parameters": parameters,
        "description": facts.description,
    }
