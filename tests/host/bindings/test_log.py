from typing import Any

import pytest

import tartlet
from tartlet import Log, Output, RunUsage

pytestmark = pytest.mark.runner


def test_output_and_log_lines_come_in_order(fake: Any) -> None:
    """Text is merged between log lines; levels are kept; the usage comes last."""
    run = fake.host.start("""
from tartlet_sdk import inferlet
from wit_world.imports import log
@inferlet
def main():
    log.print("a")
    log.print("")
    log.print("b\\n")
    log.log(log.Level.WARN, "careful")
    log.print("é")
""")
    run.result()
    *events, usage = list(run)

    assert events == [Output("ab\n"), Log("warn", "careful"), Output("é")]
    assert isinstance(usage, RunUsage)
    assert usage.output_bytes == 3 + len("careful") + 64 + 2


@pytest.mark.parametrize("call", ["log.print('x' * 100)", "log.log(log.Level.INFO, '')"])
def test_a_flood_ends_at_the_limit(guest: Any, call: str) -> None:
    """Output text and log lines, empty ones too, count towards the limit."""
    with pytest.raises(tartlet.LimitExceededError) as caught:
        guest(f"while True: {call}", limits=tartlet.Limits(max_output_bytes=10_000))

    assert (caught.value.code, caught.value.allowed) == ("output_limit", 10_000)


def test_what_was_written_below_the_limit_is_not_lost(fake: Any) -> None:
    """All output up to the breach reaches the caller."""
    run = fake.host.start(
        """
from tartlet_sdk import inferlet
from wit_world.imports import log
@inferlet
def main():
    while True:
        log.print("12345")
""",
        limits=tartlet.Limits(max_output_bytes=1000),
    )

    text = "".join(event.text for event in run if isinstance(event, Output))

    assert text == "12345" * 200
