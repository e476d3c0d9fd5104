"""Where the guest SDKs lie: inside the installed package, or in the repository beside it."""

from __future__ import annotations

from pathlib import Path

from tartlet.errors import BuildError

PACKAGE = Path(__file__).parent.parent
_ROOTS = (PACKAGE / "_guest_sdk", PACKAGE.parent.parent / "guest-sdk")


def sdk_folder(name: str) -> Path:
    """The folder `name` of guest-sdk/, such as `python`. Raises BuildError if it is in neither place."""
    for root in _ROOTS:
        if (root / name).is_dir():
            return root / name
    hint = "Install a release of tartlet, or run it from its repository."
    raise BuildError(f"the guest SDK {name!r} is not installed", hint=hint)
