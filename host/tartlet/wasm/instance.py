"""One instance of a component in a store of its own, and the calls that are made in it, one after the other.

Owns all C memory of a fiber. The order matters: a future must not be polled once it is done, and must be deleted before
its store; either mistake ends the process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tartlet.wasm.callbacks import internal_error
from tartlet.wasm.library import NULL, Pointer, ffi, lib, take_error
from tartlet.wasm.linker import LinkedComponent
from tartlet.wasm.memory_evidence import guest_bytes, writable_bytes
from tartlet.wasm.values import VALUE_WORDS

if TYPE_CHECKING:
    from tartlet.wasm.fiber import Fiber

# Of one instance, all its core modules together. A Python program has 18 core instances, 2 tables of 5,700 elements.
_MAX_CORE_INSTANCES = 100
_MAX_TABLES = 10
_MAX_TABLE_ELEMENTS = 100_000
_MAX_MEMORIES = 1  # since the limit of bytes is one for each memory
_NO_LIMIT = -1


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call ended: its result, lifted, or Wasmtime's error."""

    result: Any
    trap: str | None
    memory_bytes: int | None  # what the guest had, about, if it trapped and that is known


class Instance:
    """A component's instance, from the arguments of its first call to the result of its last.

    Args:
        linked: the component.
        export: the function to call first.
        args: its arguments, lowered at once. Raises `TypeError` or `LoweringError` if they do not fit.
    """

    def __init__(self, linked: LinkedComponent, export: str, args: tuple[Any, ...]) -> None:
        self._linked = linked
        self.context = 0  # of the store: by this, callbacks find the fiber
        self._store: Pointer = None
        self._future: Pointer = None
        self._is_calling = False  # the future is a call; before that, the instantiation
        self._error = ffi.new("uintptr_t *")
        self._instance = ffi.new("instance_t *")
        self._function = ffi.new("func_t *")
        self._result = ffi.new("uint64_t[]", VALUE_WORDS)
        self._take_args(export, args)

    @property
    def is_open(self) -> bool:
        """Whether there is a store."""
        return self._store is not None

    def open(self, fiber: Fiber, memory_bytes: int | None) -> None:
        """Make the store, and the future of the instantiation."""
        linked = self._linked
        self._store = lib.wasmtime_store_new(linked.wasm_engine.pointer, NULL, NULL)
        self.context = lib.wasmtime_store_context(self._store)
        linked.fibers[self.context] = fiber
        self.limit_memory(memory_bytes)
        lib.wasmtime_context_set_epoch_deadline(self.context, 1)
        lib.wasmtime_store_epoch_deadline_callback(self._store, linked.epoch_callback, NULL, NULL)
        self._future = lib.wasmtime_component_linker_instantiate_async(
            linked.linker_pointer, self.context, linked.component_pointer, self._instance, self._error
        )

    def limit_memory(self, memory_bytes: int | None) -> None:
        """Let the linear memory grow to so many bytes. For an open instance that is not running."""
        lib.wasmtime_store_limiter(
            self._store,
            _NO_LIMIT if memory_bytes is None else memory_bytes,
            _MAX_TABLE_ELEMENTS,
            _MAX_CORE_INSTANCES,
            _MAX_TABLES,
            _MAX_MEMORIES,
        )

    def poll(self) -> bool:
        """Run the guest until it suspends, yields or ends. Returns whether it has ended; then `close` comes next."""
        is_done: bool = lib.wasmtime_call_future_poll(self._future)
        if is_done and not self._is_calling and not self._error[0]:
            self._call_export()
            is_done = lib.wasmtime_call_future_poll(self._future)
        return is_done

    @property
    def has_returned(self) -> bool:
        """Whether a call that has ended has a result, and the instance can be called again."""
        return self._is_calling and not self._error[0]

    def end_call(self) -> Any:
        """The result of a call that has returned, lifted; another call can be made then."""
        lib.wasmtime_call_future_delete(self._future)
        self._future = None
        self._free_args()
        result = None if self._export.lift is None else self._take_result()
        ffi.memmove(self._result, bytes(8 * VALUE_WORDS), 8 * VALUE_WORDS)  # Wasmtime frees what it overwrites
        return result

    def call_again(self, export: str, args: tuple[Any, ...]) -> None:
        """Begin another call, which the next poll runs. Raises as the constructor, and then another can be made."""
        self._take_args(export, args)
        self._call_export()

    def close(self) -> Ended:
        """Read how it ended, and free everything."""
        trap, result = None, None
        if self._future is not None:
            lib.wasmtime_call_future_delete(self._future)
            if self._error[0]:
                trap = take_error(self._error[0])
            elif self._export.lift is not None:
                result = self._take_result()
        before = writable_bytes() if trap else 0
        lib.wasmtime_store_delete(self._store)
        memory_bytes = guest_bytes(before, writable_bytes()) if trap else None
        del self._linked.fibers[self.context]
        self._free_args()
        self._future = self._store = None
        return Ended(result, trap, memory_bytes)

    def discard(self) -> None:
        """Free an instance that was never opened."""
        self._free_args()

    def _take_args(self, export: str, args: tuple[Any, ...]) -> None:
        """Lower the arguments of a call."""
        self._export = self._linked.export(export)
        lowers = self._export.lowers
        if len(args) != len(lowers):
            raise TypeError(f"{export} takes {len(lowers)} arguments, got {len(args)}")
        self._args = ffi.new("uint64_t[]", VALUE_WORDS * max(1, len(args)))  # Wasmtime reads them when the call begins
        self._num_args = len(args)
        try:
            for i, (lower, value) in enumerate(zip(lowers, args, strict=True)):
                lower(self._args, VALUE_WORDS * i, value, 0)
        except BaseException:
            self._free_args()
            raise

    def _call_export(self) -> None:
        """Make the future of the call, in place of that of the instantiation."""
        if self._future is not None:
            lib.wasmtime_call_future_delete(self._future)
        self._is_calling = True
        export = self._export
        if not lib.wasmtime_component_instance_get_func(self._instance, self.context, export.index, self._function):
            raise RuntimeError("an export that was found in the component is not in its instance")
        has_result = export.lift is not None
        self._future = lib.wasmtime_component_func_call_async(
            self._function, self.context, self._args, self._num_args, self._result, has_result, self._error
        )

    def _take_result(self) -> Any:
        assert self._export.lift is not None
        try:
            return self._export.lift(self._result, 0, self.context)
        except Exception as problem:
            return internal_error("the export's result", problem)
        finally:
            lib.wasmtime_component_val_delete(self._result)

    def _free_args(self) -> None:
        for i in range(self._num_args):
            lib.wasmtime_component_val_delete(self._args + VALUE_WORDS * i)
        self._num_args = 0
