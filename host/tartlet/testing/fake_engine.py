"""An engine client that plays a script, for tests of inferlets and of the host.

It keeps contexts, pages, limits and stop conditions as a real engine does; only the model is missing.
"""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from tartlet.testing.byte_text import END_OF_TURN, VOCABULARY_SIZE, ByteText
from tartlet.testing.fake_core import FakeCore
from tartlet_engine.api import Command, EngineError, EngineStats, EngineStopped, ErrorCode, Event, ModelInfo

_LAST_MESSAGE = re.compile(r".*<\|im_start\|>user\n(.*?)<\|im_end\|>", re.DOTALL)


def echo(prompt: str) -> str:
    """The last user's message in a chat, or the whole text of the context: what the fake engine answers by default."""
    match = _LAST_MESSAGE.match(prompt)
    return match[1] if match else prompt


class FakeEngine:
    """Implements `tartlet_engine.api.EngineClient` on a thread of its own, without a model.

    Args:
        replies: The texts of the generations in the order in which they start (then it echoes), or a function from
            the context's text to the reply. A reply ends with the eos token, unless a stop condition comes first. Under
            a constraint, too: nothing but the syntax of JSON and regular expressions is checked.
        token_delay_s: Seconds that each step takes.
        num_pages: Pages of the KV pool.
        page_size: Tokens of a page.
        context_len: The greatest length of a context, in tokens.
        model_name: The name of its only model.
        adapters: Names of adapters, which change nothing of what it replies.
        features: What its model can do; without `chat` and so on, programs are refused that.
    """

    def __init__(
        self,
        replies: Iterable[str] | Callable[[str], str] = (),
        *,
        token_delay_s: float = 0.0,
        num_pages: int = 4096,
        page_size: int = 16,
        context_len: int = 4096,
        model_name: str = "fake",
        adapters: Sequence[str] = (),
        features: Sequence[str] = ("chat", "evict", "constraints"),
    ) -> None:
        self._delay_s = token_delay_s
        self._info = ModelInfo(
            name=model_name,
            architecture="FakeForCausalLM",
            context_len=context_len,
            vocabulary_size=VOCABULARY_SIZE,
            page_size=page_size,
            num_pages=num_pages,
            eos_token_ids=(END_OF_TURN,),
            features=tuple(features),
            dtype="float32",
            backend="fake",
            adapters=tuple(adapters),
        )
        self._text = ByteText()
        self._core = FakeCore(self._info, _replies(replies))
        self._ids = itertools.count(1)
        self._queue: list[Command] = []
        self._stopped: EngineError | None = None
        self._is_closed = False
        self._listener: Callable[[list[Event]], None] | None = None
        self._lock = threading.Condition()  # guards all of the above
        self._thread = threading.Thread(target=self._work, name="tartlet-fake-engine", daemon=True)
        self._thread.start()

    # ---- For tests ----

    def fail_next(self, error: EngineError) -> None:
        """Make the next generation that starts fail with `error`."""
        with self._lock:
            self._core.failures.append(error)

    def crash(self, message: str = "the engine was stopped by the test") -> None:
        """Play an engine that dies: `EngineStopped`, and no answer to anything any more."""
        with self._lock:
            self._stopped = EngineError(ErrorCode.UNAVAILABLE, message)
            self._lock.notify()

    # ---- EngineClient ----

    @property
    def models(self) -> Mapping[str, ModelInfo]:
        """The one model, by its name."""
        return {self._info.name: self._info}

    def text(self, model: str) -> ByteText:
        """The text side. Raises KeyError for another model's name."""
        if model != self._info.name:
            raise KeyError(model)
        return self._text

    def new_id(self) -> int:
        """Give the next number."""
        return next(self._ids)

    def submit(self, commands: Sequence[Command], run_id: int | None = None) -> None:
        """Queue commands for the next step, in order, whichever run they are of."""
        with self._lock:
            self._queue.extend(commands)
            self._lock.notify()

    def listen(self, listener: Callable[[list[Event]], None] | None) -> None:
        """Set who hears of events. Raises RuntimeError if somebody else does."""
        with self._lock:
            if listener is not None and self._listener is not None:
                raise RuntimeError("somebody listens to this engine already")
            self._listener = listener

    def stats(self) -> EngineStats:
        """Give the counters as of the last step."""
        with self._lock:
            return self._core.stats()

    def check_integrity(self) -> None:
        """Raise AssertionError unless pages, contexts and generations add up. Carries out what is queued first."""
        with self._lock:
            self._carry_out()
            self._core.check_integrity()

    def close(self) -> None:
        """End the thread. Idempotent."""
        with self._lock:
            self._is_closed = True
            self._lock.notify()
        self._thread.join()

    # ---- The thread ----

    def _work(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(self._has_work)
                if self._is_closed:
                    return
                if self._stopped:
                    events: list[Event] = [EngineStopped(self._stopped)]
                else:
                    self._carry_out()
                    events = self._core.step()
                listener = self._listener
            if events and listener is not None:
                listener(events)
            if self._stopped:
                return
            time.sleep(self._delay_s)

    def _has_work(self) -> bool:
        return bool(self._queue or self._core.has_work or self._is_closed or self._stopped)

    def _carry_out(self) -> None:
        queue, self._queue = self._queue, []
        for command in queue:
            self._core.execute(command)


def _replies(replies: Iterable[str] | Callable[[str], str]) -> Callable[[str], str]:
    """The function from a prompt to its reply."""
    if callable(replies):
        return replies
    script = iter(replies)

    def next_reply(prompt: str) -> str:
        reply = next(script, None)
        return echo(prompt) if reply is None else reply

    return next_reply
