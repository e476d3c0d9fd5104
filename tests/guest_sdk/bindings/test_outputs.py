"""The files that are made of the contract."""

from __future__ import annotations

from tartlet_bindings.outputs import ROOT, outputs


def test_what_is_committed_is_what_it_writes() -> None:
    """Who changes wit/ or the generator calls `make bindings`."""
    stale = [
        str(path.relative_to(ROOT))
        for path, text in outputs().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]

    assert stale == [], "call `make bindings`"
