"""Starts the run that carries out a request: of a program in `inferlets`, or of what the tenant has published."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from tartlet.server.front.openai.answers import Answering, EndpointAnswering
from tartlet.server.front.openai.generation import input_json, refuse_unknown
from tartlet.server.front.openai.model_names import Served, default_model, find_model, fingerprint
from tartlet.server.front.openai.parameters import GenerationParameters, Sampling
from tartlet.server.front.openai.programs import Endpoint, endpoint_program
from tartlet.server.front.openai.published import (
    CONFIG,
    CONTROLLER,
    Conversation,
    InferletAnswering,
    Published,
    controller_input,
    inferlet_input,
)
from tartlet.server.front.openai.shapes import About
from tartlet.server.front.services import Services
from tartlet_engine.api import ModelInfo

Body = TypeVar("Body", bound=Sampling)
ToInput: TypeAlias = Callable[[Body, ModelInfo], dict[str, Any]]
ToConversation: TypeAlias = Callable[[Body], Conversation]


async def start(
    services: Services,
    tenant: str,
    body: Body,
    endpoint: Endpoint,
    to_input: ToInput[Body],
    to_conversation: ToConversation[Body],
) -> tuple[Answering, About]:
    """Start the run.

    Args:
        services: of the application.
        tenant: who asks.
        body: the request.
        endpoint: which program carries it out, if the model is one of the engine's.
        to_input: makes that program's input.
        to_conversation: what a published inferlet gets instead.

    Returns:
        The run, and what stands in all parts of its answer.

    Raises:
        ApiError: there is no such model, or something in the request does not go with it or with the rest.
    """
    models = services.sandboxes.models
    found = await find_model(models, services.published, tenant, body.model)
    answering: Answering
    if isinstance(found, Published) and not found.is_controller:
        given = inferlet_input(body, found, to_conversation(body))
        seed = body.seed if isinstance(body, GenerationParameters) else None
        run = await services.runs.start(
            tenant,
            found.program,
            input_json(given),
            seed=None if seed is None else seed % (1 << 64),
            label=found.name,
        )
        answering, mark = InferletAnswering(run), f"fp_{found.program.digest[:12]}"
    else:
        is_steered = isinstance(found, Published)
        model = Served(default_model(models)) if isinstance(found, Published) else found
        refuse_unknown(body, known=(CONFIG,) if is_steered else ())
        given = {**to_input(body, model.model), "adapter": model.adapter}
        programs = {}
        if isinstance(found, Published):
            given = controller_input(given, (body.model_extra or {}).get(CONFIG))
            programs = {CONTROLLER: found.program}
        run = await services.runs.start(
            tenant, endpoint_program(endpoint), input_json(given), programs=programs, label=body.model
        )
        answering, mark = EndpointAnswering(run, body.schema_param), fingerprint(model)
    return answering, About(run.run_id, int(time.time()), body.model, mark)
