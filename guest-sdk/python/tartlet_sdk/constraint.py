"""What a generation may write: the arguments of `Context.generate` that say so, and the value that comes of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tartlet_sdk import checks, event_loop, wit
from tartlet_sdk.errors import InvalidArgument
from tartlet_sdk.host_call import call
from tartlet_sdk.json_types import convert, schema

if TYPE_CHECKING:
    from wit_world.imports import constraints as wit_constraints
    from wit_world.imports import models as wit_models

CALL = "Context.generate"


@dataclass(frozen=True, slots=True)
class Constraint:
    """An argument of `generate` by its name, and what makes the value from a whole text."""

    name: str
    argument: str | list[str] | list[int]
    parse: Callable[[str], Any]

    async def compile(self, model: wit_models.Model) -> wit_constraints.Constraint:
        """Compile it on the host. Raises `InvalidArgument` with the grammar's error, or `QuotaExceeded`."""
        handle = call(CALL, _constructor(self.name), model, self.argument)
        try:
            await event_loop.finish(handle.ready(), CALL)
        except BaseException:
            handle.__exit__(None, None, None)
            raise
        return handle


def _constructor(name: str) -> Callable[[wit_models.Model, Any], wit_constraints.Constraint]:
    """The contract's function by the name of the argument."""
    contract = wit.constraints.Constraint
    constructors: dict[str, Callable[[wit_models.Model, Any], wit_constraints.Constraint]] = {
        "json_schema": contract.json_schema,
        "regex": contract.regex,
        "lark": contract.lark,
        "choices": contract.choices,
        "substring": contract.substring,
        "tokens": contract.tokens,
    }
    return constructors[name]


def constraint_of(
    *,
    json_schema: Any,
    regex: str | None,
    lark: str | None,
    choices: Iterable[str] | None,
    substring: str | None,
    tokens: Iterable[int] | None,
) -> Constraint | None:
    """The one constraint that is not None. Raises `InvalidArgument` for two, or for one of a wrong type."""
    given = {
        "json_schema": json_schema,
        "regex": regex,
        "lark": lark,
        "choices": choices,
        "substring": substring,
        "tokens": tokens,
    }
    named = {name: value for name, value in given.items() if value is not None}
    if not named:
        return None
    if len(named) > 1:
        raise InvalidArgument(
            f"{' and '.join(named)} cannot be followed at once", hint="Put them into one lark grammar.", call=CALL
        )
    ((name, value),) = named.items()
    if name == "json_schema":
        return _of_schema(value)
    if name == "choices":
        if isinstance(value, str):
            raise InvalidArgument("choices must be several texts, not one", hint='Write ["one", "two"].', call=CALL)
        return Constraint(name, [checks.text(each, "a choice", CALL) for each in value], str)
    if name == "tokens":
        return Constraint(name, checks.tokens(value, name, CALL), str)
    return Constraint(name, checks.text(value, name, CALL), str)


def _of_schema(given: Any) -> Constraint:
    """A schema as a dict or as JSON text, a class that knows its own, or a type that `json_types` can describe."""
    if isinstance(given, str):
        return Constraint("json_schema", given, json.loads)
    if isinstance(given, dict):
        try:
            return Constraint("json_schema", json.dumps(given), json.loads)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArgument(f"json_schema cannot be written as JSON: {error}", call=CALL) from None
    if hasattr(given, "model_json_schema"):  # pydantic's, and whoever spells it alike
        return Constraint("json_schema", json.dumps(given.model_json_schema()), given.model_validate_json)
    return Constraint(
        "json_schema", json.dumps(schema(given)), lambda text: convert(json.loads(text), given, "the value")
    )
