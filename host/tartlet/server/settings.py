"""The server's settings: flags before environment before file before default, and where each value comes from."""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from tartlet import paths
from tartlet.errors import ConfigError

DEFAULT_MODEL = "smollm2-135m-instruct"
PREFIX = "TARTLET_"
FILE_NAME = "server.toml"
"""In `TARTLET_HOME`; read if it is there and no other file is named."""
OTHER_VARIABLES = frozenset({"TARTLET_HOME", "TARTLET_DEBUG", "TARTLET_CPU_KERNELS"})
"""Variables of the environment that are no settings of the server."""
MIB = 1 << 20

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]


class Settings(BaseSettings):
    """What an operator can set. In the environment, names are in capitals after `TARTLET_`."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    host: str = Field("127.0.0.1", description="The address that the server listens on.")
    port: int = Field(8000, ge=0, le=65_535, description="Its port; 0 for one that is free.")
    in_process: bool = Field(False, description="Run programs and the model in the front's process, for development.")
    workers: int = Field(2, ge=1, le=256, description="Processes that run programs.")

    model: str = Field(DEFAULT_MODEL, description="A name, Hugging Face id, folder or .gguf file.")
    dtype: str = Field("auto", description="float32, bfloat16 or auto.")
    quantize: str = Field("none", description="Format of the weights in memory: int8, int4 or none.")
    threads: Count | None = Field(None, description="CPU threads of the model; all cores if not given.")
    kv_pages: Count | None = Field(None, description="Pages of the KV pool; by memory if not given.")
    swap_bytes: int | None = Field(None, ge=0, description="Memory for pages that must leave the KV pool.")
    prefix_cache: bool = Field(True, description="Keep computed pages for prompts that begin with the same tokens.")
    saved_bytes: int = Field(1 << 30, ge=0, description="What the saved contexts of one tenant may take.")
    adapters: dict[str, str] = Field({}, description="Folders of LoRA adapters (PEFT) by name.")
    adapter_bytes: int = Field(1 << 30, ge=0, description="Memory that all adapters together may take.")

    database: SecretStr | None = Field(
        None, description="URL of the database, which may hold a password; SQLite in TARTLET_HOME if not given."
    )
    keep_runs_days: int = Field(90, ge=1, le=3650, description="How long the record of a run is kept after its end.")
    max_body_bytes: int = Field(2 * MIB, ge=1024, le=1 << 30, description="The longest body of a request.")
    max_upload_bytes: int = Field(16 * MIB, ge=1024, le=1 << 30, description="The largest program.")
    max_runs: Count | None = Field(None, description="Runs of all tenants at once; others wait. No limit if not given.")
    limits: dict[str, int | None] = Field(
        {}, description="What every tenant may use, as in `tartlet tenant set --limit`; a tenant's own go over it."
    )
    compile_at_once: int = Field(2, ge=1, le=64, description="Uploads that are compiled at once, a process for each.")
    compile_cpu_s: int = Field(
        30, ge=1, le=3600, description="CPU time that compiling one may take; in all, 4 times that."
    )
    compile_memory_bytes: int = Field(1 << 30, ge=256 * MIB, description="Memory that compiling one may take.")
    code_bytes: int = Field(
        4 << 30, ge=64 * MIB, description="Compiled programs that are kept on disk, of all tenants together."
    )
    max_connections: int = Field(2000, ge=1, description="Connections at once; more are answered with 503.")
    keep_alive_s: Seconds = Field(30, description="How long an idle connection is kept open.")
    ping_s: float = Field(15, ge=0.1, le=3600, description="After which silence a stream says that it is alive.")
    event_buffer_bytes: int = Field(1 * MIB, ge=1024, le=256 * MIB, description="Kept of each run's events.")
    drain_s: Seconds = Field(30, description="How long running runs may go on when the server is being shut down.")
    public_metrics: bool = Field(False, description="Answer /metrics without an API key.")
    log_format: Literal["auto", "json", "text"] = Field(
        "auto", description="How lines of the log look; auto is text on a terminal, and else json."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="What is logged, and all above."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what it is made with: `load` reads the sources, and knows which value came from which."""
        return (init_settings,)


@dataclass(frozen=True)
class LoadedSettings:
    """Settings, and where each of them comes from."""

    settings: Settings
    origins: dict[str, str]
    """`flag`, `environment`, `file` or `default`, by field."""
    file: Path | None
    """The file that was read."""

    def place(self, name: str) -> str:
        """Where a setting comes from, for errors: the file by its path."""
        origin = self.origins[name]
        return str(self.file) if origin == "file" else origin

    def shown(self) -> dict[str, dict[str, Any]]:
        """Value and origin by field; secrets are hidden."""
        values = json.loads(self.settings.model_dump_json())
        return {name: {"value": value, "origin": self.origins[name]} for name, value in values.items()}


def load(flags: Mapping[str, Any] | None = None, config: Path | None = None) -> LoadedSettings:
    """Read the settings of all sources.

    Args:
        flags: of the command line; None among them is not given.
        config: a TOML file; by default `server.toml` in `TARTLET_HOME`, if it is there.

    Raises:
        ConfigError: a key is unknown, a value is wrong, or the file cannot be read.
    """
    file = config or (paths.home() / FILE_NAME)
    sources: dict[str, dict[str, Any]] = {
        "flag": {name: value for name, value in (flags or {}).items() if value is not None},
        "environment": _environment(),
        "file": _file(file) if config is not None or file.is_file() else {},
    }
    values: dict[str, Any] = {}
    origins = dict.fromkeys(Settings.model_fields, "default")
    for origin, given in reversed(sources.items()):
        values.update(given)
        origins.update(dict.fromkeys(given, origin))
    try:
        settings = Settings(**values)
    except ValidationError as error:
        places = {name: str(file) if origin == "file" else origin for name, origin in origins.items()}
        raise _config_error(error, places) from None
    return LoadedSettings(settings, origins, file if sources["file"] else None)


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the known name that comes closest; empty if none is close."""
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"Did you mean {found[0]}?" if found else ""


def _environment() -> dict[str, Any]:
    known = {PREFIX + name.upper() for name in Settings.model_fields} | OTHER_VARIABLES
    for variable in os.environ:
        if variable.startswith(PREFIX) and variable not in known:
            raise ConfigError(f"{variable} is no setting", hint=nearest(variable, known) or "See docs/operate.md.")
    try:
        return dict(EnvSettingsSource(Settings)())
    except ValueError as error:  # SettingsError: what should be JSON is none
        raise ConfigError(f"the environment: {error}") from None


def _file(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    for name in values:
        if name not in Settings.model_fields:
            hint = nearest(name, Settings.model_fields) or "`tartlet config show` lists them all."
            raise ConfigError(f"{path}: {name} is no setting", hint=hint)
    return values


def _config_error(error: ValidationError, places: Mapping[str, str]) -> ConfigError:
    """The first thing that is wrong. The value is not told: it may be a secret."""
    first = error.errors(include_input=False)[0]
    name = str(first["loc"][0])
    place = ".".join(str(part) for part in first["loc"])
    return ConfigError(f"{place} (from {places.get(name, 'flag')}): {first['msg']}")
