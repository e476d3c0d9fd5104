"""A context as the host sees it: the same tokens as the engine's, so that most questions are answered at once."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tartlet.runtime.chat import ChatHistory
from tartlet.runtime.refusal import engine_refusal, invalid_argument, refusal, refusing_value_errors
from tartlet_engine.api import (
    AppendTokens,
    CreateContext,
    EngineError,
    ErrorCode,
    Event,
    Failed,
    ForkContext,
    FreeContext,
    TruncateContext,
)

if TYPE_CHECKING:
    from tartlet.runtime.controlled import ControlledGeneration
    from tartlet.runtime.flush import EvictOperation, FlushOperation
    from tartlet.runtime.forward import ForwardPass
    from tartlet.runtime.generation import GenerationState
    from tartlet.runtime.model import ModelHandle
    from tartlet.runtime.run_state import RunState
    from tartlet.runtime.steps import StepsState


class ContextState:
    """One context of a run. Lives on the executor's thread.

    While a generation runs on it, the engine appends tokens; they are taken in as its chunks come.
    """

    def __init__(self, run: RunState, model: ModelHandle) -> None:
        self.run = run
        self.model = model
        self.context_id = run.link.new_id()
        self.tokens = array("I")
        self.chat = ChatHistory()
        self.generation: GenerationState | StepsState | ControlledGeneration | None = None
        self.flushes: set[FlushOperation] = set()  # under way, evictions included
        self.eviction: EvictOperation | None = None
        self.forward: ForwardPass | None = None  # until it is committed or discarded
        self._gaps: list[tuple[int, int]] = []  # before the token of that index so many were evicted
        self._num_inherited = 0  # tokens that a fork began with
        self._error: EngineError | None = None
        self._is_dropped = False
        self._idle_actions: list[Callable[[], None]] = []
        run.link.register(self.context_id, self)

    @classmethod
    def create(cls, run: RunState, model: ModelHandle, adapter: str | None = None) -> ContextState:
        """An empty context, whose tokens are computed with an adapter of the model or without."""
        context = cls(run, model)
        run.submit(CreateContext(context.context_id, run.engine_id, adapter))
        return context

    @classmethod
    def opened(cls, run: RunState, model: ModelHandle) -> ContextState:
        """One that the engine is about to open; see `restore`."""
        return cls(run, model)

    def restore(self, token_ids: Sequence[int], saved_state: str, gaps: Sequence[tuple[int, int]]) -> None:
        """Take in what was saved. Raises ValueError for what another version has saved."""
        self.chat = ChatHistory.from_json(saved_state)
        self.tokens = array("I", token_ids)
        self._gaps = list(gaps)

    @property
    def length(self) -> int:
        """Number of tokens."""
        return len(self.tokens)

    @property
    def num_positions(self) -> int:
        """Positions that are taken: of its tokens, and of those evicted before them."""
        return self.length + sum(num for _, num in self._gaps)

    @property
    def num_own_pages(self) -> int:
        """KV pages that it needs besides those that it shares since it was forked."""
        page_size = self.model.info.page_size
        num_inherited = min(self._num_inherited, self.length) // page_size
        return -(-self.length // page_size) - num_inherited

    # ---- Operations: each raises the refusal that the program receives ----

    def check_generation(self) -> None:
        """Raise a refusal if nothing can be generated at its end."""
        if not self.length:
            raise invalid_argument("the context is empty", "Fill it before generating.")
        if self.num_positions >= self.model.info.context_len:
            raise refusal(
                ErrorCode.CONTEXT_OVERFLOW,
                f"the context is full: it has had {self.num_positions:,} tokens; "
                f"{self.model.info.name} allows {self.model.info.context_len:,}",
                "Truncate the context, or begin a new one with a summary.",
            )

    def check_usable(self) -> None:
        """Raise the refusal of a context that the engine has given up."""
        if self._error is not None:
            raise engine_refusal(self._error)

    def append(self, token_ids: Sequence[int]) -> None:
        """Append tokens. Raises a refusal, with nothing appended, if there would be too many."""
        if not token_ids:
            return
        length, info = self.num_positions + len(token_ids), self.model.info
        if length > info.context_len:
            evicted = ", evicted ones included" if self._gaps else ""
            raise refusal(
                ErrorCode.CONTEXT_OVERFLOW,
                f"the context would have {length:,} tokens{evicted}; {info.name} allows {info.context_len:,}",
                "Fill less, truncate the context, or begin a new one with a summary.",
            )
        self.tokens.extend(token_ids)
        self.run.submit(AppendTokens(self.context_id, tuple(token_ids)))

    def append_text(self, token_ids: Sequence[int]) -> None:
        """Append tokens that are no chat message."""
        self.append(token_ids)
        self.chat.add_text(self.length)

    def append_message(self, role: str, closing: Sequence[int], message: Sequence[int]) -> None:
        """Append a chat message; `closing` are the tokens of `close_turn`."""
        was_open = self.chat.state.is_turn_open
        self.append([*closing, *message])
        if was_open:
            self.chat.close_turn(self.length - len(message))
        self.chat.add_message(self.length, role)

    def close_turn(self) -> tuple[tuple[str, ...], list[int]]:
        """The chat's roles, an open turn closed, and the tokens that close it, if one is open. Appends nothing."""
        state = self.chat.state
        if not state.is_turn_open:
            return state.roles, []
        closing = self.model.text.chat_close(state.roles, self.tokens[-1] if self.tokens else None)
        return (*state.roles, "assistant"), closing

    def cue(self) -> None:
        """Begin the assistant's turn, unless that is the last thing that was done."""
        if self.chat.state.is_turn_open and not self.chat.has_grown(self.length):
            return
        self.model.check_chat()
        with refusing_value_errors():
            roles, closing = self.close_turn()
            cue = self.model.text.chat_cue(roles)
        was_open = self.chat.state.is_turn_open
        self.append([*closing, *cue])
        if was_open:
            self.chat.close_turn(self.length - len(cue))
        self.chat.open_turn(self.length)

    def fork(self) -> ContextState:
        """A context with the same tokens."""
        child = self.copy()
        self.run.submit(ForkContext(self.context_id, child.context_id, self.length))
        self.run.counters.forks += 1
        return child

    def copy(self) -> ContextState:
        """A context that knows all that this one knows, for a fork that the engine is told of."""
        child = ContextState(self.run, self.model)
        child.tokens = self.tokens[:]
        child._num_inherited = self.length
        child.chat = self.chat.copy(self.length)
        child._gaps = self._gaps.copy()
        return child

    def truncate(self, length: int) -> None:
        """Drop the tokens after the first `length`."""
        if length > self.length:
            raise invalid_argument(f"cannot truncate to {length:,} tokens: the context has {self.length:,}")
        if length < self.length:
            self._cut(length)
            self.run.submit(TruncateContext(self.context_id, length))

    def take_step(self, num_back: int, token_ids: Sequence[int]) -> None:
        """Take in that a step has dropped so many tokens, and appended others."""
        if num_back:
            self._cut(self.length - num_back)
        self.tokens.extend(token_ids)

    def _cut(self, length: int) -> None:
        del self.tokens[length:]
        self.chat.truncate(length)
        self._gaps = [gap for gap in self._gaps if gap[0] < length]

    def replace(self, token_ids: Sequence[int]) -> None:
        """Make these its tokens. What it begins with already is kept. Raises a refusal if they are too many."""
        num_kept = 0
        while num_kept < min(self.length, len(token_ids)) and self.tokens[num_kept] == token_ids[num_kept]:
            num_kept += 1
        self.truncate(num_kept)
        self.append_text(token_ids[num_kept:])

    def check_evictable(self, start: int, end: int) -> None:
        """Raise a refusal unless those tokens can be evicted."""
        if "evict" not in self.model.info.features:
            raise refusal(ErrorCode.UNSUPPORTED, f"from contexts of {self.model.info.name} nothing can be evicted")
        if not start <= end < max(1, self.length):
            raise invalid_argument(
                f"cannot evict {start:,} to {end:,} of {self.length:,} tokens, of which the last must stay",
                "To drop the end of a context, truncate it.",
            )

    def take_out(self, start: int, end: int) -> None:
        """Take in that the engine has evicted those tokens."""
        num = end - start
        if not num:
            return
        merged = num + sum(each for index, each in self._gaps if start <= index <= end)
        before = [gap for gap in self._gaps if gap[0] < start]
        self._gaps = [*before, (start, merged), *((index - num, each) for index, each in self._gaps if index > end)]
        del self.tokens[start:end]
        self.chat.evict(start, end)

    def take_in(self, token_ids: Sequence[int], positions: Sequence[int] | None) -> None:
        """Take in that the engine has appended those tokens, at their positions or right after the last one."""
        for index, token_id in enumerate(token_ids):
            if positions is not None and (num_left_out := positions[index] - self.num_positions):
                self._gaps.append((self.length, num_left_out))
            self.tokens.append(token_id)

    def drop(self) -> None:
        """Free it; a generation that runs on it comes to its end first, a flush or a pass ends as cancelled."""
        self._is_dropped = True
        if self.generation is None:
            self._free()

    # ---- Busy and idle ----

    def call_when_idle(self, action: Callable[[], None]) -> None:
        """Call `action` when the generation on it has ended, in the order of the calls."""
        self._idle_actions.append(action)

    def end_generation(self) -> None:
        """Note that no generation runs on it any more."""
        self.generation = None
        if self._is_dropped:
            self._free()
        self._act()

    def end_forward(self) -> None:
        """Note that a forward pass on it has been committed or discarded."""
        self.forward = None

    def end_eviction(self) -> None:
        """Note that no tokens are being evicted any more."""
        self.eviction = None
        self._act()

    def handle(self, event: Event, at_ns: int) -> None:
        """Take in that the engine could not carry out something with the context."""
        if isinstance(event, Failed):
            self._error = event.error

    def _act(self) -> None:
        actions, self._idle_actions = self._idle_actions, []
        for action in actions:
            action()

    def _free(self) -> None:
        self.run.link.unregister(self.context_id)
        self.run.submit(FreeContext(self.context_id))
        for flush in self.flushes:
            flush.give_up()
        self.flushes.clear()
        if self.forward is not None:
            self.forward.give_up()
