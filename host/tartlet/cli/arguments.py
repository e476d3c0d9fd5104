"""What the user typed, made into a program's input, limits and adapters."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from tartlet.errors import ConfigError
from tartlet.limits import Limits


def parse_input(text: str | None, pairs: Sequence[str]) -> Any:
    """Make a program's input of `--input` and key=value arguments.

    Args:
        text: JSON, `@` and a file with JSON, `-` for JSON on stdin, or None.
        pairs: `key=value`; a value that is JSON is taken as JSON, any other as a string. They go over `text`.

    Raises:
        ConfigError: something is not of this form.
    """
    value: Any = {} if text is None else _read_json(text)
    if not pairs:
        return value
    if not isinstance(value, dict):
        raise ConfigError(f"key=value arguments need --input to be a JSON object, it is {json.dumps(value)[:60]}")
    for pair in pairs:
        key, separator, argument = pair.partition("=")
        if not separator or not key:
            raise ConfigError(f"{pair!r} is no argument of the form key=value", hint='For example: n=3 topic="cats"')
        value[key] = _json_or_text(argument)
    return value


def parse_prompt(text: str) -> str:
    """The prompt for a controller: the text itself, or of `@` and a file what is in it. Raises ConfigError."""
    return _read_file(text[1:]) if text.startswith("@") else text


def parse_config(text: str | None) -> Any:
    """The config for a controller, out of JSON, or of `@` and a file with JSON; None: none. Raises ConfigError."""
    return None if text is None else _read_json(text, "--config")


def parse_limits(settings: Sequence[str]) -> Limits:
    """Make limits of `name=value` settings over the defaults; the value `none` is no limit.

    Raises:
        ConfigError: an unknown name (with the one that comes close), or a value that is no positive integer.
    """
    names = [field.name for field in fields(Limits)]
    chosen: dict[str, int | None] = {}
    for setting in settings:
        name, separator, value = setting.partition("=")
        full_name = name if name.startswith("max_") else f"max_{name}"
        if not separator or full_name not in names:
            close = difflib.get_close_matches(full_name, names, n=1)
            guess = f"Did you mean {close[0]}? " if close else ""
            raise ConfigError(f"{setting!r} sets no limit", hint=f"{guess}Limits are: {', '.join(names)}.")
        chosen[full_name] = _limit_value(full_name, value)
    return Limits(**chosen)


def parse_adapters(settings: Sequence[str]) -> dict[str, str]:
    """Make folders by name of `name=folder` settings.

    Raises:
        ConfigError: one is not of this form, or there are two of one name.
    """
    folders: dict[str, str] = {}
    for setting in settings:
        name, separator, folder = setting.partition("=")
        if not (name and separator and folder):
            raise ConfigError(f"{setting!r} is no adapter", hint="For example: --adapter polite=folder/of/the/adapter")
        if name in folders:
            raise ConfigError(f"there are two adapters named {name!r}")
        folders[name] = folder
    return folders


def _limit_value(name: str, value: str) -> int | None:
    if value.lower() == "none":
        return None
    try:
        return int(value)
    except ValueError:
        raise ConfigError(f"{name} must be a whole number or `none`, got {value!r}") from None


def _read_file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"cannot read {path}: {reason}") from None


def _read_json(text: str, origin: str = "--input") -> Any:
    if text == "-":
        origin, text = "stdin", sys.stdin.read()
    elif text.startswith("@"):
        origin = text[1:]
        text = _read_file(origin)
    if not text.strip():
        raise ConfigError(f"{origin} is empty; it must be JSON", hint="Give {} if there are no arguments.")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{origin} is not JSON: {error}", hint="""For example: --input '{"n": 3}'""") from None


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
