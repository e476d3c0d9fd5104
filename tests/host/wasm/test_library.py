"""The loaded library."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tartlet.wasm.library import check, new_error, take_error


@pytest.mark.parametrize("message", ["", "plain", "é\U0001f600", "zero \0 inside", "lone \ud800"])
def test_errors_carry_their_message(message: str) -> None:
    """An error's message survives the way through Wasmtime, but for what C strings and UTF-8 cannot hold."""
    expected = message.replace("\0", "").replace("\ud800", "?")

    assert take_error(new_error(message)) == expected


def test_check() -> None:
    """An error that a Wasmtime function returns is raised; none is not."""
    check(0)
    with pytest.raises(RuntimeError, match="broken"):
        check(new_error("broken"))


def test_other_version_of_wasmtime() -> None:
    """Another version of the wasmtime package is refused on import, with what to do."""
    program = """if True:
        import importlib.metadata
        importlib.metadata.version = lambda name: "51.0.0"
        from tartlet.errors import ConfigError
        try:
            import tartlet.wasm.library
        except ConfigError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "needs the package wasmtime 50.0.1, but 51.0.0 is installed" in done.stdout
    assert "pip install wasmtime==50.0.1" in done.stdout
