"""Writes what `benchmarks/languages.py` has measured into guest-sdk/README.md, between its two markers."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.report import RESULTS, figure, met, read_row
from tartlet.languages.registry import LANGUAGES

README = Path(__file__).parent.parent / "guest-sdk" / "README.md"
BEGIN = "<!-- figures: written by `python -m benchmarks languages --readme` -->"
END = "<!-- end of figures -->"
COSTS = {"component": "component", "build": "build", "start": "start", "memory of a waiting run": "memory of a run"}
"""Names of rows, and what stands over their column."""


def rewrite() -> None:
    """Replace what stands between the markers, if the languages have been measured."""
    results = RESULTS / "languages.json"
    if results.is_file():
        before, rest = README.read_text(encoding="utf-8").split(BEGIN)
        _, after = rest.split(END)
        written = tables(results.read_text(encoding="utf-8"))
        README.write_text(f"{before}{BEGIN}\n\n{written}\n{END}{after}", encoding="utf-8")


def tables(results: str) -> str:
    """What a program costs in each language; and how many cases of each subject pass in each."""
    content = json.loads(results)
    rows = {entry["name"]: read_row(entry) for entry in content["rows"]}
    measured = [language for language in LANGUAGES if f"{language.name}: start" in rows]
    machine = content["machine"]
    lines = [
        f"{machine['date']}; {machine['processor']}, {machine['cores']} cores. Goals are in brackets.",
        "",
        f"| language | {' | '.join(COSTS.values())} |",
        f"|---|{'--:|' * len(COSTS)}",
    ]
    for language in measured:
        cells = []
        for name in COSTS:
            entry = rows[f"{language.name}: {name}"]
            goal = "" if entry.goal is None else f" ({entry.goal}: {met(entry)})".replace("<", "&lt;")
            cells.append(f"{figure(entry.median)} {entry.unit}{goal}")
        lines.append(f"| {language.title} | {' | '.join(cells)} |")
    subjects = dict.fromkeys(name.partition(": ")[2] for name, row in rows.items() if row.unit.startswith("of "))
    lines += ["", f"| cases of | {' | '.join(language.title for language in measured)} |"]
    lines.append(f"|---|{'--:|' * len(measured)}")
    for subject in subjects:
        entries = [rows[f"{language.name}: {subject}"] for language in measured]
        lines.append(f"| {subject} | {' | '.join(f'{entry.median:g} {entry.unit}' for entry in entries)} |")
    return "\n".join(lines) + "\n"
