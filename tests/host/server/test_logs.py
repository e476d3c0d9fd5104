from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from tartlet.server.logs import JsonFormatter, TextFormatter, set_up


@pytest.fixture
def restored() -> Iterator[None]:
    """The logging of the tests is as before."""
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("tartlet", "uvicorn"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def record_of(message: str, **fields: object) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": message, "levelname": "INFO", "name": "tartlet.x", "created": 0.0, **fields})


def failed() -> logging.LogRecord:
    try:
        raise ValueError("the prompt is: my secret")
    except ValueError:
        return record_of("fault", exc_info=sys.exc_info())


def test_a_line_of_json() -> None:
    """With the fields that came with the record, but for those that are none."""
    line = json.loads(JsonFormatter().format(record_of("request", status=200, tenant=None, route="/v1/runs")))

    assert line == {
        "time": "1970-01-01T00:00:00.000+00:00",
        "level": "info",
        "logger": "tartlet.x",
        "message": "request",
        "status": 200,
        "route": "/v1/runs",
    }


def test_a_line_of_text() -> None:
    """Nobody can make up a line by what they send."""
    line = TextFormatter().format(record_of("request", route="/x\n1970 info all is well\x1b[2J"))

    assert "\n" not in line
    assert "\x1b" not in line
    assert "route=/x\\n1970" in line


def test_long_values_are_cut() -> None:
    """A line has a bounded length."""
    assert len(JsonFormatter().format(record_of("x" * 10**6, y="y" * 10**6))) < 5000


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_a_trace_without_what_was_sent(formatter: logging.Formatter) -> None:
    """It tells where, and which kind of error; its message may hold anything."""
    text = formatter.format(failed())

    assert "ValueError" in text
    assert "test_logs.py" in text
    assert "my secret" not in text.replace('raise ValueError("the prompt is: my secret")', "").replace(
        'raise ValueError(\\"the prompt is: my secret\\")', ""
    )


@pytest.mark.usefixtures("restored")
def test_what_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    """Ours from the level that is set; of libraries, warnings."""
    set_up("json", "info")
    logging.getLogger("tartlet.x").info("ours")
    logging.getLogger("tartlet.x").debug("too fine")
    logging.getLogger("library").info("theirs")
    logging.getLogger("library").warning("a warning")
    messages = [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()]

    assert messages == ["ours", "a warning"]


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_gets_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool
) -> None:
    """Whoever collects logs gets JSON, if nothing else was said."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    set_up("auto", "info")
    logging.getLogger("tartlet.x").info("ours")

    assert capsys.readouterr().err.startswith("{") != is_terminal


def test_lines_go_where_standard_error_is_now(restored: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bars on a terminal put something in its place, which draws lines above them."""
    set_up("text", "info")
    drawn = io.StringIO()
    monkeypatch.setattr(sys, "stderr", drawn)
    logging.getLogger("tartlet.x").info("hello")

    assert "hello" in drawn.getvalue()
