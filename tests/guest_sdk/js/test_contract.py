"""The types of the host's interfaces in the JavaScript SDK are those of wit/."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from tartlet.contract import contract

SDK = Path(__file__).parents[3] / "guest-sdk" / "js"


def test_the_types_are_those_of_the_contract() -> None:
    """Whoever changes wit/ runs make_types.py again."""
    spec = importlib.util.spec_from_file_location("make_types", SDK / "make_types.py")
    assert spec is not None
    assert spec.loader is not None
    make_types = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_types)

    assert make_types.OUTPUT.read_text() == make_types.declarations(contract())


def test_the_sdk_has_all_that_inferlets_may_import() -> None:
    """Each interface of the world is bound in wit.ts; types have no functions."""
    bound = re.findall(r'"tartlet:inferlet/([\w-]+)@([\d.]+)"', (SDK / "src" / "wit.ts").read_text())

    assert [name for name, _ in bound] == sorted(set(contract().imports("inferlet")) - {"types"})
    assert {version for _, version in bound} == {contract().version}
