from __future__ import annotations

from pathlib import Path

import pytest

from tartlet.cli.server_settings import load_settings
from tartlet.errors import ConfigError


def test_a_misspelt_limit_names_its_file(tmp_path: Path) -> None:
    """And what was meant; a number that cannot be is told in the same way."""
    file = tmp_path / "server.toml"
    for text, words in (("max_tokenz = 5", "max_tokens"), ("max_tokens = -5", "whole number")):
        file.write_text(f"[limits]\n{text}\n")
        with pytest.raises(ConfigError) as error:
            load_settings(config=file)

        assert str(file) in error.value.message
        assert words in error.value.message + error.value.hint


def test_limits_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are named after it; those that are right are taken."""
    monkeypatch.setenv("TARTLET_LIMITS", '{"max_tokens": 5}')
    assert load_settings().settings.limits == {"max_tokens": 5}
    monkeypatch.setenv("TARTLET_LIMITS", '{"tokens_": 5}')
    with pytest.raises(ConfigError, match="from environment"):
        load_settings()
