"""The error that refuses or ends one command, generation or operation, and nothing else."""

from __future__ import annotations

from tartlet_engine.api import EngineError, ErrorCode


class CommandError(Exception):
    """One command cannot be carried out; it becomes a `Failed` event."""

    def __init__(self, code: ErrorCode, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.error = EngineError(code, message, hint)
