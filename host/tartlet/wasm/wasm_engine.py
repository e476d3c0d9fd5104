"""The Wasmtime engine: one per process, configured for code that nobody trusts."""

from __future__ import annotations

import functools
import hashlib
import platform
from typing import Any

from wasmtime import Config, Engine

from tartlet.wasm.library import WASMTIME_VERSION, lib, pointer_of
from tartlet.wasm.ticker import EpochTicker

MAX_WASM_STACK_BYTES = 1 << 20
"""Guest stack. CPython needs more than Wasmtime's 512 KiB for its own recursion limit to come first."""

ASYNC_STACK_BYTES = 4 << 20
"""Stack of a fiber: guest frames, and above them the host functions that it calls (Python frames in C). Only address
space until touched. Must exceed the guest stack by far: what overruns it ends the process."""

_OFF_THROUGH_PACKAGE = (
    "wasm_exceptions",
    "wasm_gc",
    "wasm_memory64",
    "wasm_multi_memory",
    "wasm_relaxed_simd",
    "wasm_tail_call",
    "wasm_threads",
    "gc_support",
    "shared_memory",
    "debug_info",
    "consume_fuel",
)
_OFF_THROUGH_LIBRARY = (
    "concurrency_support",
    "wasm_component_model_async",
    "wasm_component_model_async_stackful",
    "wasm_component_model_map",
    "wasm_component_model_more_async_builtins",
    "wasm_custom_page_sizes",
    "wasm_function_references",
    "wasm_stack_switching",
    "wasm_wide_arithmetic",
)
"""Features that no inferlet needs: each is code of the runtime that a hostile component could otherwise reach."""


class WasmEngine:
    """A Wasmtime engine that yields to the host every epoch, with everything off that inferlets do not need.

    Use `process_engine`, except in tests. Thread: any.
    """

    def __init__(self) -> None:
        self.engine = Engine(_hardened_config())
        self.pointer = pointer_of(self.engine)
        self.ticker = EpochTicker(self.advance_epoch)

    def advance_epoch(self) -> None:
        """Let every running guest stop at its next check and ask the host whether to go on."""
        lib.wasmtime_engine_increment_epoch(self.pointer)

    @property
    def fingerprint(self) -> str:
        """What compiled code depends on besides the component: version, configuration, type of processor."""
        parts = (
            WASMTIME_VERSION,
            platform.machine(),
            str(MAX_WASM_STACK_BYTES),
            *_OFF_THROUGH_PACKAGE,
            *_OFF_THROUGH_LIBRARY,
        )
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


@functools.cache
def process_engine() -> WasmEngine:
    """Return the engine of this process: all hosts in it share it, as Wasmtime's signal handlers are shared anyway."""
    return WasmEngine()


def _hardened_config() -> Any:
    config = Config()
    config.strategy = "cranelift"
    config.cranelift_opt_level = "speed"
    config.epoch_interruption = True
    config.max_wasm_stack = MAX_WASM_STACK_BYTES
    for name in _OFF_THROUGH_PACKAGE:
        setattr(config, name, False)
    pointer = pointer_of(config)
    lib.wasmtime_config_async_stack_size_set(pointer, ASYNC_STACK_BYTES)
    for name in _OFF_THROUGH_LIBRARY:
        getattr(lib, f"wasmtime_config_{name}_set")(pointer, False)
    return config
