"""An inferlet's parameters: JSON input to keyword arguments, and their description."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any, get_type_hints

from tartlet_sdk.errors import ArgumentError, ProgramError
from tartlet_sdk.json_types import beginning, convert, describe, schema, shown

REQUIRED = inspect.Parameter.empty


def annotations_of(function: FunctionType) -> dict[str, Any]:
    """A function's annotations; those written as text (`from __future__ import annotations`) are evaluated."""
    annotations = function.__annotations__
    if any(isinstance(annotation, str) for annotation in annotations.values()):
        return get_type_hints(function)
    return {name: type(None) if annotation is None else annotation for name, annotation in annotations.items()}


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter."""

    annotation: Any
    default: Any  # REQUIRED if it has none

    def __str__(self) -> str:
        kind = describe(self.annotation)
        return kind if self.default is REQUIRED else f"{kind}, default {beginning(self.default)}"


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function."""

    name: str
    doc: str
    fields: Mapping[str, Field]
    takes_others: bool
    """It has a `**parameter`, so that any name is an argument."""

    @classmethod
    def of(cls, function: FunctionType) -> Signature:
        """Read a function's signature. Raises `ProgramError` for parameters that no JSON object can give.

        It is done at the start of every run, so it does without `inspect.signature`, which takes ten times as long.
        """
        name = function.__name__
        code = function.__code__
        if code.co_posonlyargcount or code.co_flags & inspect.CO_VARARGS:
            raise ProgramError(f"{name} has parameters that cannot be given by name", hint="Leave out `/` and `*args`.")
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        positional = names[: code.co_argcount]
        defaults = dict(zip(reversed(positional), reversed(function.__defaults__ or ()), strict=False))
        defaults.update(function.__kwdefaults__ or {})
        hints = annotations_of(function) if names else {}
        fields = {each: Field(hints.get(each, Any), defaults.get(each, REQUIRED)) for each in names}
        return cls(name, function.__doc__ or "", fields, takes_others=bool(code.co_flags & inspect.CO_VARKEYWORDS))

    def arguments(self, given: object) -> dict[str, Any]:
        """The keyword arguments for a run's input. Raises `ArgumentError`, which names what is wrong with it."""
        if given is None:
            given = {}
        if not isinstance(given, dict):
            example = "{" + ", ".join(f'"{name}": ...' for name in self.fields) + "}"
            raise ArgumentError(f"{self.name}: the input must be a JSON object such as {example}, not {shown(given)}")
        unknown = [name for name in given if name not in self.fields]
        if unknown and not self.takes_others:
            raise ArgumentError(
                f"{self.name} has no argument {unknown[0]!r}{self._suggestion(unknown[0])}", hint=self._usage()
            )
        missing = [name for name, field in self.fields.items() if field.default is REQUIRED and name not in given]
        if missing:
            raise ArgumentError(f"{self.name}: missing argument {', '.join(map(repr, missing))}", hint=self._usage())
        return {name: self._converted(name, value) for name, value in given.items()}

    def schema(self) -> dict[str, Any]:
        """The input as a JSON schema."""
        properties = {}
        for name, field in self.fields.items():
            properties[name] = schema(field.annotation)
            if field.default is not REQUIRED:
                properties[name]["default"] = field.default
        return {
            "title": self.name,
            "description": inspect.cleandoc(self.doc),
            "type": "object",
            "properties": properties,
            "required": [name for name, field in self.fields.items() if field.default is REQUIRED],
            "additionalProperties": self.takes_others,
        }

    def _converted(self, name: str, value: Any) -> Any:
        if name not in self.fields:
            return value
        try:
            return convert(value, self.fields[name].annotation, name)
        except ArgumentError as error:
            raise ArgumentError(error.message, hint=error.hint or self._usage()) from None

    def _suggestion(self, name: str) -> str:
        close = difflib.get_close_matches(name, self.fields, n=1)
        return f"; did you mean {close[0]!r}?" if close else ""

    def _usage(self) -> str:
        if not self.fields:
            return f"{self.name} takes no arguments."
        return f"{self.name} takes: " + "; ".join(f"{name} ({field})" for name, field in self.fields.items())
