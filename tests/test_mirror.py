"""Every module has its tests where one looks for them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Modules whose tests stand elsewhere, and where.
TESTED_ELSEWHERE = {
    **{
        f"engine/tartlet_engine/api/{name}.py": "tests/engine/api/test_messages.py sends every message"
        for name in ("commands", "constraint_commands", "events", "forward_messages", "values")
    },
    "engine/tartlet_engine/command_error.py": "an exception; tests/engine/test_commands.py raises it in every way",
    "host/tartlet/server/engine/messages.py": "messages; tests/host/server/engine/test_session.py sends them",
    "host/tartlet/server/engine/settings.py": "settings; tests/host/server/engine/test_process.py gives them",
    "host/tartlet/server/worker/messages.py": "messages; tests/host/server/worker/test_service.py sends them",
    "host/tartlet/server/compile/messages.py": "messages; tests/host/server/compile/test_client.py sends them",
    "host/tartlet/server/worker/prepare.py": "tests/host/server/front/processes/test_preparation.py runs it",
    "host/tartlet/server/requests.py": "messages; tests/host/server/test_host_sandboxes.py sends them",
    "host/tartlet/server/front/storage/tables.py": "tables; the tests of what reads and writes them",
    "host/tartlet/server/sandboxes.py": "protocols; tests/host/server/test_host_sandboxes.py uses them",
    "host/tartlet/server/front/services.py": "a record; the tests of all routes use it",
    "guest-sdk/bindings/tartlet_bindings/model.py": "records; tests/guest_sdk/bindings/test_reading.py makes each",
    "host/tartlet/languages/language.py": "records; tests/host/languages/test_registry.py finds languages by them",
    "host/tartlet/progress.py": "a protocol; the tests of everything that reports use it",
}

PLACES = {
    "host/tartlet": "tests/host",
    "engine/tartlet_engine": "tests/engine",
    "guest-sdk/python/tartlet_sdk": "tests/guest_sdk",
    "guest-sdk/bindings/tartlet_bindings": "tests/guest_sdk/bindings",
}


def has_code(path: Path) -> bool:
    """Tell whether a module defines a function or a class with a body of its own."""
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return any(isinstance(node, definitions) for node in ast.parse(path.read_text(encoding="utf-8")).body)


def modules_without_a_mirror() -> list[str]:
    missing = []
    for source, tests in PLACES.items():
        for path in sorted((ROOT / source).rglob("*.py")):
            inside = path.relative_to(ROOT / source)
            if path.name in ("__init__.py", "__main__.py") or not has_code(path):
                continue
            if not list((ROOT / tests / inside.parent).glob(f"test_{inside.stem.lstrip('_')}*.py")):
                missing.append(f"{source}/{inside.as_posix()}")
    return missing


def test_every_module_has_a_mirrored_test() -> None:
    """A module without tests of its own is in the list above, with the reason."""
    assert sorted(set(modules_without_a_mirror()) - set(TESTED_ELSEWHERE)) == []


@pytest.mark.parametrize("module", sorted(TESTED_ELSEWHERE))
def test_the_list_is_true(module: str) -> None:
    """What is listed exists and still has no mirrored test."""
    assert (ROOT / module).exists()
    assert module in modules_without_a_mirror()
