"""The application that clients talk to, put together of its routes."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware

import tartlet
from tartlet.server.front.auth import Guard
from tartlet.server.front.errors import add_error_handlers
from tartlet.server.front.openai import routes as openai
from tartlet.server.front.request_log import RequestLog
from tartlet.server.front.routes import description, figures, health, inferlets, runs, serve, session, usage
from tartlet.server.front.scarcity import on_os_error
from tartlet.server.front.services import Services

ROUTERS: tuple[APIRouter, ...] = (
    description.router,
    health.router,
    inferlets.router,
    runs.router,
    session.router,
    serve.router,
    usage.router,
    openai.router,
)
"""Each route in them declares what it needs (`auth.needs`, `auth.public`), or is refused."""


def create_app(services: Services, routers: Iterable[APIRouter] = ROUTERS) -> FastAPI:
    """Make the application.

    Args:
        services: what its routes work with; they stay the caller's to close.
        routers: the routes.
    """
    app = FastAPI(
        title="Tartlet",
        version=tartlet.__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.services = services
    figures_router = figures.open_router if services.settings.public_metrics else figures.router
    for router in (*routers, figures_router):  # flat, so that the guard finds the route of a request in one list
        app.router.routes.extend(router.routes)
    app.user_middleware = [
        Middleware(RequestLog, metrics=services.metrics),
        Middleware(
            Guard,
            routes=app.router.routes,
            authenticate=services.authenticate,
            max_body_bytes=services.settings.max_body_bytes,
        ),
    ]
    add_error_handlers(app)
    app.add_exception_handler(OSError, on_os_error)
    return app
