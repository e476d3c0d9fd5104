from __future__ import annotations

from pathlib import Path

import pytest

from tartlet import doctor


def test_nothing_that_goes_wrong_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that cannot be used, and all that depends on it, are findings with their names."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path / "file"))

    findings = {finding.name: finding for finding in doctor.examine()}

    assert findings["tartlet"].is_ok
    assert findings["machine"].is_ok
    broken = {"home", "models", "components", "runners", "packed models", "saved contexts"}
    broken |= {"default model", "self-test"}
    assert {name for name, finding in findings.items() if not finding.is_ok} == broken
    assert all(findings[name].hint for name in broken)
