from __future__ import annotations

from pathlib import Path

import pytest

from tartlet import doctor
from tartlet.languages import componentize
from tartlet.languages.registry import LANGUAGES


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


def test_each_tool_that_builds_programs_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its version; one that is missing is no fault, and tells how to install it."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path / "file"))  # nothing else is looked at for long
    monkeypatch.setattr(componentize, "installed_version", lambda: None)

    findings = {finding.name: finding for finding in doctor.examine()}

    for language in LANGUAGES:
        for tool in language.tools():
            assert findings[tool.name].is_ok
            assert language.title in findings[tool.name].detail
            assert (tool.version or "not installed") in findings[tool.name].detail
    assert "pip install 'tartlet[build]'" in findings["componentize-py"].hint
