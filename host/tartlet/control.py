"""Generations with a controller and no program of their own: `Host.control` runs an inferlet that comes along."""

from __future__ import annotations

from typing import Any

from tartlet import arguments
from tartlet.errors import ConfigError

SOURCE = "from tartlet_runner.control import control\n"
"""The inferlet, which is part of the Python runner."""

CONTROLLER = "controller"
"""The name by which it asks for the controller."""


def control_input(
    prompt: str, config: Any, *, chat: bool, max_tokens: int | None, temperature: float
) -> dict[str, Any]:
    """The inferlet's input. Raises ConfigError for arguments of another type, or a config that is not JSON."""
    arguments.check_text("prompt", prompt)
    arguments.check_switch("chat", chat)
    arguments.check_count("max_tokens", max_tokens, least=1, may_be_none=True)
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not temperature >= 0:
        raise ConfigError(f"temperature must be a number from 0, got {temperature!r}")
    return {
        "controller": CONTROLLER,
        "config": arguments.checked_json(config),
        "prompt": prompt,
        "chat": chat,
        "max_tokens": max_tokens,
        "temperature": float(temperature),
    }
