"""Finding the guest SDKs."""

from __future__ import annotations

import pytest

from tartlet.errors import BuildError
from tartlet.languages.guest_sdk import sdk_folder


def test_an_sdk_is_found() -> None:
    """In the repository, as here."""
    assert (sdk_folder("python") / "tartlet_sdk").is_dir()


def test_a_missing_one_is_named() -> None:
    """With what to do."""
    with pytest.raises(BuildError, match="'cobol' is not installed") as caught:
        sdk_folder("cobol")
    assert "Install a release" in caught.value.hint
