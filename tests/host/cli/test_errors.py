from __future__ import annotations

import errno

import pytest
import typer

from tartlet import errors
from tartlet.cli.errors import exit_code, report, reporting


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.GuestError("x"), 1),
        (errors.GuestTrapError("x"), 1),
        (errors.InvalidHandleError("x"), 1),
        (errors.DeadlockError("x"), 1),
        (errors.ConfigError("x"), 2),
        (errors.LimitExceededError("cpu_limit", limit="max_cpu_ms", used=2, allowed=1), 3),
        (errors.InvalidComponentError("x"), 4),
        (errors.BuildError("x"), 4),
        (errors.ModelError("x"), 4),
        (errors.EngineStoppedError("x"), 70),
        (ValueError("x"), 70),
        (errors.RunCancelledError("x"), 130),
        (KeyboardInterrupt(), 130),
    ],
)
def test_every_error_has_its_exit_code(error: BaseException, code: int) -> None:
    """The codes are those that `tartlet --help` documents."""
    assert exit_code(error) == code


def test_an_error_is_shown_with_its_hint_and_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """One line says what happened, one what to do; escape sequences in them are harmless."""
    report(errors.ModelError("no model \x1b[2J", hint="take another"))

    assert capsys.readouterr().err.splitlines() == ["error[model] no model ␛[2J", "hint take another"]


def test_a_fault_of_ours_is_named_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    """The user learns how to see more."""
    report(ZeroDivisionError("division by zero"))

    err = capsys.readouterr().err
    assert err.startswith("internal error ZeroDivisionError: division by zero\n")
    assert "TARTLET_DEBUG=1" in err
    assert "Traceback" not in err


def test_debugging_shows_the_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """If asked for by TARTLET_DEBUG."""
    monkeypatch.setenv("TARTLET_DEBUG", "1")

    report(errors.ConfigError("wrong"))

    assert "ConfigError: wrong" in capsys.readouterr().err


def test_a_command_ends_with_the_code_of_what_it_raises(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a command raises, nothing but an exit comes out; its own exits stay."""

    def fail(error: BaseException) -> None:
        raise error

    with pytest.raises(typer.Exit) as caught:
        reporting(fail)(errors.ModelError("gone"))
    assert caught.value.exit_code == 4

    with pytest.raises(typer.Exit) as caught:
        reporting(fail)(typer.Exit(7))
    assert caught.value.exit_code == 7


def test_a_disk_that_refuses_is_no_fault_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    """The user can free some space, or choose another folder."""
    code = report(OSError(errno.ENOSPC, "No space left on device", "/there"))

    assert code == 4
    err = capsys.readouterr().err
    assert err.startswith("error[disk] [Errno 28] No space left on device: '/there'\n")
    assert "TARTLET_HOME" in err
