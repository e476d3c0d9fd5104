"""The program's output: `print` and `sys.stdout` are output text; `sys.stderr`, `logging` and `warnings` are log lines.

Nothing is held back: one `print` is one call of the host, made at once.
"""

from __future__ import annotations

import builtins
import codecs
import io
import logging
import sys
import warnings
from typing import Any, TextIO

from tartlet_sdk import wit

MOST_CHARACTERS = 16 * 1024  # per call of the host: at most 64 KiB of UTF-8


def encodable(text: str) -> str:
    """The text with what UTF-8 cannot express (lone surrogates) written out as escapes."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


class Buffer(io.BufferedIOBase):
    """The `buffer` of a text stream: what is written is its text in UTF-8. Part of a character waits for the rest."""

    def __init__(self, stream: io.TextIOBase) -> None:
        super().__init__()
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self) -> bool:
        """It can be written to."""
        return True

    def write(self, data: Any) -> int:
        """Write the text that the bytes are."""
        self._stream.write(self._decoder.decode(data))
        return len(data)


class Stdout(io.TextIOBase):
    """Text as it is written."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self) -> None:
        super().__init__()
        self.buffer = Buffer(self)

    def writable(self) -> bool:
        """It can be written to."""
        return True

    def write(self, text: str) -> int:
        """Send the text to whoever watches the run."""
        _must_be_text(text)
        sent = encodable(text)
        for start in range(0, len(sent), MOST_CHARACTERS):
            wit.log.print(sent[start : start + MOST_CHARACTERS])
        return len(text)


class Stderr(io.TextIOBase):
    """Text as log lines: a line is sent when it is complete, or at the end of the run."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self) -> None:
        super().__init__()
        self.buffer = Buffer(self)
        self._held = ""

    def writable(self) -> bool:
        """It can be written to."""
        return True

    def write(self, text: str) -> int:
        """Log the lines that are now complete."""
        _must_be_text(text)
        lines, newline, rest = (self._held + text).rpartition("\n")
        self._held = rest
        if newline:
            log("INFO", lines)
        return len(text)

    def finish(self) -> None:
        """Log the rest."""
        rest, self._held = self._held, ""
        if rest:
            log("INFO", rest)


class LogHandler(logging.Handler):
    """Sends the records of `logging` to the host."""

    LEVELS = ((logging.ERROR, "ERROR"), (logging.WARNING, "WARN"), (logging.INFO, "INFO"), (logging.DEBUG, "DEBUG"))

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record: in the program's own format, or with its logger's name before it unless that is the root."""
        try:
            message = self.format(record)
        except Exception:
            self.handleError(record)
            return
        level = next((name for number, name in self.LEVELS if record.levelno >= number), "TRACE")
        log(level, message if self.formatter or record.name == "root" else f"{record.name}: {message}")


def basic_config(*, level: int | str | None = None, format: str | None = None, **options: Any) -> None:
    """Set level and format of the log as `logging.basicConfig` does, which would not touch a handler that is there."""
    if options:
        BASIC_CONFIG(level=level, format=format or logging.BASIC_FORMAT, **options)
        return
    if format is not None:
        HANDLER.setFormatter(logging.Formatter(format))
    if level is not None:
        logging.root.setLevel(level)


def log(level: str, message: str) -> None:
    """Send one log line, cut to the host's greatest length."""
    wit.log.log(wit.log.Level[level], encodable(message)[:MOST_CHARACTERS])


def print_at_once(
    *values: object, sep: str | None = None, end: str | None = None, file: TextIO | None = None, flush: bool = False
) -> None:
    """Print as the built-in does, in a single write."""
    file = sys.stdout if file is None else file
    if file is None:
        return
    for name, option in (("sep", sep), ("end", end)):
        if option is not None and not isinstance(option, str):
            raise TypeError(f"{name} must be None or a string, not {type(option).__name__}")
    file.write((" " if sep is None else sep).join(map(str, values)) + ("\n" if end is None else end))
    if flush:
        file.flush()


def show_warning(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    """Log a warning with its place."""
    log("WARN", f"{filename}:{lineno}: {category.__name__}: {message}")


STDERR = Stderr()
HANDLER = LogHandler()
BASIC_CONFIG = logging.basicConfig


def install() -> None:
    """Send everything that the program prints or logs to the host."""
    sys.stdout = sys.__stdout__ = Stdout()  # type: ignore[misc, assignment]
    sys.stderr = sys.__stderr__ = STDERR  # type: ignore[misc, assignment]
    builtins.print = print_at_once  # type: ignore[assignment]
    warnings.showwarning = show_warning  # type: ignore[assignment]
    logging.basicConfig = basic_config
    logging.lastResort = HANDLER
    logging.root.addHandler(HANDLER)
    logging.root.setLevel(logging.INFO)


def _must_be_text(text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"write() argument must be str, not {type(text).__name__}")
