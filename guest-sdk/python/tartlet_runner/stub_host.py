"""A stand-in for the host, where every call succeeds at once: for the warm-up of a component, and for unit tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tartlet_sdk import wit
from tartlet_sdk.errors import OutsideSandbox

TEXT = "some text"


class Handle:
    """What the stub's resources have in common."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        """Dropping it does nothing."""


class Model(Handle):
    """A model whose tokens are bytes."""

    @classmethod
    def open(cls, name: str | None) -> Model:
        """Open it, whatever the name."""
        return cls()

    def info(self) -> Any:
        """Plausible facts."""
        return wit.models.ModelInfo("stub", "Stub", 1024, 256, 16, [0], ["chat"], ["polite"])

    def tokenize(self, text: str) -> list[int]:
        """UTF-8."""
        return list(text.encode())

    def detokenize(self, tokens: list[int]) -> str:
        """UTF-8."""
        return bytes(tokens).decode(errors="replace")

    def token_bytes(self, token: int) -> bytes:
        """The byte."""
        return bytes([token])

    def vocabulary(self, first: int, count: int) -> str:
        """Each byte, and what ends each token."""
        return "".join(chr(byte) + "\u0100" for byte in range(first, min(first + count, 256)))


class Context(Handle):
    """A list of tokens."""

    def __init__(self, tokens: list[int] | None = None) -> None:
        self.held = list(tokens or ())
        self.num_evicted = 0

    @classmethod
    def create(cls, model: Model, adapter: str | None) -> Context:
        """Make an empty one, whatever the adapter."""
        return cls()

    def fill(self, text: str) -> None:
        """Append a text."""
        self.held += text.encode()

    def fill_tokens(self, tokens: list[int]) -> None:
        """Append tokens."""
        self.held += tokens

    def fill_message(self, role: Any, text: str) -> None:
        """Append a message."""
        self.fill(f"{role.name}: {text}\n")

    def cue(self) -> None:
        """Begin the assistant's turn."""
        self.fill("ASSISTANT: ")

    def flush(self) -> int:
        """An event, ready at once."""
        return next(EVENTS)

    def fork(self) -> Context:
        """Copy it."""
        return Context(self.held)

    def length(self) -> int:
        """Number of tokens."""
        return len(self.held)

    def positions(self) -> int:
        """Number of tokens, evicted ones included."""
        return len(self.held) + self.num_evicted

    def tokens(self) -> list[int]:
        """All of them."""
        return self.held

    def truncate(self, length: int) -> None:
        """Drop the tail."""
        del self.held[length:]

    def evict(self, start: int, end: int) -> int:
        """An event, ready at once."""
        del self.held[start:end]
        self.num_evicted += end - start
        return next(EVENTS)

    def save(self, name: str, options: Any) -> int:
        """An event, ready at once."""
        SAVED[name] = list(self.held)
        return next(EVENTS)

    @classmethod
    def open(cls, model: Model, name: str) -> Opening:
        """What was saved, or an empty one."""
        return Opening(Context(SAVED.get(name)))


class Opening(Handle):
    """A saved context, there at once."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def ready(self) -> int:
        """Ready at once."""
        return next(EVENTS)

    def take(self) -> Context:
        """The context."""
        return self.context


class Constraint(Handle):
    """A constraint, compiled at once; the generation does not follow it."""

    @classmethod
    def make(cls, model: Model, text: Any) -> Constraint:
        """Make it, whatever the text."""
        return cls()

    json_schema = regex = lark = choices = substring = tokens = make

    @classmethod
    def of(cls, parts: Any) -> Constraint:
        """Make it of others, whatever they are."""
        return cls()

    of_mask = all_of = any_of = of

    def ready(self) -> int:
        """Ready at once."""
        return next(EVENTS)

    def id(self) -> int:
        """Any number."""
        return 1


class Mask(Handle):
    """A set of tokens; those that it is put together with do not matter."""

    def __init__(self, held: set[int]) -> None:
        self.held = held

    @classmethod
    def tokens(cls, model: Model, tokens: list[int]) -> Mask:
        """Make it of tokens."""
        return cls(set(tokens))

    @classmethod
    def words(cls, model: Model, words: list[int]) -> Mask:
        """Make it of packed bits."""
        return cls({64 * i + bit for i, word in enumerate(words) for bit in range(64) if word >> bit & 1})

    @classmethod
    def all(cls, model: Model) -> Mask:
        """Make it of bytes."""
        return cls(set(range(256)))

    def intersection(self, others: list[int]) -> Mask:
        """The same again."""
        return self

    union = intersection

    def complement(self) -> Mask:
        """The other bytes."""
        return Mask(set(range(256)) - self.held)

    def restrict(self, tokens: list[int]) -> Mask:
        """Some of it."""
        return Mask(self.held & set(tokens))

    def count(self) -> int:
        """Number of tokens."""
        return len(self.held)

    def allows(self, token: int) -> bool:
        """Whether it has a token."""
        return token in self.held

    def id(self) -> int:
        """Any number."""
        return 1


class Matcher(Handle):
    """A matcher to which everything is allowed everywhere."""

    def __init__(self) -> None:
        self.event = next(EVENTS)

    @classmethod
    def begin(cls, constraint: Constraint) -> Matcher:
        """Begin, whatever the constraint."""
        return cls()

    def ready(self) -> int:
        """Ready at once."""
        return self.event

    def place(self) -> Any:
        """Where everything is allowed."""
        return wit.constraints.Place([], True, False, None)

    def mask(self) -> Mask:
        """All bytes."""
        return Mask(set(range(256)))

    def advance(self, tokens: list[int]) -> None:
        """Nothing changes."""

    def rollback(self, count: int) -> None:
        """Nothing changes."""

    def fork(self) -> Matcher:
        """Another one."""
        return Matcher()


class Generation(Handle):
    """A generation of one chunk."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.event = next(EVENTS)

    def ready(self) -> int:
        """Ready at once."""
        return self.event

    def read(self) -> Any:
        """The one chunk."""
        tokens = list(TEXT.encode())
        usage = wit.generation.Usage(len(self.context.held), 0, len(tokens), 0, 0, 0, 1, 0, 1, 1)
        self.context.held += tokens
        finish = wit.generation.Finish(wit.generation.FinishReason.LENGTH, None, usage)
        return wit.generation.Chunk(TEXT, tokens, [], finish)

    def next(self) -> Any:
        """The one chunk."""
        return self.read()

    def cancel(self) -> None:
        """It has ended already."""


