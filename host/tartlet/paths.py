"""Where Tartlet keeps its files: `TARTLET_HOME`, by default the user's cache directory. Never inside a repository."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from tartlet.errors import ConfigError


def home() -> Path:
    """The root of everything that Tartlet stores. Not created by this call."""
    configured = os.environ.get("TARTLET_HOME")
    if configured:
        return Path(configured).expanduser().absolute()
    return Path(platformdirs.user_cache_dir("tartlet", appauthor=False))


def folder(name: str) -> Path:
    """The folder `name` under `home()`, created if it is not there; readable by its owner only.

    Raises:
        ConfigError: It cannot be made.
    """
    path = home() / name
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot make the folder {path}: {error.strerror}", hint="Let TARTLET_HOME name a folder of your own."
        ) from error
    return path


def models_folder() -> Path:
    """Fetched and converted models."""
    return folder("models")


def components_folder() -> Path:
    """Compiled components. Native code that is trusted: only this host writes here."""
    return folder("components")


def runners_folder() -> Path:
    """Language runners that were built here."""
    return folder("runners")


def built_folder() -> Path:
    """Components of programs that were built to be run here."""
    return folder("built")


def javascript_folder() -> Path:
    """What npm has installed to build JavaScript programs."""
    return folder("javascript")


def rust_folder() -> Path:
    """What Rust's tools keep between builds: standard libraries, compiled crates, cargo's own files."""
    return folder("rust")


def packed_folder() -> Path:
    """Models as the engine's kernels hold them. Only the engine writes here."""
    return folder("packed")


def saved_folder() -> Path:
    """Saved contexts. Only the engine writes here."""
    return folder("saved")


def server_folder() -> Path:
    """The server's database, and what tenants have uploaded. Only the server's front writes here."""
    return folder("server")


def tenants_code_folder() -> Path:
    """What compile children have made of tenants' programs, a folder for each tenant; workers load it."""
    return folder("server/code")
