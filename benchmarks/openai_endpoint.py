"""What OpenAI's interface costs: a completion through the server's application, by `Host.run`, and by the engine alone.

With keys, tenants, limits and the ledger of usage, all in one process: neither sockets between the server's processes
nor the network are in it. The endpoint's time is that of a client: from a request in JSON to the last of its answer.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

import tartlet
from benchmarks.direct import DirectCaller, SharedEngine
from benchmarks.hosting import OpenHost, open_host
from benchmarks.report import Row, at_most, row
from benchmarks.rounds import Figures, Rounds, between, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose
from tartlet.languages.language import ProgramSource
from tartlet.server.front.app import create_app
from tartlet.server.front.blobs import Blobs
from tartlet.server.front.openai.completion_input import completion_input
from tartlet.server.front.openai.completion_request import CompletionRequest
from tartlet.server.front.openai.programs import endpoint_source
from tartlet.server.front.services import make_services
from tartlet.server.front.storage import open_storage
from tartlet.server.host_sandboxes import HostSandboxes
from tartlet.server.settings import Settings as ServerSettings

ROUNDS = 15
REAL_TOKENS = 128
PROMPT = "The three primary colours are"


def measure(settings: Settings) -> Iterator[Row]:
    """Give milliseconds per token, and what the endpoint's are more."""
    real = _measure_model(settings.model, settings.scaled(REAL_TOKENS, 8), settings)
    yield row(real, "direct", "ms/token", label=f"{settings.model}: engine alone")
    for way in ("inferlet, whole", "inferlet, streamed", "endpoint, whole", "endpoint, streamed"):
        yield row(real, way, "ms/token", label=f"{settings.model}: {way}")
    yield row(real, "overhead whole", "%", at_most(5.0), label="endpoint over inferlet, whole")
    yield row(real, "overhead streamed", "%", at_most(5.0), label="endpoint over inferlet, streamed")
    start = _measure_model("tiny", 1, settings)
    for way in ("inferlet, whole", "endpoint, whole", "inferlet, streamed", "endpoint, streamed"):
        yield row(start, way, "ms", label=f"a request for one token of the tiny model: {way}")


@dataclass(frozen=True, slots=True)
class _Contest:
    """The same completion in several ways; each method gives the milliseconds per token of one."""

    host: OpenHost
    client: httpx2.AsyncClient
    program: tartlet.Program
    engine: SharedEngine
    caller: DirectCaller
    num_tokens: int

    def direct(self) -> float:
        began = time.monotonic()
        text = self.engine.text(next(iter(self.engine.models)))
        self.caller.generate([text.encode(PROMPT)], self.num_tokens)
        return self._per_token(began)

    def inferlet(self, is_streaming: bool) -> float:
        info = next(iter(self.engine.models.values()))
        given = completion_input(CompletionRequest.model_validate(self._body(is_streaming)), info)
        began = time.monotonic()
        result = self.host.run(self.program, given)
        assert result["usage"]["completion_tokens"] == self.num_tokens
        return self._per_token(began)

    def endpoint(self, is_streaming: bool) -> float:
        body = self._body(is_streaming)
        began = time.monotonic()
        response = self.host.call(self.client.post("/v1/completions", json=body))
        assert response.status_code == 200, response.text
        return self._per_token(began)

    def round(self, _: int) -> Figures:
        """Measure all, each between two measurements of the direct way."""
        direct, more = between(
            self.direct,
            {
                "inferlet, whole": lambda: self.inferlet(False),
                "endpoint, whole": lambda: self.endpoint(False),
                "inferlet, streamed": lambda: self.inferlet(True),
                "endpoint, streamed": lambda: self.endpoint(True),
            },
        )
        figures = {"direct": direct, **{name: direct + value for name, value in more.items()}}
        for way in ("whole", "streamed"):
            added = more[f"endpoint, {way}"] - more[f"inferlet, {way}"]
            figures[f"overhead {way}"] = 100 * added / figures[f"inferlet, {way}"]
        return figures

    def _body(self, is_streaming: bool) -> dict[str, Any]:
        """A request for exactly so many tokens: none of those that end a text can come."""
        info = next(iter(self.engine.models.values()))
        return {
            "model": info.name,
            "prompt": PROMPT,
            "max_tokens": self.num_tokens,
            "temperature": 0,
            "stream": is_streaming,
            "logit_bias": {str(token_id): -100 for token_id in info.eos_token_ids},
        }

    def _per_token(self, began: float) -> float:
        return (time.monotonic() - began) * 1000 / self.num_tokens


def _measure_model(model: str, num_tokens: int, settings: Settings) -> Rounds:
    engine = SharedEngine(compose.start_engine(model, threads=settings.threads, prefix_cache=False))
    with open_host(engine, spares=2) as host, tempfile.TemporaryDirectory() as folder:
        source = endpoint_source("completions")
        program = host.call(host.host.load(ProgramSource("python", source.main, source.files)))
        server = _Server(host.host, Path(folder))
        client = host.call(server.open())
        contest = _Contest(host, client, program, engine, DirectCaller(engine), num_tokens)
        rounds = measure_rounds(contest.round, settings.scaled(ROUNDS, 1), settings)
        host.call(server.close())
    engine.close()
    return rounds


class _Server:
    """An application on a host, and a client of it."""

    def __init__(self, host: tartlet.Host, folder: Path) -> None:
        self._host = host
        self._folder = folder
        self._open = AsyncExitStack()

    async def open(self) -> httpx2.AsyncClient:
        storage = await self._open.enter_async_context(open_storage(str(self._folder / "tartlet.db")))
        key = await storage.keys.create_first()
        assert key is not None
        services = make_services(ServerSettings(), storage, Blobs(self._folder), HostSandboxes(self._host))
        self._open.push_async_callback(services.runs.close)
        headers = {"Authorization": f"Bearer {key.token}"}
        transport = httpx2.ASGITransport(create_app(services))
        client = httpx2.AsyncClient(transport=transport, base_url="http://server", headers=headers)
        return await self._open.enter_async_context(client)

    async def close(self) -> None:
        await self._open.aclose()
