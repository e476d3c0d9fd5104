"""What a wheel holds besides the two packages: the guest SDKs, and the runners of languages that have been built.

An editable install finds the former in the repository and builds the latter when they are first needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SDKS = {
    "python": ("tartlet_sdk", "tartlet_runner"),
    "rust": ("Cargo.toml", "README.md", "src", "macros", "sysroot"),
    "js": ("package.json", "package-lock.json", "tsconfig.json", "README.md", "src", "runner"),
    "c": ("README.md", "include", "src"),
}
"""What of the folders of guest-sdk/ a program needs to be built."""
MADE_BY_TOOLS = {"__pycache__", "node_modules", "target"}


class WheelContent(BuildHookInterface):
    """Adds files to a wheel that is no editable one."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them; called before the wheel is written."""
        if version != "standard":
            return
        root = Path(self.root)
        included = build_data["force_include"]
        for sdk, parts in SDKS.items():
            for part in parts:
                top = root / "guest-sdk" / sdk / part
                for path in [top, *top.rglob("*")]:
                    inside = path.relative_to(root / "guest-sdk")
                    if path.is_file() and not MADE_BY_TOOLS & set(inside.parts):
                        included[str(path)] = f"tartlet/_guest_sdk/{inside.as_posix()}"
        for runner in (root / "build" / "runner").glob("*.wasm"):  # `make wheel` puts them there
            included[str(runner)] = f"tartlet/_runner/{runner.name}"
