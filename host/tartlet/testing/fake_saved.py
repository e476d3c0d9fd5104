"""The saved contexts of the fake engine: tokens by tenant and name, in memory."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tartlet_engine.api import EngineError, ErrorCode, SaveContext, SavedContext

BYTES_PER_TOKEN = 100
MAX_BYTES = 10_000_000
"""What the saved contexts of one tenant may take."""


@dataclass(frozen=True, slots=True)
class FakeSaved:
    """One saved context."""

    token_ids: tuple[int, ...]
    host_state: str
    adapter: str | None
    expires_ns: int | None
    """On the monotonic clock."""


class FakeSavedContexts:
    """Keep what contexts are saved."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._saved: dict[tuple[str, str], FakeSaved] = {}

    def put(
        self, tenant: str, command: SaveContext, token_ids: list[int], adapter: str | None = None
    ) -> EngineError | None:
        """Keep a context; or say why that cannot be."""
        self._expire()
        key = tenant, command.name
        if key in self._saved and not command.overwrite:
            message = f"there is a saved context {command.name!r} already"
            return EngineError(ErrorCode.ALREADY_EXISTS, message, "Save with overwrite.")
        others = [saved for other, saved in self._saved.items() if other[0] == tenant and other != key]
        used = sum(len(saved.token_ids) for saved in others) * BYTES_PER_TOKEN
        needed = len(token_ids) * BYTES_PER_TOKEN
        if used + needed > MAX_BYTES:
            message = f"saving needs {needed:,} bytes; {used:,} of {MAX_BYTES:,} are used"
            return EngineError(ErrorCode.QUOTA_EXCEEDED, message)
        expires_ns = None if command.ttl_ms is None else time.monotonic_ns() + command.ttl_ms * 1_000_000
        self._saved[key] = FakeSaved(tuple(token_ids), command.host_state, adapter, expires_ns)
        return None

    def get(self, tenant: str, name: str) -> FakeSaved | EngineError:
        """A saved context; or why there is none."""
        self._expire()
        return self._saved.get((tenant, name)) or _not_found(name)

    def of_tenant(self, tenant: str) -> tuple[SavedContext, ...]:
        """What a tenant has, by name."""
        self._expire()
        now_ns = time.monotonic_ns()
        return tuple(
            SavedContext(
                name=name,
                model=self._model,
                num_tokens=len(saved.token_ids),
                num_bytes=len(saved.token_ids) * BYTES_PER_TOKEN,
                expires_in_ms=None if saved.expires_ns is None else (saved.expires_ns - now_ns) // 1_000_000,
                adapter=saved.adapter,
            )
            for (owner, name), saved in sorted(self._saved.items())
            if owner == tenant
        )

    def delete(self, tenant: str, name: str) -> EngineError | None:
        """Forget one; or say that it is not there."""
        self._expire()
        return None if self._saved.pop((tenant, name), None) else _not_found(name)

    def _expire(self) -> None:
        now_ns = time.monotonic_ns()
        self._saved = {
            key: saved for key, saved in self._saved.items() if saved.expires_ns is None or saved.expires_ns > now_ns
        }


def _not_found(name: str) -> EngineError:
    return EngineError(ErrorCode.NOT_FOUND, f"there is no saved context {name!r}")
