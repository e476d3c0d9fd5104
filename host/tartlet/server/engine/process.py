"""The engine's process: loads a model, serves it at a socket, and ends when it is told to or its parent is gone."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from tartlet import compose, models
from tartlet.errors import ConfigError, TartletError
from tartlet.server.child_process import keep_private
from tartlet.server.engine.engine_server import EngineServer
from tartlet.server.engine.grants import KEY_BYTES
from tartlet.server.engine.settings import CANNOT_START, EngineSettings, FakeSettings
from tartlet.server.progress_lines import ProgressLines
from tartlet_engine.api import EngineClient

_log = logging.getLogger(__name__)

ENGINE_STOPPED = 1
"""That of one whose engine has stopped by itself."""

PARENT_SECONDS = 0.5
"""So often it is looked whether the parent is there."""
PATIENCE_SECONDS = 20.0
"""For so long the engine may take to stop, once there is nobody left to kill its process."""


def main(arguments: Sequence[str]) -> int:
    """Serve an engine until SIGTERM, or the parent's end. Returns the exit status."""
    parser = argparse.ArgumentParser("python -m tartlet.server.engine")
    parser.add_argument("--socket", type=Path, required=True, help="where to listen")
    parser.add_argument("--settings", default="{}", help="EngineSettings, as JSON")
    parser.add_argument("--parent", type=int, help="the process with which this one ends")
    parser.add_argument("--key", type=int, help="the number of an inherited pipe with the key of grants")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    keep_private()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # at a terminal it reaches the front, too, which says when to end
    signal.signal(signal.SIGTERM, _end)
    if options.parent is not None:
        threading.Thread(target=_watch_parent, args=(options.parent,), name="tartlet-parent", daemon=True).start()
    key = None if options.key is None else _read_key(options.key)
    try:
        settings = _read_settings(options.settings)
        engine, text_folders = start(settings)
    except TartletError as error:
        _log.error("cannot start: %s", error)
        return CANNOT_START
    return _serve(engine, options.socket, text_folders, key)


def start(settings: EngineSettings) -> tuple[EngineClient, dict[str, str | None]]:
    """Start an engine; give it and where the tokenizer of each of its models lies.

    Raises:
        ConfigError, ModelError: as `compose.start_engine`.
    """
    if settings.fake is not None:
        return _start_fake(settings.fake), {settings.fake.model_name: None}
    progress = ProgressLines()
    folder = models.pull(settings.model, progress)
    options: dict[str, Any] = {name: getattr(settings, name) for name in settings.__struct_fields__}
    del options["fake"]
    options["adapters"] = {name: Path(path) for name, path in settings.adapters.items()}
    engine = compose.start_engine(**options, folder=folder, progress=progress)
    return engine, {settings.model: str(folder.absolute())}


def _start_fake(settings: FakeSettings) -> EngineClient:
    from tartlet.testing import FakeEngine

    return FakeEngine(**msgspec.structs.asdict(settings))


def _read_key(pipe: int) -> bytes:
    """It is in no file, argument or variable, which others could read."""
    with open(pipe, "rb") as file:
        return file.read(KEY_BYTES)


def _serve(engine: EngineClient, path: Path, text_folders: dict[str, str | None], key: bytes | None) -> int:
    ended = threading.Event()
    try:
        server = EngineServer(engine, path, text_folders, lambda error: ended.set(), key)
        try:
            _log.info("the engine is ready: models=%s", ",".join(engine.models))
            ended.wait()
            _log.error("the engine has stopped by itself")
            return ENGINE_STOPPED
        finally:
            engine.close()  # before the connections: so everybody hears why
            server.close()
    finally:
        engine.close()


def _read_settings(text: str) -> EngineSettings:
    try:
        return msgspec.json.decode(text, type=EngineSettings)
    except msgspec.DecodeError as error:
        raise ConfigError(f"the settings of the engine cannot be read: {error}") from None


def _end(number: int, frame: FrameType | None) -> None:
    """On SIGTERM: leave the main thread by an exception, once."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)


def _watch_parent(parent: int) -> None:
    """End this process when its parent has ended."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE_SECONDS)
    os._exit(1)
