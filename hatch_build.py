"""What a wheel holds besides the two packages: the Python guest SDK, and the Python runner if it has been built.

An editable install finds the former in the repository and builds the latter when it is first needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelContent(BuildHookInterface):
    """Adds files to a wheel that is no editable one."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them; called before the wheel is written."""
        if version != "standard":
            return
        root = Path(self.root)
        for package in ("tartlet_sdk", "tartlet_runner"):
            for path in (root / "guest-sdk" / "python" / package).rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    inside = path.relative_to(root / "guest-sdk" / "python").as_posix()
                    build_data["force_include"][str(path)] = f"tartlet/_guest_sdk/python/{inside}"
        runner = root / "build" / "runner" / "python.wasm"  # `make wheel` puts it there
        if runner.exists():
            build_data["force_include"][str(runner)] = "tartlet/_runner/python.wasm"
