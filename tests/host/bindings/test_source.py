from typing import Any

import pytest

import tartlet


def test_only_runners_of_ours_may_import_it(fake: Any, component: Any) -> None:
    """A program that asks for `source` is refused when it is loaded."""
    with pytest.raises(tartlet.InvalidComponentError, match="tartlet:inferlet/source") as caught:
        fake.host.load(component("", uses=("source",)))

    assert caught.value.code == "unknown_import"
