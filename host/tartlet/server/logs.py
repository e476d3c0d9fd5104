"""The server's log, on stderr: a line of JSON for each record. What clients send and programs say is in none."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

MAX_TEXT_LEN = 2000  # characters of a message or value

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON: time, level, logger, message, and the fields that come with it."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the line. Fields that are None are left out."""
        line: dict[str, Any] = {"time": _time(record), "level": record.levelname.lower(), "logger": record.name}
        line["message"] = record.getMessage()[:MAX_TEXT_LEN]
        line |= {name: value for name, value in fields_of(record).items() if value is not None}
        if record.exc_info:
            line["trace"] = _trace(record)
        return json.dumps(line, default=str)


class TextFormatter(logging.Formatter):
    """The same for people: a line of text, with a trace below it."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the line. Control characters are escaped, so that nobody can make up lines."""
        fields = " ".join(f"{name}={value}" for name, value in fields_of(record).items() if value is not None)
        line = (
            f"{_time(record)} {record.levelname.lower():7} {record.name} {record.getMessage()[:MAX_TEXT_LEN]} {fields}"
        )
        line = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line.rstrip())
        return f"{line}\n{''.join(_trace(record))}" if record.exc_info else line


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to what is `sys.stderr` now: while bars are drawn on it, that puts lines above them."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)  # the other one sets the stream

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        """Standard error."""
        return sys.stderr


def set_up(log_format: str, level: str) -> None:
    """Send all records to stderr, from this level on. Replaces what was set up before.

    Args:
        log_format: json or text; `auto` is text on a terminal, and else json.
        level: debug, info, warning or error.
    """
    handler = _Stderr()
    is_text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    handler.setFormatter(TextFormatter() if is_text else JsonFormatter())
    root = logging.getLogger()
    for old in [*root.handlers]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)  # of libraries
    logging.getLogger("tartlet").setLevel(level.upper())
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # what it warns of is what clients do


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """What a record was given as `extra`."""
    given = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return {name: value[:MAX_TEXT_LEN] if isinstance(value, str) else value for name, value in given.items()}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _trace(record: logging.LogRecord) -> list[str]:
    """Where it happened. The exception's message is left out: it may hold what a client has sent."""
    assert record.exc_info is not None
    kind, _, trace = record.exc_info
    name = "" if kind is None else f"{kind.__module__}.{kind.__qualname__}\n"
    return [*traceback.format_tb(trace)[-30:], name]
