"""What an engine's process is started with, as it stands on its command line."""

from __future__ import annotations

import msgspec

from tartlet.models.catalogue import DEFAULT

CANNOT_START = 2
"""The exit status of a process that would fail again: a setting is wrong, or the model cannot be loaded."""


class FakeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`tartlet.testing.FakeEngine` instead of a model: its arguments."""

    replies: tuple[str, ...] = ()
    token_delay_s: float = 0.0
    num_pages: int = 4096
    page_size: int = 16
    context_len: int = 4096
    model_name: str = "fake"
    adapters: tuple[str, ...] = ()


class EngineSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `compose.start_engine`; no secrets."""

    model: str = DEFAULT
    dtype: str = "auto"
    quantize: str = "none"
    threads: int | None = None
    kv_pages: int | None = None
    swap_bytes: int | None = None
    prefix_cache: bool = True
    saved_path: str | None = None
    saved_bytes: int = 1 << 30
    adapters: dict[str, str] = {}
    adapter_bytes: int = 1 << 30
    fake: FakeSettings | None = None
    """For tests: then nothing else counts."""
