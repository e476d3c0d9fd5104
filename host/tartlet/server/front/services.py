"""What the routes work with; made once for an application."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from fastapi import Depends
from starlette.requests import HTTPConnection

from tartlet.server.front.auth import Authenticate
from tartlet.server.front.openai.published import NothingPublished, PublishedPrograms
from tartlet.server.front.runs import RunRegistry
from tartlet.server.sandboxes import Sandboxes
from tartlet.server.settings import Settings


@dataclass(frozen=True, slots=True)
class Services:
    """What the routes work with."""

    settings: Settings
    sandboxes: Sandboxes
    runs: RunRegistry
    authenticate: Authenticate
    published: PublishedPrograms = field(default_factory=NothingPublished)


def services_of(connection: HTTPConnection) -> Services:
    """The services of the application that a request came to."""
    services: Services = connection.app.state.services
    return services


ServicesParam: TypeAlias = Annotated[Services, Depends(services_of)]
