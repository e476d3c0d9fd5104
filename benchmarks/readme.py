"""Writes the figures of benchmarks/results/ into README.md, between its two markers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import NAMES
from benchmarks.report import RESULTS, Row, figure, met, read_row

README = Path(__file__).parent / "README.md"
BEGIN = "<!-- figures: written by `python -m benchmarks --readme` -->"
END = "<!-- end of figures -->"


def rewrite() -> None:
    """Replace what stands between the markers."""
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    README.write_text(f"{before}{BEGIN}\n\n{figures()}\n{END}{after}", encoding="utf-8")


def figures() -> str:
    """All results, one table per benchmark."""
    paths = [RESULTS / f"{name}.json" for name in NAMES]
    return "\n".join(_section(json.loads(path.read_text(encoding="utf-8"))) for path in paths if path.is_file())


def _section(content: dict[str, Any]) -> str:
    machine = content["machine"]
    lines = [
        f"### {content['benchmark']}",
        "",
        f"{machine['date']}; {machine['processor']} with {machine['vectors']}, {machine['cores']} cores, "
        f"{machine['memory_gib']} GiB; Python {machine['python']}.",
        "",
        "| what | median | min - max | unit | n | goal | met | noise |",
        "|---|--:|--:|---|--:|--:|---|---|",
        *(_line(read_row(entry)) for entry in content["rows"]),
        "",
    ]
    return "\n".join(lines)


def _line(row: Row) -> str:
    spread = f"{figure(min(row.values))} - {figure(max(row.values))}"
    goal = "" if row.goal is None else str(row.goal).replace("<", "&lt;").replace(">", "&gt;")
    cells = (row.name, figure(row.median), spread, row.unit, str(len(row.values)), goal, met(row), row.noise)
    return "| " + " | ".join(cells) + " |"
