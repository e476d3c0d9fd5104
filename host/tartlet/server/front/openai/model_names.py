"""What a model's name in a request stands for: a model of the engine, or what the tenant has published."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

import tartlet
from tartlet.errors import UnavailableError
from tartlet.server.front.errors import ApiError
from tartlet.server.front.openai.published import Published, PublishedPrograms
from tartlet_engine.api import ModelInfo

OWNER = "tartlet"


class Served(msgspec.Struct, frozen=True):
    """A model of the engine, as it is or with a LoRA adapter."""

    model: ModelInfo
    adapter: str | None = None

    @property
    def name(self) -> str:
        """By which clients ask for it: an adapter's name stands for the model with it."""
        return self.adapter or self.model.name


def served(models: Sequence[ModelInfo]) -> list[Served]:
    """All that the engine serves: its models, then these with their adapters."""
    return [*map(Served, models), *(Served(model, adapter) for model in models for adapter in model.adapters)]


async def find_model(
    models: Sequence[ModelInfo], published: PublishedPrograms, tenant: str, name: str
) -> Served | Published:
    """What the name stands for; the engine's models go first. What is published can have its tenant's name before it.

    Raises: ApiError if it stands for nothing; UnavailableError before the engine is there.
    """
    for each in served(models):
        if each.name == name:
            return each
    found = await published.find(tenant, name.removeprefix(f"{tenant}/"))
    if found is None:
        default_model(models)
        message = f"The model {name[:200]!r} does not exist."
        raise ApiError(404, "model_not_found", message, hint="GET /v1/models lists what there is.", param="model")
    return found


def default_model(models: Sequence[ModelInfo]) -> ModelInfo:
    """The engine's default model. Raises UnavailableError before it is there."""
    if not models:
        raise UnavailableError("the model is not loaded yet", hint="Ask again in a while; see /health/ready.")
    return models[0]


def fingerprint(served: Served) -> str:
    """Changes with whatever may change what the same seed gives."""
    model = served.model
    parts = (tartlet.__version__, model.name, model.architecture, model.dtype, model.backend, served.adapter or "")
    return "fp_" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def model_object(model: Served | Published, created: int) -> dict[str, Any]:
    """A model as `/v1/models` has it; some fields are not OpenAI's. `created`: when the server started."""
    if isinstance(model, Published):
        kind = "controller" if model.is_controller else "inferlet"
        fields: dict[str, Any] = {"kind": kind, "description": model.facts.description}
        return {"id": model.name, "object": "model", "created": int(model.created), "owned_by": "tenant", **fields}
    fields = {"kind": "adapter" if model.adapter else "model", "context_length": model.model.context_len}
    if model.adapter:
        fields["parent"] = model.model.name
    return {"id": model.name, "object": "model", "created": created, "owned_by": OWNER, **fields}
