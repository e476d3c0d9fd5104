from __future__ import annotations

from tartlet.errors import LimitExceededError, RunCancelledError
from tartlet.events import RunUsage
from tartlet.server.failures import to_failure
from tartlet.server.front.live_run import LiveRun
from tartlet.server.front.metrics import MOST_TENANTS, Metrics
from tartlet.server.front.run_events import Outcome
from tartlet_engine.api import EngineStats

STATS = EngineStats(100, 40, 10, 50, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)


async def ended(metrics: Metrics, tenant: str, outcome: Outcome) -> None:
    run = LiveRun(tenant, "p", "d")
    run.usage = RunUsage(generated_tokens=5, prompt_tokens=7, cpu_ms=500, wall_ms=1000, first_token_ms=20)
    metrics.run_began()
    metrics.run_ended(run, outcome)


def text_of(metrics: Metrics, stats: EngineStats | None = None) -> str:
    return metrics.text(stats, is_ready=True, loop_lag_s=0.5).decode()


async def test_runs_are_counted_by_tenant() -> None:
    """With what they have used, and which limit has ended them."""
    metrics = Metrics()
    await ended(metrics, "acme", Outcome("succeeded", "1"))
    error = LimitExceededError("cpu_limit", limit="max_cpu_ms", used=2, allowed=1)
    await ended(metrics, "acme", Outcome("failed", failure=to_failure(error)))
    text = text_of(metrics)

    assert 'tartlet_runs_total{status="failed",tenant="acme"} 1.0' in text
    assert 'tartlet_generation_tokens_total{tenant="acme"} 10.0' in text
    assert 'tartlet_guest_cpu_seconds_total{tenant="acme"} 1.0' in text
    assert 'tartlet_limit_exceeded_total{limit="max_cpu_ms"} 1.0' in text
    assert "tartlet_runs_live 0.0" in text
    assert "tartlet_time_to_first_token_seconds_count 2.0" in text


async def test_runs_that_were_cancelled_are_counted_by_who_wanted_it() -> None:
    """A client that has gone, somebody who asked for it, or the server as it was shut down."""
    metrics = Metrics()
    error = to_failure(RunCancelledError("the run was cancelled"))
    for by in ("client", "request", "request", "shutdown"):
        run = LiveRun("acme", "p", "d")
        run.cancel(by=by)
        metrics.run_began()
        metrics.run_ended(run, Outcome("cancelled", failure=error))

    for by, count in (("client", 1), ("request", 2), ("shutdown", 1)):
        assert f'tartlet_runs_cancelled_total{{reason="{by}"}} {count}.0' in text_of(metrics)


async def test_only_so_many_tenants_have_their_own() -> None:
    """The others are summed up, so that figures take a bounded memory."""
    metrics = Metrics()
    for index in range(MOST_TENANTS + 5):
        await ended(metrics, f"t{index}", Outcome("succeeded", "1"))

    assert 'tartlet_runs_total{status="succeeded",tenant="other"} 5.0' in text_of(metrics)


def test_the_engine_under_the_names_that_routers_know() -> None:
    """Queue and KV cache, by our names and by vLLM's."""
    text = text_of(Metrics(), STATS)

    for name in ("tartlet_kv_cache_usage_perc", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"):
        assert f"\n{name} 0.5\n" in text
    assert "\nvllm:num_requests_waiting 4.0\n" in text
    assert "\nvllm:num_requests_running 3.0\n" in text
    assert "\ntartlet_event_loop_lag_seconds 0.5\n" in text


def test_without_an_engine() -> None:
    """The figures are there all the same."""
    assert "tartlet_engine_healthy 1.0" in text_of(Metrics())
