"""What a run looks like: on a terminal, or as JSON lines."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any, Protocol

from rich.console import Console
from rich.text import Text

from tartlet.cli.safe_text import safe_text
from tartlet.errors import RunCancelledError, TartletError
from tartlet.events import Log, Output, RunEvent, RunUsage, Variable

LEVEL_STYLES = {"trace": "dim", "debug": "dim", "info": "cyan", "warn": "yellow", "error": "bold red"}
VERBOSE_LEVELS = ("trace", "debug")


class RunView(Protocol):
    """Shows a run to somebody."""

    def event(self, event: RunEvent) -> None:
        """Show one event as it comes."""
        ...

    def ended(self, result: Any) -> None:
        """Show the result of a run that succeeded; all events have been shown."""
        ...

    def failed(self, error: BaseException) -> None:
        """Finish the output of a run that did not, or was interrupted; the caller reports the error."""
        ...


class TerminalView:
    """Output and result on stdout; log lines and figures on stderr, so that stdout can be piped."""

    def __init__(self, *, quiet: bool, verbose: bool, shows_texts: bool = False) -> None:
        """Hide or show log lines; `shows_texts`: the result is that of a controller, and only its texts are shown."""
        self._quiet = quiet
        self._shows_texts = shows_texts
        self._verbose = verbose
        self._is_line_open = False
        self._usage: RunUsage | None = None
        self._stderr = Console(stderr=True, highlight=False, soft_wrap=True)

    def event(self, event: RunEvent) -> None:
        """Show output text at once, written variables, and log lines of the levels asked for."""
        if isinstance(event, RunUsage):
            self._usage = event
        if self._quiet:
            return
        if isinstance(event, Output):
            sys.stdout.write(safe_text(event.text))
            sys.stdout.flush()
            self._is_line_open = not event.text.endswith("\n")
        elif isinstance(event, Log) and (self._verbose or event.level not in VERBOSE_LEVELS):
            self._close_line()
            level = (f"{event.level} ", LEVEL_STYLES[event.level])
            self._stderr.print(Text.assemble(level, safe_text(event.message)))
        elif isinstance(event, Variable):
            self._close_line()
            name = (f"{safe_text(event.name)} ", "magenta")
            self._stderr.print(Text.assemble(name, f"= {safe_text(event.value)}"))

    def ended(self, result: Any) -> None:
        """Show the result: text as it is, anything else as JSON; and one line of figures."""
        self._close_line()
        if self._shows_texts:
            result = _texts(result["sequences"])
        if result is not None:
            text = result if isinstance(result, str) else json.dumps(result, indent=2, ensure_ascii=False)
            print(safe_text(text), flush=True)
        self._show_figures()

    def failed(self, error: BaseException) -> None:
        """End the line that the program left open, and show what the run has used."""
        self._close_line()
        self._show_figures()

    def _show_figures(self) -> None:
        if self._usage is not None and not self._quiet:
            self._stderr.print(str(self._usage), style="dim")

    def _close_line(self) -> None:
        if self._is_line_open:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._is_line_open = False


def _texts(sequences: list[Any]) -> str:
    """What each sequence has generated, with its number if there are several."""
    if len(sequences) == 1:
        return str(sequences[0]["text"])
    return "\n".join(f"[{number}] {sequence['text']}" for number, sequence in enumerate(sequences))


class JsonView:
    """One JSON object a line on stdout; the last one has the result or the error."""

    def event(self, event: RunEvent) -> None:
        """Write one event."""
        self._write(type(event).__name__.lower().removeprefix("run"), **dataclasses.asdict(event))

    def ended(self, result: Any) -> None:
        """Write the result."""
        self._write("result", value=result)

    def failed(self, error: BaseException) -> None:
        """Write the error."""
        if isinstance(error, KeyboardInterrupt):
            error = RunCancelledError("interrupted")
        if isinstance(error, TartletError):
            self._write("error", code=error.code, message=error.message, hint=error.hint)
        else:
            self._write("error", code="internal", message=f"{type(error).__name__}: {error}", hint="")

    def _write(self, kind: str, **fields: Any) -> None:
        sys.stdout.write(json.dumps({"event": kind, **fields}) + "\n")  # ASCII, which every stream takes
        sys.stdout.flush()
