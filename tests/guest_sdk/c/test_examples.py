"""The examples in C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / "examples" / "languages" / "c"


@pytest.mark.parametrize("name", sorted(path.parent.name for path in EXAMPLES.glob("*/main.c")))
def test_an_example_runs_as_it_is(c_host: Any, name: str) -> None:
    """Without an input it prints something and returns something; a host builds it by itself."""
    text, result = c_host.output(EXAMPLES / name)

    assert text
    assert result


def test_they_take_their_input(c_host: Any) -> None:
    """And refuse what they cannot do, with what they can."""
    assert c_host.output(EXAMPLES / "hello", {"name": "Ada"})[1] == "Hello, Ada!"
    assert len(c_host.output(EXAMPLES / "fork_tree", {"branches": 3, "depth": 2})[1]) == 9
    with pytest.raises(Exception, match="it can be 1 to 32"):
        c_host.output(EXAMPLES / "best_of_n", {"n": 99})
