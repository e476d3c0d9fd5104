"""Writes the transcripts of the suite anew, from the program in Python: `make transcripts`.

Read what changes before you commit it: it is what all languages are held to.
"""

from __future__ import annotations

import json
from collections import defaultdict

import suite
from languages import LANGUAGES

PYTHON = LANGUAGES["python"]


def main() -> None:
    """Run all cases whose transcripts are kept."""
    groups: dict[str, dict[str, list[str]]] = defaultdict(dict)
    cases = suite.read_cases().values()
    with suite.fake_host(PYTHON) as fake, suite.plain_host(PYTHON) as plain, suite.model_host(PYTHON) as tiny:
        hosts = {"fake": fake, "plain": plain, "tiny": tiny}
        for case in cases:
            if case.engine in hosts:
                groups[case.group][case.name] = hosts[case.engine].run(case)
    suite.TRANSCRIPTS.mkdir(exist_ok=True)
    for group, transcripts in groups.items():
        text = json.dumps(transcripts, indent=1, ensure_ascii=False)
        (suite.TRANSCRIPTS / f"{group}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
