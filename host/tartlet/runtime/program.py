"""A program that is ready to run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal

from tartlet.wasm.linker import LinkedComponent


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A program that a host has loaded; any number of runs can be started of it.

    `Host.load` makes it, and it runs on that host only.
    """

    name: str
    digest: str
    """SHA-256, in hexadecimal, of the component, or of the source files and the runner that runs them."""
    kind: Literal["component", "source"]
    linked: LinkedComponent | None = field(repr=False)
    """The component that runs it as an inferlet, its own or the runner's; None: it is none."""
    controller: LinkedComponent | None = field(repr=False)
    """The component that runs it as a controller; None: it is none."""
    main: str = ""
    """For source: the module that is run."""
    files_json: str = field(default="", repr=False)
    """For source: its files, as the runner takes them."""

    def runner_json(self, input_json: str) -> str | None:
        """What `source.program` gives a runner; None for a component."""
        if self.kind == "component":
            return None
        return f'{{"main":{json.dumps(self.main)},"files":{self.files_json},"input":{input_json}}}'
