"""What a generation may write: constraints, also as arguments of `Context.generate`, and the value that comes of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tartlet_sdk import checks, event_loop, wit
from tartlet_sdk.errors import InvalidArgument, TartletError
from tartlet_sdk.host_call import call
from tartlet_sdk.json_types import convert, schema
from tartlet_sdk.mask import Mask

if TYPE_CHECKING:
    from wit_world.imports import constraints as wit_constraints
    from wit_world.imports import models as wit_models

CALL = "Context.generate"


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a generation may write. `one & other` is what both constraints allow, `one | other` what either does.

    Each of the arguments of `Context.generate` that say what is written has a constructor here. A constraint is
    compiled when it is first used; compiled ones are kept for the tenant, so it does not matter how often it is made.
    """

    name: str
    """By which function of the contract it is made."""
    argument: str | list[str] | list[int] | Mask | tuple[Constraint, ...]
    parse: Callable[[str], Any]
    """Makes the value from a whole text."""

    @staticmethod
    def json_schema(schema: Any) -> Constraint:
        """JSON of a schema: a dict, a JSON text, a dataclass or another type, a class with `model_json_schema`."""
        return _of_schema(schema, "Constraint.json_schema")

    @staticmethod
    def regex(pattern: str) -> Constraint:
        """A text that matches as a whole, in the syntax of Rust's regex."""
        return _of_text("regex", pattern, "Constraint.regex")

    @staticmethod
    def lark(grammar: str) -> Constraint:
        """A text of a grammar, in llguidance's variant of Lark."""
        return _of_text("lark", grammar, "Constraint.lark")

    @staticmethod
    def choices(*texts: str) -> Constraint:
        """One of several texts."""
        return _of_choices(texts, "Constraint.choices")

    @staticmethod
    def substring(text: str) -> Constraint:
        """A run of whole words of a text."""
        return _of_text("substring", text, "Constraint.substring")

    @staticmethod
    def tokens(tokens: Iterable[int]) -> Constraint:
        """Any number of these tokens."""
        return Constraint("tokens", checks.tokens(tokens, "tokens", "Constraint.tokens"), str)

    @staticmethod
    def mask(mask: Mask) -> Constraint:
        """Any number of the tokens of a mask. `~` of a mask gives all tokens but some."""
        return Constraint("mask", _mask(mask, "Constraint.mask"), str)

    def __and__(self, other: Constraint) -> Constraint:
        """What both allow, token by token. Where they allow nothing together, the generation fails.

        The value is that of the first one that is a schema.
        """
        if not isinstance(other, Constraint):
            return NotImplemented
        parts = (*self._parts("all_of"), *other._parts("all_of"))
        schemas = [part for part in parts if part.parse is not str]
        return Constraint("all_of", parts, schemas[0].parse if schemas else str)

    def __or__(self, other: Constraint) -> Constraint:
        """What either allows. The value is that of the first one that can make one of the text."""
        if not isinstance(other, Constraint):
            return NotImplemented
        parts = (*self._parts("any_of"), *other._parts("any_of"))
        return Constraint("any_of", parts, lambda text: _first_value(parts, text))

    async def compile(self, model: wit_models.Model, call_name: str = CALL) -> wit_constraints.Constraint:
        """Compile it on the host. Raises `InvalidArgument` with the grammar's error, or `QuotaExceeded`."""
        contract = wit.constraints.Constraint
        if isinstance(self.argument, Mask):
            return await _finished(call(call_name, contract.of_mask, self.argument.handle), call_name)
        if not isinstance(self.argument, tuple):
            make: Callable[..., wit_constraints.Constraint] = getattr(contract, self.name)
            return await _finished(call(call_name, make, model, self.argument), call_name)
        parts: list[wit_constraints.Constraint] = []
        try:
            for part in self.argument:
                parts.append(await part.compile(model, call_name))
            combine: Callable[..., wit_constraints.Constraint] = getattr(contract, self.name)
            return await _finished(call(call_name, combine, [part.id() for part in parts]), call_name)
        finally:
            for handle in parts:
                handle.__exit__(None, None, None)

    def _parts(self, combination: str) -> tuple[Constraint, ...]:
        """Its own parts, if it is such a combination, or itself."""
        return self.argument if self.name == combination and isinstance(self.argument, tuple) else (self,)


async def _finished(handle: wit_constraints.Constraint, call_name: str) -> wit_constraints.Constraint:
    """Wait until it is compiled; if it cannot be, free it and raise."""
    try:
        await event_loop.finish(handle.ready(), call_name)
    except BaseException:
        handle.__exit__(None, None, None)
        raise
    return handle


def _first_value(parts: Sequence[Constraint], text: str) -> Any:
    for part in parts:
        try:
            return part.parse(text)
        except (ValueError, TartletError):  # the text is that of another part
            continue
    return text


def constraint_of(
    *,
    json_schema: Any,
    regex: str | None,
    lark: str | None,
    choices: Iterable[str] | None,
    substring: str | None,
    tokens: Iterable[int] | None,
    constraint: Constraint | None = None,
    call_name: str = CALL,
) -> Constraint | None:
    """The one constraint that is not None. Raises `InvalidArgument` for two, or for one of a wrong type."""
    given = {
        "json_schema": json_schema,
        "regex": regex,
        "lark": lark,
        "choices": choices,
        "substring": substring,
        "tokens": tokens,
        "constraint": constraint,
    }
    named = {name: value for name, value in given.items() if value is not None}
    if not named:
        return None
    if len(named) > 1:
        raise InvalidArgument(
            f"{' and '.join(named)} are given at once",
            hint="Put them together: constraint=Constraint.regex(...) & Constraint.choices(...).",
            call=call_name,
        )
    ((name, value),) = named.items()
    if name == "constraint":
        if not isinstance(value, Constraint):
            given_type = type(value).__name__
            raise InvalidArgument(
                f"constraint must be a Constraint, not {given_type}",
                hint="Make one with Constraint.regex(...).",
                call=call_name,
            )
        return value
    if name == "json_schema":
        return _of_schema(value, call_name)
    if name == "choices":
        return _of_choices(value, call_name)
    if name == "tokens":
        return Constraint(name, checks.tokens(value, name, call_name), str)
    return _of_text(name, value, call_name)


def _of_text(name: str, value: Any, call_name: str) -> Constraint:
    return Constraint(name, checks.text(value, name, call_name), str)


def _of_choices(value: Any, call_name: str) -> Constraint:
    if isinstance(value, str):
        raise InvalidArgument("choices must be several texts, not one", hint='Write ["one", "two"].', call=call_name)
    return Constraint("choices", [checks.text(each, "a choice", call_name) for each in value], str)


def _mask(value: Any, call_name: str) -> Mask:
    if not isinstance(value, Mask):
        raise InvalidArgument(f"mask must be a Mask, not {type(value).__name__}", call=call_name)
    return value


def _of_schema(given: Any, call_name: str) -> Constraint:
    """A schema as a dict or as JSON text, a class that knows its own, or a type that `json_types` can describe."""
    if isinstance(given, str):
        return Constraint("json_schema", checks.text(given, "json_schema", call_name), json.loads)
    if isinstance(given, dict):
        try:
            return Constraint("json_schema", json.dumps(given), json.loads)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArgument(f"json_schema cannot be written as JSON: {error}", call=call_name) from None
    if hasattr(given, "model_json_schema"):  # pydantic's, and whoever spells it alike
        return Constraint("json_schema", json.dumps(given.model_json_schema()), given.model_validate_json)
    return Constraint(
        "json_schema", json.dumps(schema(given)), lambda text: convert(json.loads(text), given, "the value")
    )
