from __future__ import annotations

from pathlib import Path

import pytest

from tartlet.cli.with_storage import parse_duration, print_table, shown_time, with_storage
from tartlet.errors import ConfigError, NotFoundError
from tartlet.server.front.storage import Storage


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))
    return tmp_path


async def names(storage: Storage) -> list[str]:
    return [tenant.name for tenant in await storage.tenants.list()]


def test_the_database_is_the_servers(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is named, else that of its settings, else that of its home."""
    with_storage(None, names)
    assert (home / "server" / "tartlet.db").exists()
    monkeypatch.setenv("TARTLET_DATABASE", f"sqlite:///{home / 'set.db'}")
    with_storage(None, names)
    assert (home / "set.db").exists()
    with_storage(str(home / "named.db"), lambda storage: storage.tenants.create("acme"))
    assert with_storage(str(home / "named.db"), names) == ["acme", "default"]
    assert with_storage(None, names) == ["default"]


def test_errors_come_out(home: Path) -> None:
    """Those of the work, and of a database that cannot be."""
    with pytest.raises(NotFoundError):
        with_storage(None, lambda storage: storage.tenants.get("nobody"))
    with pytest.raises(ConfigError):
        with_storage("redis://x", names)


def test_durations_have_units() -> None:
    """Days, hours, minutes, seconds."""
    assert [parse_duration(text) for text in ("2d", "12h", "90m", "10s", "0s")] == [
        172_800_000,
        43_200_000,
        5_400_000,
        10_000,
        0,
    ]
    for wrong in ("", "5", "d", "-1d", "1.5h", "1w", "9" * 10 + "s", "1d\n"):
        with pytest.raises(ConfigError):
            parse_duration(wrong)


def test_times_are_shown_in_utc() -> None:
    """To the minute; what never was is a dash."""
    assert (shown_time(0), shown_time(None)) == ("1970-01-01 00:00", "-")


def test_a_table_obeys_nothing_that_stands_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    """No escape sequences, no markup."""
    print_table(("a", "b"), [("\x1b[31mx", "[red]y[/red]")])
    output = capsys.readouterr().out

    assert "\x1b" not in output
    assert "[red]y[/red]" in output


def test_a_row_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """However long, in a terminal or not: what stands in it can be copied and looked for."""
    print_table(("key", "scopes"), [("tlk_12345678", "x" * 300)])

    assert capsys.readouterr().out.splitlines()[1].split() == ["tlk_12345678", "x" * 300]
