"""Uploads: whether hostile ones move the front's latency, and whether time tells what another tenant has uploaded.

For the latency, one connection asks for `/health/live`, in turn while the server is idle and while another process
uploads what is large, malformed, or dear to compile. For the time, half of the probes are components that somebody has
uploaded just before, half are new; the figures are those of `cache_isolation`, with the tenant's own uploads as the
control, which must be told apart.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

from benchmarks import serving
from benchmarks.cache_isolation import mann_whitney
from benchmarks.report import Row, at_least, at_most, row
from benchmarks.rounds import Figures, measure_rounds
from benchmarks.settings import Settings
from tests import hostile_components as hostile

ROUNDS = 3
ASKED = 1000
"""Requests in a round, idle and under attack."""
PROBES = 40
ATTACKERS = 4
WASM, PYTHON = {"Content-Type": "application/wasm"}, {"Content-Type": "text/x-python"}


def measure(settings: Settings) -> Iterator[Row]:
    """Give the latency under attack against the idle one, and how well uploads tell what others have."""
    with serving.serving(settings.model, "--threads", str(settings.threads), "--workers", "1") as server:
        attacker, victim = server.key, serving.add_tenant(server, "victim")
        latency = measure_rounds(
            lambda _: asyncio.run(_latencies(server, attacker, settings)), settings.scaled(ROUNDS, 1), settings
        )
        for percentile in ("p50", "p99"):
            yield row(latency, f"idle, {percentile}", "ms", label=f"a request while nothing is uploaded: {percentile}")
            yield row(latency, percentile, "ratio", at_most(2), label=f"under attack / idle: {percentile}")
        probes = settings.scaled(PROBES, 4)
        guesses = measure_rounds(
            lambda number: asyncio.run(_probe(server, {"own": attacker, "other": victim}, number, probes)),
            1,
            settings,
            warm_up=0,
        )
        for owner, label in (("other", "another tenant's uploads"), ("own", "one's own uploads (control)")):
            yield row(guesses, f"{owner}, auc", "AUC", label=f"{label}: area under the ROC curve")
            goal = at_least(0.05) if owner == "other" else None
            yield row(guesses, f"{owner}, p", "p", goal, label=f"{label}: Mann-Whitney p")


async def _latencies(server: serving.Server, key: str, settings: Settings) -> Figures:
    asked = settings.scaled(ASKED, 20)
    async with server.client() as client:
        idle = await _ask(client, asked)
        with _attack(server.url, key):
            attacked = await _ask(client, asked)
    figures: dict[str, float] = {}
    for name, percent in (("p50", 50), ("p99", 99)):
        before, during = (statistics.quantiles(seconds, n=100)[percent - 1] for seconds in (idle, attacked))
        figures |= {f"idle, {name}": before * 1000, name: during / before}
    return figures


async def _ask(client: httpx2.AsyncClient, times: int) -> list[float]:
    """Seconds of requests for something that takes the front no work, one every few milliseconds."""
    seconds = []
    for _ in range(times):
        began = time.monotonic()
        (await client.get("/health/live")).raise_for_status()
        seconds.append(time.monotonic() - began)
        await asyncio.sleep(0.005)
    return seconds


@contextmanager
def _attack(url: str, key: str) -> Iterator[None]:
    """Upload what means harm, from a process of its own, until the block is left."""
    begun = multiprocessing.get_context("spawn").Event()
    process = multiprocessing.get_context("spawn").Process(target=_attack_forever, args=(url, key, begun), daemon=True)
    process.start()
    try:
        begun.wait(60)
        yield
    finally:
        process.kill()
        process.join()
        process.close()


def _attack_forever(url: str, key: str, begun: object) -> None:
    """The life of the attacking process."""
    bombs = [
        (WASM, hostile.inferlet_with(hostile.functions(262_144))),
        (WASM, hostile.inferlet_with(hostile.many_calls(500, 3500))),
        (WASM, hostile.multiplied(9, 10)),
        (WASM, hostile.inferlet()[:-3]),
        (WASM, hostile.inferlet_with(hostile.one_function(7_000_000))),
        (PYTHON, b"x = " + b"(" * 65_536 + b")" * 65_536),
        (PYTHON, b"import " + b"a." * 200_000 + b"b\n"),
        (PYTHON, b"x = [" + b"(1, 'a'), " * 100_000 + b"]\n"),
    ]

    async def attack() -> None:
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=None) as client:

            async def upload(first: int) -> None:
                for number in range(first, 1_000_000):
                    kind, data = bombs[number % len(bombs)]
                    begun.set()  # type: ignore[attr-defined]
                    await client.post("/v1/inferlets", content=data, headers=kind)

            await asyncio.gather(*(upload(first) for first in range(0, 2 * ATTACKERS, 2)))

    asyncio.run(attack())


async def _probe(server: serving.Server, owners: dict[str, str], number: int, probes: int) -> Figures:
    """Upload what this owner or that has uploaded just before, and what nobody has."""
    figures: dict[str, float] = {}
    async with server.client() as client:
        for whose, key in owners.items():
            draw = random.Random(f"{number} {whose}")
            seen = set(draw.sample(range(probes), probes // 2))
            hits, misses = [], []
            for probe in range(probes):
                component, other = (_component(draw.randbytes(16)) for _ in range(2))
                await _upload(client, component if probe in seen else other, key)
                (hits if probe in seen else misses).append(await _upload(client, component, server.key))
            auc, p = mann_whitney(hits, misses)
            figures |= {f"{whose}, auc": auc, f"{whose}, p": p}
    return figures


def _component(name: bytes) -> bytes:
    """A component that takes a moment to compile, and is no other's of another name."""
    return hostile.inferlet_with(hostile.many_calls(30, 2000)) + hostile.section(0, b"\x01a" + name)


async def _upload(client: httpx2.AsyncClient, component: bytes, key: str) -> float:
    """Seconds that an upload takes."""
    began = time.monotonic()
    headers = WASM | {"Authorization": f"Bearer {key}"}
    (await client.post("/v1/inferlets", content=component, headers=headers)).raise_for_status()
    return time.monotonic() - began
