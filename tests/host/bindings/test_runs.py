import dataclasses
from typing import Any

import pytest

import tartlet

pytestmark = pytest.mark.runner


def test_who_am_i(fake: Any) -> None:
    """The run's id, name, tenant and seed are those that its caller sees."""
    program = fake.host.load(
        """
from tartlet_sdk import inferlet, run
@inferlet
def main():
    info = run.info()
    return [info.id, info.inferlet, info.tenant, info.seed]
""",
        name="who",
    )
    run = fake.host.start(program, seed=2**64 - 1)

    assert run.result() == [run.id, "who", "local", 2**64 - 1]


def test_limits_and_their_use(guest: Any) -> None:
    """Each limit has a name, what is allowed, and what has been used."""
    limits = guest(
        """
        context = Model.default().context()
        context.fill("x" * 33)
        await context.generate(max_tokens=3)
        print("hello", end="", flush=True)
        fork = context.fork()
        return {limit.name: [limit.used, limit.allowed] for limit in runs.limits()}
    """,
        limits=tartlet.Limits(max_tokens=50, max_kv_pages=9, max_wall_ms=None, max_output_bytes=77),
    )

    assert limits["max_tokens"] == [3, 50]
    assert limits["max_kv_pages"] == [4, 9]  # three, and the fork's own copy of the last
    assert limits["max_output_bytes"] == [5, 77]
    assert limits["max_wall_ms"][1] is None
    assert limits["max_host_calls"][0] > 0
    fields = {field.name for field in dataclasses.fields(tartlet.Limits)}
    assert set(limits) == fields - {"max_memory_bytes", "max_branches"}, "they are named as the caller names them"
