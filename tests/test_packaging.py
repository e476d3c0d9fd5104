"""What people install is what lies in the repository."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import tartlet

ROOT = Path(__file__).parent.parent
SDK_FILES = {
    "python": ["tartlet_*/**/*.py"],
    "c": ["include/*.h", "src/*.[ch]"],
    "rust": ["Cargo.toml", "src/**/*.rs", "macros/Cargo.toml", "macros/src/*.rs", "sysroot/*.rs"],
    "js": ["package*.json", "src/**/*.ts", "runner/*.ts"],
}
"""What a program of each language needs to be built."""
WIT_FILES = {path.name for path in (ROOT / "wit").glob("*.wit")}


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel and a source archive."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_wheel_has_both_packages_and_the_contract(archives: Path) -> None:
    """Every module, template and wit file is in it, and nothing else of the repository."""
    (wheel,) = archives.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())

    for source, package in (("host", "tartlet"), ("engine", "tartlet_engine")):
        modules = {path.relative_to(ROOT / source).as_posix() for path in (ROOT / source / package).rglob("*.py")}
        assert modules <= names
        assert f"{package}/py.typed" in names
    kernels = (ROOT / "engine" / "tartlet_engine" / "kernels").glob("*.[ch]")
    assert {f"tartlet_engine/kernels/{path.name}" for path in kernels} <= names
    for sdk, patterns in SDK_FILES.items():
        files = [path for pattern in patterns for path in (ROOT / "guest-sdk" / sdk).glob(pattern)]
        assert files
        assert {f"tartlet/_guest_sdk/{path.relative_to(ROOT / 'guest-sdk').as_posix()}" for path in files} <= names
    assert {f"tartlet/wit/{name}" for name in WIT_FILES} <= names
    assert not [name for name in names if {"__pycache__", "node_modules", "target"} & set(name.split("/"))]
    templates = ROOT / "host" / "tartlet" / "templates"
    files = {path.relative_to(templates).as_posix() for path in templates.rglob("*.template")}
    assert {f"tartlet/templates/{name}" for name in files} <= names
    assert {name.split("/")[0] for name in names} == {
        "tartlet",
        "tartlet_engine",
        f"tartlet-{tartlet.__version__}.dist-info",
    }


def test_the_source_archive_has_what_a_build_and_the_tests_need(archives: Path) -> None:
    """From it, the wheel can be built again."""
    (archive_path,) = archives.glob("*.tar.gz")
    with tarfile.open(archive_path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {f"wit/{name}" for name in WIT_FILES} <= names
    assert {"pyproject.toml", "LICENSE", "README.md", "Makefile", "constraints.txt", "tests/test_packaging.py"} <= names


def test_the_installed_wheel_works(archives: Path, tmp_path: Path) -> None:
    """In an environment without this repository, `tartlet` starts and finds the contract and its template."""
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    (wheel,) = archives.glob("*.whl")
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, str(wheel)], check=True, timeout=300)
    libraries = next(path for path in sys.path if path.endswith("site-packages"))
    environment = {"PYTHONPATH": libraries, "PATH": str(python.parent), "TARTLET_HOME": str(tmp_path / "home")}

    def tartlet_command(*arguments: str) -> str:
        command = [str(python.parent / "tartlet"), *arguments]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
        ).stdout

    code = "import tartlet, importlib.resources as r; print(tartlet.__file__); print(r.files('tartlet') / 'wit')"
    where, contract = subprocess.run(
        [python, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.split()
    assert Path(where).is_relative_to(tmp_path)
    assert {path.name for path in Path(contract).iterdir()} == WIT_FILES
    assert json.loads(tartlet_command("version", "--json")) == {"version": tartlet.__version__}
    tartlet_command("new", "thing")
    assert (tmp_path / "thing" / "main.py").exists()


def test_the_versions_agree() -> None:
    """The newest heading of the changelog is the version, or what will become one."""
    headings = [
        line for line in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines() if line.startswith("## ")
    ]

    assert headings[0].removeprefix("## ").split()[0].strip("[]") in ("Unreleased", tartlet.__version__)


def test_the_pinned_versions_fit_the_declared_ones() -> None:
    """Every dependency has a version in constraints.txt that its range in pyproject.toml allows."""
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {name.lower().replace("_", "-"): version for name, version in (
        line.split("==") for line in lines if not line.startswith("#")
    )}  # fmt: skip
    wanted = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]

    for requirement in map(Requirement, wanted):
        assert requirement.specifier.contains(pinned[requirement.name.lower().replace("_", "-")]), requirement


@pytest.mark.parametrize("path", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"])
def test_the_project_papers_are_there(path: str) -> None:
    """None of them is empty."""
    assert (ROOT / path).read_text(encoding="utf-8").strip()
