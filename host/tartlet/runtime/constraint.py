"""A constraint as a run deals with it: compiled in the engine, then followed by generations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tartlet.runtime.guest_state import GuestState
from tartlet.runtime.mask import MaskState
from tartlet.runtime.model import ModelHandle
from tartlet.runtime.refusal import engine_refusal, invalid_argument, refusal
from tartlet_engine.api import (
    Combination,
    CombineConstraints,
    Command,
    CompileConstraint,
    ConstraintKind,
    ConstrainToMask,
    EngineError,
    ErrorCode,
    Event,
    Failed,
    FreeConstraint,
)

FEATURE = "constraints"
MOST_PARTS = 8


class ConstraintState:
    """One constraint of a run. Lives on the executor's thread."""

    def __init__(self, run: GuestState, model: ModelHandle, make: Callable[[int, int], Command]) -> None:
        """Begin to make it, by the command for the engine's ids of it and of the run.

        Raises a refusal if the model has no constraints.
        """
        if FEATURE not in model.info.features:
            raise refusal(ErrorCode.UNSUPPORTED, f"{model.info.name} has no constraints", "Check the text afterwards.")
        self.run = run
        self.model = model
        self.event = run.events.add()
        self._engine_id = run.link.new_id()
        self._is_compiled = False
        self._num_holders = 1
        self._num_users = 0  # generations that have not begun
        self._is_dropped = False
        self._error: EngineError | None = None
        run.link.register(self._engine_id, self)
        run.submit(make(self._engine_id, run.engine_id))

    @classmethod
    def of_text(cls, run: GuestState, model: ModelHandle, kind: ConstraintKind, text: str) -> ConstraintState:
        """Begin to compile a text."""
        return cls(run, model, lambda own_id, run_id: CompileConstraint(own_id, run_id, kind, text))

    @classmethod
    def of_mask(cls, mask: MaskState) -> ConstraintState:
        """Any number of tokens of a mask."""
        mask_id = mask.engine_id_for(mask.model)
        return cls(mask.run, mask.model, lambda own_id, run_id: ConstrainToMask(own_id, run_id, mask_id))

    @classmethod
    def of_parts(cls, combination: Combination, parts: Sequence[ConstraintState]) -> ConstraintState:
        """Put compiled constraints together. Raises a refusal unless all are, for one model."""
        if not 1 <= len(parts) <= MOST_PARTS:
            raise invalid_argument(f"{len(parts):,} constraints; 1 to {MOST_PARTS} can be put together")
        model = parts[0].model
        part_ids = tuple(part.engine_id_for(model) for part in parts)
        return cls(
            parts[0].run, model, lambda own_id, run_id: CombineConstraints(own_id, run_id, combination, part_ids)
        )

    def engine_id_for(self, model: ModelHandle) -> int:
        """The engine's id, for a generation of that model. Raises a refusal if it cannot be followed."""
        if self._error is not None:
            raise engine_refusal(self._error)
        if not self._is_compiled:
            raise refusal(ErrorCode.UNAVAILABLE, "the constraint is not compiled yet", "Wait for its event.")
        if model.info.name != self.model.info.name:
            raise refusal(
                ErrorCode.INVALID_ARGUMENT,
                f"the constraint was made for {self.model.info.name}, the context is one of {model.info.name}",
            )
        return self._engine_id

    def handle(self, event: Event, at_ns: int) -> None:
        """Take in that it is compiled, or cannot be."""
        self.run.link.unregister(self._engine_id)
        self._is_compiled = not isinstance(event, Failed)
        self._error = event.error if isinstance(event, Failed) else None
        self.run.events.set_ready(self.event, self._error)

    def hold(self) -> None:
        """Keep it for one more who drops it."""
        self._num_holders += 1

    def drop(self) -> None:
        """Free it, once all who hold it have dropped it; generations that follow it go on."""
        self._num_holders -= 1
        if self._num_holders:
            return
        self.run.link.unregister(self._engine_id)
        self.run.events.drop(self.event)
        self.run.submit(FreeConstraint(self._engine_id, self.run.engine_id))