class Pass(Handle):
    """A pass that finds nothing likely."""

    def __init__(self, context: Context, tokens: list[int], options: Any) -> None:
        self.context = context
        self.tokens = tokens
        self.options = options

    def ready(self) -> int:
        """Ready at once."""
        return next(EVENTS)

    def read(self) -> Any:
        """An answer for each request."""
        Found = wit.generation.TokenLogProbability
        rows = [
            wit.forward.Row(
                None if each.sampling is None else Found(0, 0.0),
                [Found(token, 0.0) for token in range(each.top)],
                [0.0] * len(each.given),
                0.0 if each.entropy else None,
                [0] if each.logits else [],
            )
            for each in self.options.requests
        ]
        return wit.forward.Findings([0.0] * len(self.tokens) if self.options.log_probabilities else [], rows)

    def commit(self, path: list[int]) -> None:
        """Append tokens."""
        self.context.held += [self.tokens[row - 1] for row in path]

    def discard(self) -> None:
        """Nothing is kept anyway."""


class Steps(Handle):
    """Steps that sample the bytes of a text."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.event = next(EVENTS)

    def ready(self) -> int:
        """Ready at once."""
        return self.event

    def answer(self, answer: Any) -> None:
        """The outcome does not depend on it."""

    def outcome(self) -> Any:
        """One byte of the text."""
        token = TEXT.encode()[len(self.context.held) % len(TEXT)]
        self.context.held.append(token)
        return wit.stepping.Outcome(0, [token], token, 0, chr(token), None, None)

    def next(self, answer: Any) -> Any:
        """The same."""
        return self.outcome()

    def fork(self, seed: int | None) -> Any:
        """Copy both."""
        context = self.context.fork()
        return context, Steps(context)

    def hold(self) -> None:
        """Nobody counts."""

    def stop(self) -> None:
        """Nothing goes on."""


class Variables:
    """Variables that are written at once; one that is waited for is there."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        """What was written."""
        return self.held.get(name)

    def set(self, name: str, value: str) -> int:
        """Write it."""
        found = self.held.get(name)
        version = found.version + 1 if found else 1
        self.held[name] = wit.store.Variable(version, value)
        return version

    def append(self, name: str, value: str) -> int:
        """Add to it."""
        found = self.held.get(name)
        return self.set(name, found.value + value if found else value)

    def compare_and_swap(self, name: str, value: str, version: int) -> Any:
        """Write it if nobody else has."""
        found = self.held.get(name) or wit.store.Variable(0, "")
        if found.version != version:
            return wit.store.Swap(False, found)
        self.set(name, value)
        return wit.store.Swap(True, self.held[name])

    def versions(self) -> list[Any]:
        """All of them."""
        return [wit.store.VariableVersion(name, held.version) for name, held in self.held.items()]

    def above(self, name: str, version: int) -> int:
        """An event, ready at once."""
        while (self.held[name].version if name in self.held else 0) <= version:
            self.set(name, TEXT)
        return next(EVENTS)


EVENTS = itertools.count(1)
SAVED: dict[str, list[int]] = {}
VARIABLES = Variables()

REPLACED: dict[str, dict[str, Any]] = {
    "constraints": {"Constraint": Constraint, "Mask": Mask, "Matcher": Matcher},
    "forward": {"Pass": Pass, "forward": Pass},
    "contexts": {
        "Context": Context,
        "list_saved": lambda: [
            wit.contexts.SavedContext(n, "stub", None, len(t), len(t), None) for n, t in SAVED.items()
        ],
        "delete_saved": lambda name: SAVED.pop(name, None),
    },
    "events": {
        "poll": lambda events, timeout_ns: events,
        "outcome": lambda event: None,
        "drop_event": lambda event: None,
        "timer": lambda delay_ns: next(EVENTS),
    },
    "generation": {"generate": lambda context, sampling, stop, options: Generation(context)},
    "stepping": {"start": lambda context, sampling, stop, options: Steps(context)},
    "log": {"print": lambda text: None, "log": lambda level, message: None},
    "models": {"Model": Model, "list_models": lambda: [Model().info()]},
    "store": {
        "get_variable": VARIABLES.get,
        "set_variable": VARIABLES.set,
        "append_variable": VARIABLES.append,
        "compare_and_swap_variable": VARIABLES.compare_and_swap,
        "list_variables": VARIABLES.versions,
        "variable_above": VARIABLES.above,
    },
    "runs": {"info": lambda: wit.runs.RunInfo("1", "stub", "stub", 1), "limits": lambda: []},
}


@contextmanager
def installed() -> Iterator[None]:
    """Replace the host's functions and resources until the end of the block."""
    kept = []
    for interface, replacements in REPLACED.items():
        try:
            module = getattr(wit, interface)
        except OutsideSandbox:  # the component's world does not have it
            continue
        for name, replacement in replacements.items():
            kept.append((module, name, getattr(module, name)))
            setattr(module, name, replacement)
    try:
        yield
    finally:
        for module, name, original in kept:
            setattr(module, name, original)
