"""The routes of OpenAI's interface."""

from __future__ import annotations

import time

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tartlet.server.front.auth import CallerParam, needs
from tartlet.server.front.errors import json_response
from tartlet.server.front.following import unless_gone
from tartlet.server.front.openai.chat_input import chat_conversation, chat_input
from tartlet.server.front.openai.chat_request import ChatRequest
from tartlet.server.front.openai.chat_shape import ChatShape
from tartlet.server.front.openai.completion_input import completion_conversation, completion_input
from tartlet.server.front.openai.completion_request import CompletionRequest
from tartlet.server.front.openai.completion_shape import CompletionShape
from tartlet.server.front.openai.model_names import Served, default_model, find_model, model_object, served
from tartlet.server.front.openai.published import Published
from tartlet.server.front.openai.replies import reply
from tartlet.server.front.openai.response_input import response_conversation, response_input
from tartlet.server.front.openai.response_request import ResponseRequest
from tartlet.server.front.openai.response_shape import ResponseShape
from tartlet.server.front.openai.starting import start
from tartlet.server.front.services import ServicesParam

router = APIRouter(tags=["openai"])

STARTED = int(time.time())
"""What models say that they were created at."""


@router.post("/v1/chat/completions", summary="Answer a conversation")
@needs("openai")
async def create_chat_completion(
    body: ChatRequest, request: Request, services: ServicesParam, caller: CallerParam
) -> Response:
    """As OpenAI's, for the server's models, and for inferlets and controllers that the tenant has published."""
    starting = start(services, caller.tenant, body, "chat", chat_input, chat_conversation)
    answering, about = await unless_gone(request, starting)
    shape = ChatShape(about, has_logprobs=bool(body.logprobs), include_usage=body.wants_usage)
    return await reply(request, answering, shape, is_streaming=bool(body.stream), ping_s=services.settings.ping_s)


@router.post("/v1/completions", summary="Go on with a text")
@needs("openai")
async def create_completion(
    body: CompletionRequest, request: Request, services: ServicesParam, caller: CallerParam
) -> Response:
    """As OpenAI's, for the server's models, and for inferlets and controllers that the tenant has published."""
    starting = start(services, caller.tenant, body, "completions", completion_input, completion_conversation)
    answering, about = await unless_gone(request, starting)
    shape = CompletionShape(about, has_logprobs=body.logprobs is not None, include_usage=body.wants_usage)
    return await reply(request, answering, shape, is_streaming=bool(body.stream), ping_s=services.settings.ping_s)


@router.post("/v1/responses", summary="Answer a conversation")
@needs("openai")
async def create_response(
    body: ResponseRequest, request: Request, services: ServicesParam, caller: CallerParam
) -> Response:
    """As OpenAI's, without what needs responses to be stored: none are."""
    starting = start(services, caller.tenant, body, "chat", response_input, response_conversation)
    answering, about = await unless_gone(request, starting)
    return await reply(
        request, answering, ResponseShape(about, body), is_streaming=bool(body.stream), ping_s=services.settings.ping_s
    )


@router.get("/v1/models", summary="List what can be named as a model")
@needs("openai", "inferlets:read")
async def list_models(services: ServicesParam, caller: CallerParam) -> Response:
    """The server's models and adapters, and what the tenant has published. Before the model is loaded: 503."""
    models = services.sandboxes.models
    default_model(models)  # a list without them would be taken for all that there is
    published = await services.published.all_of(caller.tenant)
    found: list[Served | Published] = [*served(models), *published]
    return json_response({"object": "list", "data": [model_object(model, STARTED) for model in found]})


@router.get("/v1/models/{name:path}", summary="Tell of a model")
@needs("openai", "inferlets:read")
async def retrieve_model(name: str, services: ServicesParam, caller: CallerParam) -> Response:
    """One of those that the list has."""
    found = await find_model(services.sandboxes.models, services.published, caller.tenant, name)
    return json_response(model_object(found, STARTED))
