"""The Wasmtime library, loaded once through cffi, and what every caller of it needs.

The library is the one inside the `wasmtime` package, which has loaded it too. Its ABI is only known for one version, so
another one is refused here, before any call could corrupt memory.
"""

from __future__ import annotations

import ctypes
from importlib.metadata import version
from typing import Any

import cffi
from wasmtime import _bindings as bindings
from wasmtime import _ffi as wasmtime_ffi

from tartlet.errors import ConfigError
from tartlet.wasm._cdef import DECLARATIONS

WASMTIME_VERSION = "50.0.1"

Pointer = Any  # a cffi pointer
Words = Any  # a cffi `uint64_t *`

ffi = cffi.FFI()


def _check_version() -> None:
    found = version("wasmtime")
    if found != WASMTIME_VERSION:
        raise ConfigError(
            f"Tartlet needs the package wasmtime {WASMTIME_VERSION}, but {found} is installed",
            hint=f"pip install wasmtime=={WASMTIME_VERSION}",
        )


def _check_struct_sizes() -> None:
    """Compare our structs with those that the wasmtime package declares: a wrong size would corrupt the heap."""
    expected = {
        "instance_t": ctypes.sizeof(bindings.wasmtime_component_instance_t),
        "func_t": ctypes.sizeof(bindings.wasmtime_component_func_t),
        "byte_vec_t": ctypes.sizeof(bindings.wasm_byte_vec_t),
        "uint64_t[4]": ctypes.sizeof(bindings.wasmtime_component_val_t),
        "uint64_t[6]": ctypes.sizeof(bindings.wasmtime_component_valrecord_entry_t),
        "uintptr_t[3]": ctypes.sizeof(bindings.wasmtime_async_continuation_t),
    }
    for name, size in expected.items():
        if ffi.sizeof(name) != size:
            raise ConfigError(f"wasmtime {WASMTIME_VERSION}: {name} has {size} bytes here, expected {ffi.sizeof(name)}")


_check_version()
ffi.cdef(DECLARATIONS)
_check_struct_sizes()
lib: Any = ffi.dlopen(wasmtime_ffi.filename.as_posix())

NULL: Pointer = ffi.NULL

# A continuation is `bool callback(void *env)`, which Wasmtime asks at each poll whether the host function has
# completed. libc's strlen over a two-byte flag answers without entering Python: "" is 0, pending; "\x01" is 1, ready.
_libc: Any = ffi.dlopen(None)
_set_flag = ffi.new("char[2]", b"\x01")
CONTINUATION_CALLBACK = int(ffi.cast("uintptr_t", ffi.addressof(_libc, "strlen")))
ALWAYS_READY = int(ffi.cast("uintptr_t", _set_flag))


def pointer_of(managed: Any) -> Pointer:
    """The pointer inside an object of the wasmtime package (which goes on owning it)."""
    return ffi.cast("void *", ctypes.cast(managed.ptr(), ctypes.c_void_p).value)


def new_error(message: str) -> int:
    """A new `wasmtime_error_t` with this message; Wasmtime takes ownership of what it is handed."""
    return int(lib.wasmtime_error_new(message.encode(errors="replace").replace(b"\0", b"")))


def take_error(error: int) -> str:
    """The message of a `wasmtime_error_t`, which is freed."""
    message = ffi.new("byte_vec_t *")
    lib.wasmtime_error_message(error, message)
    text: bytes = ffi.unpack(message.data, message.size)
    lib.wasm_byte_vec_delete(message)
    lib.wasmtime_error_delete(error)
    return text.decode(errors="replace")


def check(error: int) -> None:
    """Raise `RuntimeError` if a Wasmtime function returned an error, which is freed."""
    if error:
        raise RuntimeError(take_error(error))
