"""Benchmarks of Tartlet: `python -m benchmarks`. README.md has the figures, and what they mean."""

NAMES = (
    "host_calls",
    "run_start",
    "live_runs",
    "programmability_tax",
    "openai_endpoint",
    "fork",
    "prefix",
    "cache_isolation",
    "fairness",
    "storms",
    "saved",
    "masks",
    "extraction",
    "speculation",
    "scoring",
    "stepping",
    "engine_socket",
    "controllers",
    "decode",
    "continuous_batching",
    "llama_cpp",
    "server",
    "neighbours",
    "quality",
)
"""One module each, in the order in which they run. Each has `measure(settings) -> Iterator[Row]`."""
