"""Compiles components to native code, and keeps the results on disk."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from weakref import WeakKeyDictionary

from wasmtime import WasmtimeError
from wasmtime.component import Component

from tartlet.disk_cache import mark_used, shrink
from tartlet.errors import InvalidComponentError
from tartlet.progress import Progress, silent
from tartlet.wasm.wasm_engine import WasmEngine

MAX_BYTES = 10**9
"""Some twenty Python components, or the runners of as many versions."""

_TASK = "Compiling the component"

_lock = threading.Lock()
_in_use: WeakKeyDictionary[Component, Path] = WeakKeyDictionary()  # what this process has loaded; under the lock


class Compiler:
    """Makes native code of components, once per component, Wasmtime version and configuration.

    The folder holds code that is run as it is: nobody else may be able to write there. Files appear under their final
    name only when they are whole, so that several processes can share the folder. A file that cannot be loaded is
    replaced. When they take more than `max_bytes`, those used longest ago go, but none that this process has loaded.

    Thread: any. One thread at a time compiles; Wasmtime uses all cores for it, and does not hold the GIL.
    """

    def __init__(
        self, wasm_engine: WasmEngine, folder: Path, progress: Progress = silent, *, max_bytes: int = MAX_BYTES
    ) -> None:
        self.wasm_engine = wasm_engine
        self._folder = folder
        self._progress = progress
        self._max_bytes = max_bytes

    def compile(self, data: bytes) -> Component:
        """Compile a component that has been checked, or load what was compiled before.

        Raises `InvalidComponentError` (`compile_failed`) if Wasmtime refuses it. Cost: 1 ms per 10 MB when it is
        cached; otherwise seconds and hundreds of megabytes for a large one.
        """
        with _lock:
            path = self.cache_path(data)
            component = self._load(path)
            if component is None:
                component = self._compile(data)
                with suppress(OSError):  # a disk that is full or read-only is no reason to fail
                    self._store(path, component)
                shrink(self._folder, "*", self._max_bytes, keep=set(_in_use.values()))
            _in_use[component] = path
            return component

    def cache_path(self, data: bytes) -> Path:
        """Tell where the native code of a component is kept."""
        digest = hashlib.sha256(data).hexdigest()
        return self._folder / f"{digest}-{self.wasm_engine.fingerprint}.cwasm"

    def _compile(self, data: bytes) -> Component:
        self._progress(_TASK, 0.0, 1.0)
        try:
            return Component(self.wasm_engine.engine, data)
        except WasmtimeError as problem:
            raise InvalidComponentError(
                f"the component cannot be compiled: {problem}", code="compile_failed"
            ) from problem
        finally:
            self._progress(_TASK, 1.0, 1.0)

    def _load(self, path: Path) -> Component | None:
        """Load native code, if it is there, ours and whole."""
        if not _is_trustworthy(path):
            return None
        try:
            component = Component.deserialize_file(self.wasm_engine.engine, str(path))
        except WasmtimeError:
            return None
        mark_used(path)
        return component

    def _store(self, path: Path, component: Component) -> None:
        handle, temporary = tempfile.mkstemp(dir=self._folder, prefix="compiling-")  # mode 0600
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(component.serialize())
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(temporary).unlink()
            raise


def _is_trustworthy(path: Path) -> bool:
    """Whether a file is there that only this user could have written."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    is_private = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) == 0
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and is_private
