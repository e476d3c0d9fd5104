"""The server's settings, with what only a part of the server can check."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tartlet.errors import ConfigError

if TYPE_CHECKING:
    from tartlet.server.settings import LoadedSettings


def load_settings(flags: Mapping[str, Any] | None = None, config: Path | None = None) -> LoadedSettings:
    """As `settings.load`, for a server: the limits of tenants must be such.

    Raises: ConfigError, with the file or the other place that a wrong limit comes from.
    """
    from tartlet.server import settings
    from tartlet.server.front.limits import tenant_limits

    loaded = settings.load(flags, config)
    try:
        tenant_limits(loaded.settings.limits)
    except ConfigError as error:
        raise ConfigError(f"limits (from {loaded.place('limits')}): {error.message}", hint=error.hint) from None
    return loaded
