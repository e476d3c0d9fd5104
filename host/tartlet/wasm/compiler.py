"""Compiles components to native code, and keeps the results on disk."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from pathlib import Path
from weakref import WeakKeyDictionary

from wasmtime import Module, WasmtimeError
from wasmtime.component import Component

from tartlet.disk_cache import mark_used, shrink
from tartlet.errors import InvalidComponentError
from tartlet.progress import Progress, silent
from tartlet.wasm.sealed_file import is_whole, write_sealed
from tartlet.wasm.wasm_engine import WasmEngine

MAX_BYTES = 10**9
"""Some twenty Python components, or the runners of as many versions."""

_MAX_MESSAGE_CHARS = 2_000  # Wasmtime repeats names of the component, which may be of any length
_TASK = "Compiling the component"

_lock = threading.Lock()
_in_use: WeakKeyDictionary[Component, Path] = WeakKeyDictionary()  # what this process has loaded; under the lock


class Compiler:
    """Makes native code of components, once per component, Wasmtime version and configuration.

    The folder holds code that is run as it is: nobody else may be able to write there. Files appear under their final
    name only when they are whole, so that several processes can share the folder. They end with a digest, which is
    checked at every load; a file that is damaged or cannot be loaded is replaced. When they take more than `max_bytes`,
    those used longest ago go, but none that this process has loaded.

    Thread: any. One thread at a time compiles; Wasmtime uses all cores for it, and does not hold the GIL.
    """

    def __init__(
        self, wasm_engine: WasmEngine, folder: Path, progress: Progress = silent, *, max_bytes: int = MAX_BYTES
    ) -> None:
        self.wasm_engine = wasm_engine
        self._folder = folder
        self._progress = progress
        self._max_bytes = max_bytes

    def compile(self, data: bytes, *, must_keep: bool = False) -> Component:
        """Compile a component that has been checked, or load what was compiled before.

        Args:
            data: The component.
            must_keep: It is compiled for others, so that it is a failure if its native code cannot be kept.

        Raises:
            InvalidComponentError: Wasmtime refuses it (`compile_failed`).
            OSError: It must be kept, and cannot be.

        Cost: 10 ms per 10 MB when it is cached; otherwise seconds and hundreds of megabytes for a large one.
        """
        with _lock:
            path = self.cache_path(data)
            component = self._load(path)
            if component is None:
                component = self._compile(data)
                with nullcontext() if must_keep else suppress(OSError):  # a full disk is no reason to end a run
                    write_sealed(path, component.serialize())
                shrink(self._folder, "*", self._max_bytes, keep=set(_in_use.values()))
            _in_use[component] = path
            return component

    def load(self, path: Path) -> Component | None:
        """Load native code that was compiled before; None if it is not there, not ours, not whole, or another's."""
        with _lock:
            component = self._load(path)
            if component is not None:
                _in_use[component] = path
            return component

    def cache_path(self, data: bytes) -> Path:
        """Tell where the native code of a component is kept."""
        digest = hashlib.sha256(data).hexdigest()
        return self._folder / f"{digest}-{self.wasm_engine.fingerprint}.cwasm"

    def validate(self, data: bytes, modules: Iterable[range]) -> None:
        """Check the core modules of a component, which costs a fiftieth of compiling them: 50 ms per MB of code.

        Raises `InvalidComponentError` (`compile_failed`) if one of them is not valid.
        """
        for module in modules:
            try:
                Module.validate(self.wasm_engine.engine, data[module.start : module.stop])
            except WasmtimeError as problem:
                raise _refused(problem) from problem

    def forget(self, data: bytes) -> None:
        """Drop the native code of a component that turned out to be of no use."""
        with suppress(OSError):
            self.cache_path(data).unlink(missing_ok=True)

    def _compile(self, data: bytes) -> Component:
        self._progress(_TASK, 0.0, 1.0)
        try:
            return Component(self.wasm_engine.engine, data)
        except WasmtimeError as problem:
            raise _refused(problem) from problem
        finally:
            self._progress(_TASK, 1.0, 1.0)

    def _load(self, path: Path) -> Component | None:
        """Load native code, if it is there, ours and whole."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        with open(handle, "rb") as file:
            if not (_is_trustworthy(handle) and is_whole(file)):
                return None
            try:
                # By its handle: the file of that name may be another one by now.
                component = Component.deserialize_file(self.wasm_engine.engine, f"/proc/self/fd/{handle}")
            except WasmtimeError:
                return None
        mark_used(path)
        return component


def _refused(problem: WasmtimeError) -> InvalidComponentError:
    text = str(problem)
    if len(text) > _MAX_MESSAGE_CHARS:
        text = f"{text[:_MAX_MESSAGE_CHARS]}..."
    return InvalidComponentError(f"the component cannot be compiled: {text}", code="compile_failed")


def _is_trustworthy(handle: int) -> bool:
    """Whether only this user can have written an open file."""
    status = os.fstat(handle)
    is_private = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) == 0
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and is_private
