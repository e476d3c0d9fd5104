"""How the next token is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypedDict, Unpack

from tartlet_sdk import checks, wit
from tartlet_sdk.errors import InvalidArgument

if TYPE_CHECKING:
    from wit_world.imports import generation as wit_generation

U64 = (1 << 64) - 1


class Extras(TypedDict, total=False):
    """What every kind of sampler takes as well."""

    seed: int | None
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    logit_bias: Mapping[int, float]


class Changes(Extras, total=False):
    """What `Sampler.with_` can change."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A sampler's numbers. They apply in this order: penalties and bias, temperature, top-k, top-p, min-p."""

    temperature: float = 1.0
    """0 takes the most likely token, whatever the other fields say."""
    top_k: int = 0
    """Only the k most likely tokens; 0 for all."""
    top_p: float = 1.0
    """Only the most likely tokens that together have this probability; 1 for all."""
    min_p: float = 0.0
    """Only tokens at least this fraction as likely as the most likely one; 0 for all."""
    repetition_penalty: float = 1.0
    """Divides (or multiplies, if negative) the logits of tokens that the context holds; 1 for none."""
    presence_penalty: float = 0.0
    """Subtracted from the logits of tokens generated so far."""
    frequency_penalty: float = 0.0
    """Subtracted once for each time that a token was generated so far."""
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    """Added to the logits of single tokens."""
    seed: int | None = None
    """The same seed gives the same tokens, whatever else runs. Without one, the run draws it."""

    def __post_init__(self) -> None:
        checks.number(self.temperature, "temperature", "Sampler", 0)
        checks.whole(self.top_k, "top_k", "Sampler")
        if checks.number(self.top_p, "top_p", "Sampler", 0, 1) == 0:
            raise InvalidArgument("top_p must be greater than 0", call="Sampler")
        checks.number(self.min_p, "min_p", "Sampler", 0, 1)
        if checks.number(self.repetition_penalty, "repetition_penalty", "Sampler", 0) == 0:
            raise InvalidArgument("repetition_penalty must be greater than 0; 1 is none", call="Sampler")
        checks.number(self.presence_penalty, "presence_penalty", "Sampler")
        checks.number(self.frequency_penalty, "frequency_penalty", "Sampler")
        if not isinstance(self.logit_bias, Mapping):
            raise InvalidArgument(f"logit_bias must be a dict, not {type(self.logit_bias).__name__}", call="Sampler")
        for token, bias in self.logit_bias.items():
            checks.whole(token, "a token of logit_bias", "Sampler")
            checks.number(bias, f"logit_bias[{token}]", "Sampler")
        if self.seed is not None:
            checks.whole(self.seed, "seed", "Sampler", 0, U64)


@dataclass(frozen=True, slots=True)
class Sampler:
    """How the next token is chosen. Make one with `greedy`, `temperature`, `top_p`, `top_k` or `min_p`.

    All of them but `greedy` take further settings by name, such as `seed` or `repetition_penalty`; `with_` gives a
    changed copy. Raises `InvalidArgument` for a setting out of its range.
    """

    settings: Settings = field(default_factory=Settings)

    @classmethod
    def greedy(cls, **extras: Unpack[Extras]) -> Sampler:
        """Always take the most likely token."""
        return cls(Settings(temperature=0.0, **extras))

    @classmethod
    def temperature(cls, temperature: float, **extras: Unpack[Extras]) -> Sampler:
        """Draw from all tokens; below 1 likely ones become likelier, above 1 less so."""
        return cls(Settings(temperature=temperature, **extras))

    @classmethod
    def top_p(cls, temperature: float, p: float, **extras: Unpack[Extras]) -> Sampler:
        """Draw from the most likely tokens that together have probability `p` (nucleus sampling)."""
        return cls(Settings(temperature=temperature, top_p=p, **extras))

    @classmethod
    def top_k(cls, k: int, temperature: float = 1.0, **extras: Unpack[Extras]) -> Sampler:
        """Draw from the `k` most likely tokens."""
        return cls(Settings(temperature=temperature, top_k=k, **extras))

    @classmethod
    def min_p(cls, p: float, temperature: float = 1.0, **extras: Unpack[Extras]) -> Sampler:
        """Draw from the tokens that are at least `p` times as likely as the most likely one."""
        return cls(Settings(temperature=temperature, min_p=p, **extras))

    def with_(self, **changes: Unpack[Changes]) -> Sampler:
        """Change some settings in a copy: `Sampler.top_k(40).with_(seed=7)`."""
        return Sampler(replace(self.settings, **changes))

    def to_wit(self) -> wit_generation.Sampling:
        """The contract's record."""
        settings = self.settings
        return wit.generation.Sampling(
            temperature=float(settings.temperature),
            top_k=settings.top_k,
            top_p=float(settings.top_p),
            min_p=float(settings.min_p),
            repetition_penalty=float(settings.repetition_penalty),
            presence_penalty=float(settings.presence_penalty),
            frequency_penalty=float(settings.frequency_penalty),
            logit_bias=[(token, float(bias)) for token, bias in settings.logit_bias.items()],
            seed=settings.seed,
        )
