from __future__ import annotations

import json
from typing import Any

import pytest

from tartlet.cli.run_views import JsonView, TerminalView
from tartlet.errors import GuestError
from tartlet.events import Log, Output, RunUsage, Variable

EVENTS = [
    Output("one\x1b[2J "),
    Log("warn", "careful\x1b[2J"),
    Log("debug", "detail"),
    Output("two"),
    Variable("name\x1b", "value\x1b[2J", 3),
    RunUsage(forks=3, generations=1),
]


def show(view: TerminalView | JsonView) -> None:
    for event in EVENTS:
        view.event(event)
    view.ended({"a": "ä"})


def test_stdout_has_output_and_result_and_stderr_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    """What is piped on is the program's own; no log line tears a line of output; no escape sequence gets through."""
    show(TerminalView(quiet=False, verbose=False))

    out, err = capsys.readouterr()
    assert out == 'one␛[2J \ntwo\n{\n  "a": "ä"\n}\n'
    assert err.splitlines()[0] == "warn careful␛[2J"
    assert err.splitlines()[1] == "name␛ = value␛[2J"
    assert "by 3 forks" in err.splitlines()[2]
    assert len(err.splitlines()) == 3


def test_verbose_shows_debug_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """They are hidden otherwise."""
    show(TerminalView(quiet=False, verbose=True))

    assert "debug detail" in capsys.readouterr().err


def test_quiet_prints_the_result_only(capsys: pytest.CaptureFixture[str]) -> None:
    """So that a script can take it."""
    show(TerminalView(quiet=True, verbose=False))

    assert capsys.readouterr() == ('{\n  "a": "ä"\n}\n', "")


@pytest.mark.parametrize(("result", "shown"), [("text", "text\n"), (None, ""), (3, "3\n"), ([], "[]\n")])
def test_a_text_result_is_printed_as_it_is(result: Any, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Anything else as JSON, and nothing if there is none."""
    TerminalView(quiet=False, verbose=False).ended(result)

    assert capsys.readouterr().out == shown


def test_json_lines_have_every_event_and_the_result_last(capsys: pytest.CaptureFixture[str]) -> None:
    """Text comes exactly as the program printed it."""
    show(JsonView())

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in lines] == ["output", "log", "log", "output", "variable", "usage", "result"]
    assert lines[0] == {"event": "output", "text": "one\x1b[2J "}
    assert lines[1] == {"event": "log", "level": "warn", "message": "careful\x1b[2J"}
    assert lines[4] == {"event": "variable", "name": "name\x1b", "value": "value\x1b[2J", "version": 3}
    assert lines[5]["forks"] == 3
    assert lines[-1] == {"event": "result", "value": {"a": "ä"}}


def test_json_lines_end_with_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A program that reads the lines needs nothing else."""
    JsonView().failed(GuestError("it broke \ud800", hint="fix it"))

    assert json.loads(capsys.readouterr().out) == {
        "event": "error",
        "code": "guest_error",
        "message": "it broke \ud800",
        "hint": "fix it",
    }


def test_json_lines_end_with_the_error_of_an_interruption(capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C is told as a cancelled run is."""
    JsonView().failed(KeyboardInterrupt())

    assert json.loads(capsys.readouterr().out)["code"] == "cancelled"
