"""WASI 0.2, the part that language runtimes really call, and nothing else.

Programs get clocks, randomness, sleep and an output; no files, no network, no environment, no arguments, no standard
input. What is asked for politely is answered with an error that the language understands; the rest of what a
component imports is a trap. Wasmtime's own WASI is not used: its sleep blocks the thread or aborts the process.
"""

from __future__ import annotations

from tartlet.wasm.host_function import Interfaces
from tartlet.wasm.wasi import cli, clocks, denied, poll, random, streams


def wasi_interfaces(clock_resolution_ns: int = 1) -> Interfaces:
    """Make the host functions of WASI.

    Args:
        clock_resolution_ns: what clocks are rounded down to; coarse clocks (1 ms) make timing attacks harder.
    """
    return {
        **cli.INTERFACES,
        **clocks.interfaces(clock_resolution_ns),
        **denied.INTERFACES,
        **poll.INTERFACES,
        **random.INTERFACES,
        **streams.INTERFACES,
    }
