"""Which part may import which. Each rule is also a lint rule or an import contract; here it is checked as it runs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOST = ROOT / "host" / "tartlet"
ENGINE = ROOT / "engine" / "tartlet_engine"

# Imports every module of a package while a finder refuses the banned ones, so that no detour goes unseen.
IMPORT_ALL = """
import importlib, importlib.abc, pkgutil, sys

package, *banned = sys.argv[1:]

class Refusing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if any(name == each or name.startswith(each + ".") for each in banned):
            raise AssertionError(f"{package} must not import {name}")
        return None

sys.meta_path.insert(0, Refusing())
root = importlib.import_module(package)
for module in pkgutil.walk_packages(root.__path__, package + "."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name != "triton":  # the GPU's part of the engine; not for every platform
                raise
"""


def import_all(package: str, *banned: str) -> subprocess.CompletedProcess[str]:
    """Import all of a package in a process of its own, with the banned modules out of reach."""
    return subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, package, *banned], capture_output=True, text=True, check=False, timeout=120
    )


def imported_names(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield each absolute import of a file as a dotted name, and whether it stands at module level."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inner = {node for outer in ast.walk(tree) if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
             for node in ast.walk(outer)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node not in inner) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from ((f"{node.module}.{alias.name}", node not in inner) for alias in node.names)


def is_under(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def test_the_whole_host_imports_without_the_engine_and_torch() -> None:
    """Importing any module of the host needs nothing of the model side but the messages."""
    modules = {path.stem for path in ENGINE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    others = [f"tartlet_engine.{name}" for name in modules - {"__init__", "api"}]
    done = import_all("tartlet", "torch", "transformers", "tokenizers", "safetensors", "numpy", *others)

    assert done.returncode == 0, done.stderr


def test_the_whole_engine_imports_without_the_host_and_wasm() -> None:
    """Importing any module of the engine needs neither the host nor a Wasm runtime nor a web framework."""
    done = import_all("tartlet_engine", "tartlet", "wasmtime", "cffi", "starlette", "uvicorn")

    assert done.returncode == 0, done.stderr


def test_the_messages_import_nothing_heavy() -> None:
    """A process that only speaks to an engine needs no torch."""
    code = "import sys, tartlet_engine.api; print(sorted({'torch', 'transformers', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", sorted((ENGINE / "api").glob("*.py")), ids=lambda path: path.stem)
def test_the_messages_know_nothing_of_the_engine(path: Path) -> None:
    """A file of `api` imports msgspec, the standard library and the other files of `api`."""
    for name, _ in imported_names(path):
        top = name.split(".")[0]
        assert top in sys.stdlib_module_names or top == "msgspec" or is_under(name, "tartlet_engine.api"), name


def test_a_planted_import_is_seen() -> None:
    """The check itself works: what is banned cannot be imported by any detour."""
    done = import_all("tartlet", "msgspec")

    assert "must not import msgspec" in done.stderr


@pytest.mark.parametrize("path", sorted(HOST.rglob("*.py")), ids=lambda path: str(path.relative_to(HOST)))
def test_only_compose_knows_the_engine(path: Path) -> None:
    """A file of the host imports tartlet_engine.api alone; compose.py imports the rest, inside functions."""
    for name, is_at_module_level in imported_names(path):
        if is_under(name, "tartlet_engine") and not is_under(name, "tartlet_engine.api"):
            assert path == HOST / "compose.py", f"{path} imports {name}"
            assert not is_at_module_level, f"{name} must be imported inside a function"


@pytest.mark.parametrize("path", sorted((HOST / "wasm").rglob("*.py")), ids=lambda path: path.stem)
def test_the_wasm_binding_knows_no_tartlet_interface(path: Path) -> None:
    """Wasm/ is below everything else of the host."""
    below = (
        "tartlet.wasm",
        "tartlet.component_limits",
        "tartlet.disk_cache",
        "tartlet.errors",
        "tartlet.limits",
        "tartlet.paths",
        "tartlet.progress",
        "tartlet.__version__",
    )
    for name, _ in imported_names(path):
        if is_under(name, "tartlet"):
            assert any(is_under(name, allowed) for allowed in below), f"{path} imports {name}"
        assert not is_under(name, "tartlet_engine"), f"{path} imports {name}"


@pytest.mark.parametrize("path", sorted((HOST / "bindings").glob("*.py")), ids=lambda path: path.stem)
def test_bindings_are_named_after_the_contract(path: Path) -> None:
    """One file for each interface of wit/, of the same name."""
    interfaces = {wit.stem for wit in (ROOT / "wit").glob("*.wit")}

    assert path.stem in interfaces | {"__init__"} or path.stem.startswith("_")
