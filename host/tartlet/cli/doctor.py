"""`tartlet doctor`: is everything here, and does it work."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tartlet.cli.errors import PROGRAM_FAILED


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show versions, backend, caches and models, and run a short self-test; exit code 1 if something is broken."""
    from dataclasses import asdict

    from tartlet.cli.progress_bars import ProgressBars
    from tartlet.doctor import examine

    with ProgressBars() as progress:
        findings = examine(progress)
    is_ok = all(finding.is_ok for finding in findings)
    if as_json:
        typer.echo(json.dumps({"is_ok": is_ok, "findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        from rich.console import Console
        from rich.text import Text

        console = Console(highlight=False, soft_wrap=True)
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            mark = ("ok   ", "green") if finding.is_ok else ("FAULT", "bold red")
            console.print(Text.assemble(mark, f" {finding.name:<{width}}  {finding.detail}"))
            if finding.hint:
                console.print(Text.assemble(" " * (width + 8), ("hint ", "bold cyan"), finding.hint))
    if not is_ok:
        raise typer.Exit(PROGRAM_FAILED)
