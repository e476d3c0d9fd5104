from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tartlet.cli import app
from tartlet.cli.new import TEMPLATES, Kind, Lang
from tartlet.languages.python import has_controller, has_inferlet, read_source
from tartlet.languages.registry import language_of


def test_a_new_program_has_its_name_in_it(tmp_path: Path) -> None:
    """The files are there, and the README is about this very program."""
    folder = tmp_path / "my_inferlet"

    result = CliRunner().invoke(app, ["new", str(folder), "--json"])

    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "main.py"]
    assert json.loads(result.stdout)["name"] == "my_inferlet"
    assert (folder / "README.md").read_text().startswith("# my_inferlet\n")
    compile((folder / "main.py").read_text(), "main.py", "exec")


def test_a_new_controller(tmp_path: Path) -> None:
    """Its files are a controller's, and what is told to do runs it."""
    folder = tmp_path / "loud"

    result = CliRunner().invoke(app, ["new", str(folder), "--template", "controller"])

    assert result.exit_code == 0, result.output
    assert f"tartlet run --controller {folder} --prompt" in result.stdout
    assert has_controller(read_source(folder))
    assert not has_inferlet(read_source(folder))
    assert f"tartlet run --controller {folder}" in (folder / "README.md").read_text()


def test_nothing_is_ever_written_over(tmp_path: Path) -> None:
    """A folder that holds something is refused and stays as it is."""
    (tmp_path / "precious").write_text("data")

    result = CliRunner().invoke(app, ["new", str(tmp_path)])

    assert result.exit_code == 2
    assert "is there already" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize("name", ["1st", "a b", "ä", "-x"])
def test_a_name_that_cannot_be_a_program_is_refused(tmp_path: Path, name: str) -> None:
    """The error says what a name may be."""
    result = CliRunner().invoke(app, ["new", "--", str(tmp_path / name)])

    assert result.exit_code == 2
    assert "no name for a program" in result.stderr
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("lang", "file"), [("ts", "tsconfig.json"), ("rust", ".cargo/config.toml"), ("c", "compile_flags.txt")]
)
def test_editors_are_told_where_the_sdk_is(tmp_path: Path, lang: str, file: str) -> None:
    """In a file of the form that those of the language read."""
    result = CliRunner().invoke(app, ["new", str(tmp_path / "x"), "--lang", lang])
    places = re.findall(r"/[^\s\"*]+", (tmp_path / "x" / file).read_text())

    assert result.exit_code == 0, result.output
    assert any(Path(place).exists() and "guest-sdk" in place for place in places)


def files_below(folder: Path) -> list[Path]:
    """All but what says which versions were built with, which belongs to the source."""
    return sorted(path for path in folder.rglob("*") if path.name != "Cargo.lock")


def test_a_template_that_is_not_there_says_which_are(tmp_path: Path) -> None:
    """Not every language has one of a controller."""
    result = CliRunner().invoke(app, ["new", str(tmp_path / "x"), "--lang", "c", "--template", "controller"])

    assert result.exit_code == 2
    assert "no template of a controller in c" in result.stderr
    assert "There is one in python" in result.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.runner
@pytest.mark.slow
@pytest.mark.parametrize(("lang", "kind"), TEMPLATES, ids=lambda value: str(value))
def test_a_template_runs_as_it_is(tmp_path: Path, lang: Lang, kind: Kind) -> None:
    """From its folder, and as a component that is built of it."""
    folder = tmp_path / "my-program"
    made = CliRunner().invoke(app, ["new", str(folder), "--lang", lang, "--template", kind, "--json"])
    assert made.exit_code == 0, made.output
    missing = [tool for tool in language_of(folder).tools() if tool.version is None]
    if missing:
        pytest.skip(f"{missing[0].name} is not installed")
    before = files_below(folder)
    component = tmp_path / "built.wasm"
    options = ["--model", "tiny", "--quiet", "--seed", "1"]

    ran = CliRunner().invoke(app, [*shlex.split(json.loads(made.stdout)["run"])[1:], *options])
    assert ran.exit_code == 0, ran.output
    built = CliRunner().invoke(app, ["build", str(folder), "--output", str(component)])
    assert built.exit_code == 0, built.output
    command = [str(component) if each == str(folder) else each for each in shlex.split(json.loads(made.stdout)["run"])]
    again = CliRunner().invoke(app, [*command[1:], *options])

    assert again.exit_code == 0, again.output
    assert again.stdout == ran.stdout
    assert ran.stdout.strip()
    assert files_below(folder) == before  # nothing is built beside the source
