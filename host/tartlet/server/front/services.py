"""What the routes work with; made once for an application."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from fastapi import Depends
from starlette.requests import HTTPConnection

from tartlet import paths
from tartlet.server.compile.client import CompileClient
from tartlet.server.compile.messages import CompileLimits
from tartlet.server.front.admission import Admission
from tartlet.server.front.auth import Authenticate
from tartlet.server.front.blobs import Blobs
from tartlet.server.front.callers import authenticating
from tartlet.server.front.catalogue import Catalogue
from tartlet.server.front.code_store import CodeStore
from tartlet.server.front.compiling import CompilingSandboxes
from tartlet.server.front.known_tenants import KnownTenants
from tartlet.server.front.loop_lag import LoopLag
from tartlet.server.front.metrics import Metrics
from tartlet.server.front.openai.published import PublishedPrograms
from tartlet.server.front.policy import StoredPolicy
from tartlet.server.front.published_programs import StoredPrograms
from tartlet.server.front.runs import RunRegistry
from tartlet.server.front.served import ServedRuns
from tartlet.server.front.storage import Storage
from tartlet.server.sandboxes import Sandboxes
from tartlet.server.settings import Settings


@dataclass(frozen=True, slots=True)
class Services:
    """What the routes work with."""

    settings: Settings
    sandboxes: Sandboxes
    storage: Storage
    catalogue: Catalogue
    runs: RunRegistry
    metrics: Metrics
    authenticate: Authenticate
    published: PublishedPrograms
    loop_lag: LoopLag = field(default_factory=LoopLag)
    served: ServedRuns = field(default_factory=ServedRuns)


def make_services(settings: Settings, storage: Storage, blobs: Blobs, sandboxes: Sandboxes) -> Services:
    """Put them together. The runs are to be closed by the caller, before what they need."""
    metrics, admission = Metrics(), Admission(most_runs=settings.max_runs)
    tenants = KnownTenants(storage, settings.limits)
    code = CodeStore(paths.tenants_code_folder(), settings.code_bytes)
    sandboxes = CompilingSandboxes(sandboxes, _compile_client(settings), tenants.component_limits, code)
    catalogue = Catalogue(storage, blobs, code, sandboxes, tenants, settings.max_upload_bytes)
    policy = StoredPolicy(storage, tenants, admission, metrics)
    return Services(
        settings,
        sandboxes,
        storage,
        catalogue,
        RunRegistry(sandboxes, policy, buffer_bytes=settings.event_buffer_bytes),
        metrics,
        authenticating(storage, tenants, admission),
        StoredPrograms(storage, catalogue),
    )


def _compile_client(settings: Settings) -> CompileClient:
    limits = CompileLimits(
        cpu_s=settings.compile_cpu_s, wall_s=4 * settings.compile_cpu_s, memory_bytes=settings.compile_memory_bytes
    )
    return CompileClient(limits, children=settings.compile_at_once)


async def services_of(connection: HTTPConnection) -> Services:
    """The services of the application that a request came to. Were it no coroutine, FastAPI would use a thread."""
    services: Services = connection.app.state.services
    return services


ServicesParam: TypeAlias = Annotated[Services, Depends(services_of)]
