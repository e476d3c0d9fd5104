from __future__ import annotations

import json

from benchmarks import guest_readme
from benchmarks.languages import MOST_KB, MOST_START_MS, PROGRAMS
from tartlet.languages.registry import LANGUAGES


def entry(name: str, value: float, unit: str, limit: float | None = None) -> dict[str, object]:
    goal = None if limit is None else {"limit": limit, "is_minimum": False}
    return {"name": name, "values": [value], "unit": unit, "goal": goal, "num_busy": 0}


def test_a_line_for_each_language_and_for_each_subject() -> None:
    """Languages that were not measured, for want of tools, are left out."""
    rows = [
        entry("c: build", 0.1, "s"),
        entry("c: component", 41.7, "KB"),
        entry("c: start", 0.2, "ms", 0.3),
        entry("c: memory of a waiting run", 99.0, "KB", 64.0),
        entry("c: models", 7, "of 8"),
    ]
    written = guest_readme.tables(json.dumps({"machine": {"date": "D", "processor": "P", "cores": 2}, "rows": rows}))

    assert "| C | 41.7 KB | 0.1 s | 0.2 ms (&lt;= 0.3: yes) | 99 KB (&lt;= 64: NO) |" in written
    assert "| models | 7 of 8 |" in written
    assert "Python" not in written


def test_every_language_is_measured() -> None:
    """With a program of its own, and goals."""
    names = {language.name for language in LANGUAGES}

    assert names <= set(PROGRAMS)
    assert names <= set(MOST_START_MS)
    assert names <= set(MOST_KB)


def test_the_readme_has_its_markers() -> None:
    """One pair."""
    text = guest_readme.README.read_text(encoding="utf-8")

    assert text.count(guest_readme.BEGIN) == text.count(guest_readme.END) == 1
