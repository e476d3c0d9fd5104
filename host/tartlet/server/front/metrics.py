"""The server's figures in the format of Prometheus.

Ours are called `tartlet_*`. Those that routers read to choose a server have the names that vLLM gave them, too.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

from tartlet.server.front.live_run import LiveRun
from tartlet.server.front.run_events import Outcome
from tartlet_engine.api import EngineStats

disable_created_metrics()  # type: ignore[no-untyped-call]  # a series for each that says when it began

MOST_TENANTS = 200
"""That have figures of their own; those of others are summed up as `other`."""
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)

_ENGINE = {
    "pages_total": "Pages of the KV cache.",
    "pages_free": "Pages that hold nothing.",
    "pages_cached": "Pages that hold what nobody uses now.",
    "pages_held": "Pages in use.",
    "contexts": "Contexts of all runs.",
    "steps": "Steps of the engine.",
    "prefill_tokens": "Tokens of prompts that were computed.",
    "recomputed_tokens": "Tokens that were computed again after their pages had been dropped.",
    "pages_swapped": "Pages in host memory.",
}


class Metrics:
    """What is counted, for one application."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._tenants: set[str] = set()

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(name, text, registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=registry)

        self._requests = counter("tartlet_requests", "Requests.", "route", "method", "status")
        self._request_seconds = Histogram(
            "tartlet_request_seconds",
            "Time until a request was answered.",
            ["route"],
            registry=registry,
            buckets=SECONDS,
        )
        self._runs = counter("tartlet_request_success", "Runs that have ended.", "finished_reason")
        self._cancelled = counter("tartlet_runs_cancelled", "Runs that were cancelled, by whom.", "reason")
        self._tenant_runs = counter("tartlet_runs", "Runs that have ended.", "tenant", "status")
        self._limits = counter("tartlet_limit_exceeded", "Runs that a limit has ended.", "limit")
        self._prompt_tokens = counter("tartlet_prompt_tokens", "Tokens of prompts.", "tenant")
        self._cached_tokens = counter("tartlet_cached_tokens", "Tokens of prompts that were there already.", "tenant")
        self._generated_tokens = counter("tartlet_generation_tokens", "Tokens that were generated.", "tenant")
        self._cpu_seconds = counter("tartlet_guest_cpu_seconds", "Time spent running programs.", "tenant")
        self._page_seconds = counter("tartlet_kv_page_seconds", "Pages of the KV cache times seconds held.", "tenant")
        self._host_calls = counter("tartlet_host_calls", "Calls from programs to the host.", "tenant")
        self._run_seconds = Histogram(
            "tartlet_e2e_request_latency_seconds",
            "Time from a run's start to its end.",
            registry=registry,
            buckets=SECONDS,
        )
        self._first_token_seconds = Histogram(
            "tartlet_time_to_first_token_seconds",
            "Time from a run's start to its first token.",
            registry=registry,
            buckets=SECONDS,
        )
        self._live = gauge("tartlet_runs_live", "Runs that have not ended.")
        self._is_ready = gauge("tartlet_engine_healthy", "Whether runs can be started.")
        self._loop_lag = gauge("tartlet_event_loop_lag_seconds", "How late the front's event loop was, at the most.")
        self._engine = {name: gauge(f"tartlet_{name}", text) for name, text in _ENGINE.items()}
        self._generated = gauge("tartlet_engine_generated_tokens", "Tokens that the engine has generated.")
        self._queries = gauge("tartlet_prefix_cache_queries", "Tokens of prompts that were looked for.")
        self._hits = gauge("tartlet_prefix_cache_hits", "Of these, tokens that were found.")
        self._preemptions = gauge("tartlet_num_preemptions", "How often a generation had to stop for others.")
        running, waiting = "Generations that take part in steps.", "Generations that wait."
        usage = "Part of the KV cache that is in use, 0 to 1."
        self._running = [gauge(f"{prefix}num_requests_running", running) for prefix in ("tartlet_", "vllm:")]
        self._waiting = [gauge(f"{prefix}num_requests_waiting", waiting) for prefix in ("tartlet_", "vllm:")]
        names = ("tartlet_kv_cache_usage_perc", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
        self._usage = [gauge(name, usage) for name in names]

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request. The route is that of the application, not the address, which anybody can make up."""
        self._requests.labels(route, method, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def run_began(self) -> None:
        """Count a run that goes on."""
        self._live.inc()

    def run_ended(self, run: LiveRun, outcome: Outcome) -> None:
        """Count a run that has ended, and what it has used."""
        self._live.dec()
        usage, failure = run.usage, outcome.failure
        tenant = self._label(run.tenant)
        self._runs.labels(outcome.status).inc()
        self._tenant_runs.labels(tenant, outcome.status).inc()
        if outcome.status == "cancelled":
            self._cancelled.labels(run.cancelled_by or "shutdown").inc()
        if failure is not None and failure.limit:
            self._limits.labels(failure.limit).inc()
        self._prompt_tokens.labels(tenant).inc(usage.prompt_tokens)
        self._cached_tokens.labels(tenant).inc(usage.cached_tokens)
        self._generated_tokens.labels(tenant).inc(usage.generated_tokens)
        self._cpu_seconds.labels(tenant).inc(usage.cpu_ms / 1000)
        self._page_seconds.labels(tenant).inc(usage.page_seconds)
        self._host_calls.labels(tenant).inc(usage.host_calls)
        self._run_seconds.observe(usage.wall_ms / 1000)
        if usage.first_token_ms is not None:
            self._first_token_seconds.observe(usage.first_token_ms / 1000)

    def text(self, stats: EngineStats | None, *, is_ready: bool, loop_lag_s: float) -> bytes:
        """All figures now."""
        self._is_ready.set(is_ready)
        self._loop_lag.set(loop_lag_s)
        if stats is not None:
            for name, gauge in self._engine.items():
                gauge.set(getattr(stats, name))
            self._generated.set(stats.generated_tokens)
            self._queries.set(stats.lookup_tokens)
            self._hits.set(stats.found_tokens)
            self._preemptions.set(stats.preemptions)
            values = (
                (self._running, stats.running),
                (self._waiting, stats.waiting),
                (self._usage, stats.pages_held / max(1, stats.pages_total)),
            )
            for gauges, value in values:
                for gauge in gauges:
                    gauge.set(value)
        return generate_latest(self.registry)

    def _label(self, tenant: str) -> str:
        if tenant not in self._tenants:
            if len(self._tenants) >= MOST_TENANTS:
                return "other"
            self._tenants.add(tenant)
        return tenant
