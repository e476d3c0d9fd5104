"""Compiles constraints on a thread of its own, and keeps those compiled for whoever of the tenant asks again."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tartlet_engine.api import ConstraintKind, EngineError, ErrorCode
from tartlet_engine.constraints.follower import GrammarFollower
from tartlet_engine.constraints.grammars import GrammarError, check_text, compile_grammar
from tartlet_engine.constraints.trials import MEMORY_BYTES, TIME_LIMIT_S, TrialLimitError, Trials
from tartlet_engine.constraints.vocabulary import TokenIndex, Vocabulary

if TYPE_CHECKING:
    from llguidance import LLTokenizer

MOST_CACHED = 64  # constraints of one tenant
MOST_TENANTS = 256  # whose constraints are kept
MOST_SHOWN = 1000  # characters of an error
MOST_WAITING = 256  # constraints of one tenant that wait to be compiled

_log = logging.getLogger("tartlet_engine")

Result = GrammarFollower | EngineError


@dataclass(frozen=True, slots=True)
class _Request:
    tenant: str
    kind: ConstraintKind
    text: str
    done: Callable[[Result], None]


class ConstraintCompiler:
    """Compiles one constraint after the other, tenants taking turns. `submit` and `close` from any thread."""

    def __init__(
        self, vocabulary: Vocabulary, *, time_limit_s: float = TIME_LIMIT_S, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        """Compile constraints over `vocabulary`. The thread and its process start with the first one."""
        self._vocabulary = vocabulary
        self.index = TokenIndex(vocabulary)
        self._trials = Trials(vocabulary, time_limit_s, memory_bytes)
        self._tokenizer: LLTokenizer | None = None
        self._cache: OrderedDict[str, OrderedDict[bytes, Result]] = OrderedDict()  # by tenant, the latest used last
        self._wakeup = threading.Condition()  # guards what follows
        self._waiting: OrderedDict[str, deque[_Request]] = OrderedDict()  # by tenant, whose turn it is first
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self.num_compiled = 0  # how often the cache did not have it

    def submit(self, tenant: str, kind: ConstraintKind, text: str, done: Callable[[Result], None]) -> None:
        """Compile a constraint; `done` is called on the compiler's thread with it, or with why it cannot be.

        What it is given is a prototype that nobody may change: copy it.
        """
        with self._wakeup:
            queue = self._waiting.setdefault(tenant, deque())
            is_full = len(queue) >= MOST_WAITING
            if not is_full:
                queue.append(_Request(tenant, kind, text, done))
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="tartlet-constraints", daemon=True)
                    self._thread.start()
                self._wakeup.notify()
        if is_full:
            message = f"{MOST_WAITING} constraints of the tenant wait to be compiled; no more can"
            done(EngineError(ErrorCode.QUOTA_EXCEEDED, message, "Wait for some of them."))

    def close(self) -> None:
        """End the thread and the process after what is being compiled now. Idempotent."""
        with self._wakeup:
            self._is_closing = True
            self._wakeup.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while (request := self._next()) is not None:
            try:
                result = self._compile(request)
            except Exception as error:
                _log.exception("compiling a constraint failed")
                message = f"compiling the constraint failed: {type(error).__name__}: {error}"
                result = EngineError(ErrorCode.INTERNAL, message)
            request.done(result)
        self._trials.close()

    def _next(self) -> _Request | None:
        """Wait for a request, of the tenant whose turn it is; None when closed."""
        with self._wakeup:
            while not (self._waiting or self._is_closing):
                self._wakeup.wait()
            if self._is_closing:
                return None
            tenant, queue = self._waiting.popitem(last=False)
            request = queue.popleft()
            if queue:
                self._waiting[tenant] = queue
            return request

    def _compile(self, request: _Request) -> Result:
        key = hashlib.sha256(f"{request.kind.value}\0{request.text}".encode()).digest()
        cached = self._cache.setdefault(request.tenant, OrderedDict())
        self._cache.move_to_end(request.tenant)
        if len(self._cache) > MOST_TENANTS:
            self._cache.popitem(last=False)
        if key in cached:
            cached.move_to_end(key)
            return cached[key]
        result = cached[key] = self._compile_new(request)
        if len(cached) > MOST_CACHED:
            cached.popitem(last=False)
        return result

    def _compile_new(self, request: _Request) -> Result:
        self.num_compiled += 1
        kind, text = request.kind, request.text
        try:
            check_text(kind, text)
            if problem := self._trials.problem(kind, text):
                return _refused(kind, problem)
            if self._tokenizer is None:
                self._tokenizer = self._vocabulary.make_tokenizer()
            return GrammarFollower(compile_grammar(self._tokenizer, kind, text), self.index)
        except GrammarError as error:
            return _refused(kind, str(error))
        except TrialLimitError as error:
            hint = "Make it simpler: fewer and smaller repetitions, alternatives and number ranges."
            return EngineError(ErrorCode.QUOTA_EXCEEDED, f"the {kind.value} is too complex: {error}", hint)


def _refused(kind: ConstraintKind, problem: str) -> EngineError:
    if len(problem) > MOST_SHOWN:  # the text is in it, and errors are kept; what is wrong is said last
        problem = f"{problem[: MOST_SHOWN // 2]} ... {problem[-MOST_SHOWN // 2 :]}"
    return EngineError(ErrorCode.INVALID_ARGUMENT, f"the {kind.value} cannot be used: {problem}")
