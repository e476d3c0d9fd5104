"""Every snippet in README.md and docs/ is executed.

The first line of a fenced block says how, after the language:

    console run         each line that begins with "$ " is a command, which must succeed
    python run          a program that must succeed
    python run model    the same, but it needs the real model
    python inferlet     a program that runs next to the tiny model
    ... file=NAME       written to NAME, for the blocks that follow; of any language
    ... needs=LANGUAGE  left out where the tools that build programs in it are not installed: rust, javascript or c
    ... shown           not executed

The blocks of one file run in order, in one folder. TARTLET_MODEL makes the tiny model the default there.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tartlet
from tartlet.cli import app
from tartlet.languages.registry import language_named

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
TIMEOUT_SECONDS = 300


@dataclass(frozen=True)
class Snippet:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    marks: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def snippets_of(page: Path) -> Iterator[Snippet]:
    content = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(content):
        line = content.count("\n", 0, match.start()) + 1
        yield Snippet(page, line, match[1] or "", tuple(match[2].split()), match[3])


SNIPPETS = [snippet for page in PAGES for snippet in snippets_of(page)]
RUNNING = [page for page in PAGES if any({"run", "inferlet"} & set(snippet.marks) for snippet in snippets_of(page))]


@pytest.mark.parametrize("snippet", SNIPPETS, ids=str)
def test_every_snippet_says_how_it_is_run(snippet: Snippet) -> None:
    """None is forgotten: a block without a mark is an error."""
    allowed = {
        "console": {"run", "model", "shown"},
        "python": {"run", "inferlet", "model", "shown"},
        **{language: {"shown"} for language in ("c", "javascript", "rust", "toml", "typescript")},
    }
    marks = {mark for mark in snippet.marks if not mark.startswith(("file=", "needs="))}

    assert snippet.language in (*allowed, "text", "json", "wit")
    if snippet.language in allowed:
        assert snippet.marks
        assert marks <= allowed[snippet.language]


def run_command(line: str, folder: Path) -> None:
    """Run a line of a console. `tartlet` runs in this process, which has torch imported already."""
    if line.startswith("tartlet "):
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}"
        return
    tools = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    done = subprocess.run(
        line,
        shell=True,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def run_snippet(snippet: Snippet, folder: Path, host: tartlet.sync.Host) -> None:
    values = dict(mark.split("=", 1) for mark in snippet.marks if "=" in mark)
    if "needs" in values and not are_tools_here(values["needs"]):
        return
    if "file" in values:
        path = folder / values["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(snippet.text, encoding="utf-8")
    elif "shown" in snippet.marks:
        pass
    elif snippet.language == "console":
        for line in snippet.text.splitlines():
            if line.startswith("$ "):
                run_command(line.removeprefix("$ "), folder)
    elif "inferlet" in snippet.marks:
        host.run(snippet.text)
    elif "run" in snippet.marks:
        exec(compile(snippet.text, str(snippet), "exec"), {"__name__": "__main__"})


def are_tools_here(language: str) -> bool:
    """Whether programs in a language can be built on this machine."""
    return all(tool.version is not None for tool in language_named(language).tools())


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tartlet.sync.Host]:
    """A host with the tiny model, for all inferlets. What they save does not mix with what the user has saved."""
    with tartlet.sync.Host("tiny", threads=1, kv_pages=256, saved_path=tmp_path_factory.mktemp("saved")) as host:
        yield host


@pytest.mark.runner
@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNING, ids=lambda page: page.name)
def test_the_snippets_of_a_page_work(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: tartlet.sync.Host
) -> None:
    """Whoever follows the page from top to bottom gets no error."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # what a page writes to files, its programs can import
    monkeypatch.setenv("TARTLET_MODEL", "tiny")
    for snippet in snippets_of(page):
        try:
            run_snippet(snippet, tmp_path, host)
        except Exception as error:
            error.add_note(f"in {snippet}")
            raise


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """A link to a file of the repository names one that is there."""
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_every_limit_is_documented() -> None:
    """With its default."""
    from dataclasses import fields

    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    for field in fields(tartlet.Limits):
        assert f"`{field.name}`" in text


def test_every_limit_of_a_tenant_is_documented() -> None:
    """With its default, and of a run's limits the ceiling."""
    from dataclasses import asdict

    from tartlet.server.front.limits import TenantLimits

    def shown(value: int | None) -> str:
        if value is None:
            return "none"
        if value % (1 << 20) == 0 and value:
            return f"{value >> 20:,} MiB" if value < 1 << 30 else f"{value >> 30} GiB"
        return f"{value:,}"

    limits = TenantLimits()
    section = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8").split("## On a server")[1]
    for name, default in asdict(limits.defaults).items():
        assert f"| `{name}` | {shown(default)} | {shown(getattr(limits.ceilings, name))} |" in section
    for name in (name for name in TenantLimits.__slots__ if name not in ("ceilings", "defaults", "component")):
        value = "(none|the server's)" if getattr(limits, name) is None else shown(getattr(limits, name))
        assert re.search(rf"\| `{name}` \|[^|]*\| {value} \|", section), name


def test_every_command_is_documented() -> None:
    """With all of its options that have a long name."""
    import typer

    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    group = typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        assert f"tartlet {name}" in text
        for parameter in command.params:
            long_names = [option for option in parameter.opts if option.startswith("--")]
            if long_names and name == "run":
                assert any(f"`{option}" in text or f" {option} " in text for option in long_names), long_names


def test_every_public_name_of_the_sdk_is_documented() -> None:
    """The reference is whole."""
    text = (ROOT / "docs" / "sdk-python.md").read_text(encoding="utf-8")
    source = (ROOT / "guest-sdk" / "python" / "tartlet_sdk" / "__init__.py").read_text(encoding="utf-8")
    names = re.findall(r'^    "(\w+)",$', source, re.MULTILINE)

    assert names
    assert [name for name in names if not re.search(rf"[`.@]{name}\b", text)] == []


def test_every_public_name_of_the_host_is_documented() -> None:
    """The reference is whole."""
    text = (ROOT / "docs" / "host-api.md").read_text(encoding="utf-8")

    assert [name for name in tartlet.__all__ if f"`{name}" not in text and f"tartlet.{name}" not in text] == []


def test_the_headings_of_the_data_flow_are_files() -> None:
    """A reader can follow a request through the files that the page names."""
    headings = re.findall(r"^## `(.+)`$", (ROOT / "docs" / "data-flow.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert headings
    assert [heading for heading in headings if not (ROOT / heading).exists()] == []
