"""Controllers: programs that steer the generations of others, token by token.

class NoNumbers(Controller):
    def start(self, config, prompt):
        model = Model.default()
        texts = {token: model.detokenize([token]) for token in range(model.info.vocabulary_size)}
        self.words = [token for token, text in texts.items() if not any(each.isdigit() for each in text)]

    def step(self, sequence, info):
        return Branch(allow=self.words)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tartlet_sdk.answer import Splice
from tartlet_sdk.draft import TokenLogprobs
from tartlet_sdk.errors import TartletError
from tartlet_sdk.mask import Mask


class Sequence:
    """One sequence of the generation, as it really is: what was sampled, forced and taken back is in it."""

    __slots__ = ("id", "prompt_length", "tokens")

    def __init__(self, id: int, tokens: list[int], prompt_length: int) -> None:
        self.id = id
        """Its number: 0 is the first, forks have others."""
        self.tokens = tokens
        """All of them, those of the prompt too. Not to be changed."""
        self.prompt_length = prompt_length
        """Tokens of the prompt."""

    @property
    def generated(self) -> list[int]:
        """The tokens after the prompt."""
        return self.tokens[self.prompt_length :]


@dataclass(slots=True)
class StepInfo:
    """What has happened to a sequence in its last step. At the first call, and after a wait, that is nothing."""

    backtrack: int
    """Tokens that were dropped from the end."""
    tokens: list[int]
    """Then appended."""
    sampled: int | None
    """What was sampled, even if a splice has replaced it."""
    siblings: list[int]
    """At the first call after a fork: the ids of all that came of it, in the order of the branches."""
    logprobs: TokenLogprobs | None
    """Where it sampled, if `logprobs` of the class asks for them."""
    refused: TartletError | None
    """The last decision could not be carried out, and has changed nothing."""
    finish_reason: str | None
    """For `Controller.end`: why the sequence has ended."""


@dataclass(frozen=True, slots=True)
class Branch:
    """What a sequence does in its next step."""

    sample: bool = True
    """Without, the step only does what its one splice says."""
    allow: Iterable[int] | None = None
    """Only these tokens can be sampled; None: all."""
    mask: Mask | None = None
    """Only tokens of this set, too: a mask that is kept costs less than a list each time."""
    bias: Mapping[int, float] = field(default_factory=dict)
    """Added to the logits of single tokens."""
    temperature: float | None = None
    """Instead of the generation's own."""
    splices: Iterable[Splice] = ()
    """If it samples, the first whose condition holds counts."""

    @classmethod
    def force(cls, tokens: Iterable[int], backtrack: int = 0) -> Branch:
        """Drop `backtrack` tokens and append these, without sampling."""
        return cls(sample=False, splices=(Splice(tokens, backtrack),))


@dataclass(frozen=True, slots=True)
class Wait:
    """Give up the place in the batch until a variable of the run has changed or a time has passed."""

    variable: str | None = None
    above: int = 0
    """The version of the variable to rise above; by default it has to exist."""
    seconds: float | None = None


Decision: TypeAlias = Branch | Iterable[Branch] | Wait | None


class Controller:
    """What steers a generation. Define a subclass; one instance steers one sequence, and is copied when that forks.

    The copy is a deep one, of all that the instance holds. What all sequences share belongs into the class or module.
    """

    logprobs: int | None = None
    """Set it to have the log-probability of each sampled token, and of this many most likely ones (at most 20)."""

    def start(self, config: Any, prompt: list[int]) -> str | Iterable[int] | None:
        """Begin. A text or tokens that it returns replace the prompt; None leaves it.

        Args:
            config: What whoever starts the generation has given, decoded from JSON.
            prompt: The tokens of the context.
        """
        return None

    def step(self, sequence: Sequence, info: StepInfo) -> Decision:
        """Decide what the sequence does next: after each step, while the model computes the next one.

        Returns: a `Branch`; None to sample as the generation says; several branches to fork, of which the first is the
            sequence itself; no branch, `[]`, to stop; or a `Wait`.
        """
        return None

    def end(self, sequence: Sequence, info: StepInfo) -> None:
        """Hear that the sequence has ended, unless it was this controller who stopped it."""
