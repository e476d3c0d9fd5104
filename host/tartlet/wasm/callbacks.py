"""C callbacks: how Wasmtime enters Python.

No exception may leave a callback, and every host function must set its continuation: either mistake ends the process.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from tartlet.errors import RunError, TartletError
from tartlet.wasm.host_function import SUSPEND, Err, HostFunction
from tartlet.wasm.library import ALWAYS_READY, CONTINUATION_CALLBACK, Pointer, ffi, new_error
from tartlet.wasm.lift import Lift
from tartlet.wasm.lower import Lower
from tartlet.wasm.values import VALUE_WORDS

if TYPE_CHECKING:
    from tartlet.wasm.fiber import Fiber

logger = logging.getLogger(__name__)

LiveFibers = dict[int, "Fiber"]
"""Fibers by the context of their store, which every callback is given."""


def host_function_callback(
    name: str, function: HostFunction, lifts: list[Lift], lower: Lower | None, fibers: LiveFibers
) -> Pointer:
    """Make the C callback of one import.

    Its arguments are C memory. `args`, `error` and `continuation` are valid only until it returns; `results` until the
    continuation has been asked and has said "ready".
    """
    positions = [(VALUE_WORDS * i, lift) for i, lift in enumerate(lifts)]
    only_lift = lifts[0] if len(lifts) == 1 else None  # the most common case, 0.4 us faster

    def callback(
        _data: Any,
        context: int,
        _type: Any,
        args: Any,
        _num_args: int,
        results: Any,
        _num_results: int,
        error: Any,
        continuation: Any,
    ) -> None:
        continuation[0] = CONTINUATION_CALLBACK
        continuation[1] = ALWAYS_READY
        try:
            fiber = fibers[context]
            fiber.num_host_calls += 1
            if fiber.num_host_calls > fiber.max_host_calls:
                fiber.refuse_host_call()
            try:
                if only_lift is not None:
                    value = function(fiber, only_lift(args, 0, context))
                else:
                    value = function(fiber, *[lift(args, at, context) for at, lift in positions])
            except Err as err:
                value = err
            if value is SUSPEND:
                continuation[1] = fiber.suspend(results, lower)
            else:
                if lower is not None:
                    lower(results, 0, value, context)
                if fiber.is_held and fiber.end_error is None:
                    continuation[1] = fiber.suspend_held()
            if fiber.end_error is not None:  # it ended itself
                error[0] = new_error(fiber.end_error.code)
        except BaseException as problem:
            error[0] = _fail(fibers.get(context), name, problem)

    return ffi.callback("host_function_t", callback, onerror=_rescue)


def destructor_callback(name: str, function: HostFunction, fibers: LiveFibers) -> Pointer:
    """Make the C callback that tells the host that a guest has dropped its handle of a resource."""

    def callback(_data: Any, context: int, rep: int) -> int:
        try:
            function(fibers[context], rep)
            return 0
        except BaseException as problem:
            return _fail(fibers.get(context), f"destructor of {name}", problem)

    return ffi.callback("destructor_t", callback)


def epoch_callback(fibers: LiveFibers) -> Pointer:
    """Make the C callback that decides, once per epoch, whether a running guest goes on, yields or ends."""

    def callback(context: int, _data: Any, delta: Any, kind: Any) -> int:
        delta[0] = 1
        kind[0] = 1
        try:
            fiber = fibers[context]
            kind[0] = fiber.is_turn_over()
            return 0 if fiber.end_error is None else new_error(fiber.end_error.code)
        except BaseException as problem:
            return _fail(fibers.get(context), "epoch", problem)

    return ffi.callback("epoch_callback_t", callback)


def internal_error(where: str, problem: BaseException) -> RunError:
    """Log a fault of the host's own, and make the error that ends the run in which it struck."""
    logger.error("fault in %s", where, exc_info=problem)
    return RunError(
        f"internal error in {where}: {type(problem).__name__}: {problem}",
        hint="This is a fault of the host, not of the program. The host's log has the details.",
        code="internal",
    )


def _fail(fiber: Fiber | None, name: str, problem: BaseException) -> int:
    """Have the run end with what was raised in its host function; the C error only unwinds the guest."""
    if not isinstance(problem, TartletError):
        problem = internal_error(f"the host function {name}", problem)
    if fiber is not None and fiber.end_error is None:
        fiber.end_error = problem
    return new_error(problem.code)


def _rescue(_kind: Any, problem: BaseException, trace: Any) -> None:
    """Turn an exception outside a callback's own `try` into an error of the guest.

    A KeyboardInterrupt or a MemoryError can strike anywhere. Without a continuation Wasmtime would end the process.
    """
    variables = trace.tb_frame.f_locals  # the callback's arguments, and what its closure holds
    variables["continuation"][0] = CONTINUATION_CALLBACK
    variables["continuation"][1] = ALWAYS_READY
    variables["error"][0] = _fail(variables["fibers"].get(variables["context"]), variables["name"], problem)
