"""An inferlet's parameters: JSON input to keyword arguments, and their description."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from tartlet_sdk.errors import ArgumentError, ProgramError
from tartlet_sdk.json_types import convert, describe, schema, shown

KEYWORDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter."""

    annotation: Any
    default: Any  # REQUIRED if it has none

    def __str__(self) -> str:
        kind = describe(self.annotation)
        return kind if self.default is REQUIRED else f"{kind}, default {shown(self.default)}"


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function."""

    name: str
    doc: str
    fields: Mapping[str, Field]
    takes_others: bool
    """It has a `**parameter`, so that any name is an argument."""

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Signature:
        """Read a function's signature. Raises `ProgramError` for parameters that no JSON object can give."""
        name = function.__name__
        code = function.__code__
        if not (
            code.co_argcount or code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        ):
            return cls(name, function.__doc__ or "", {}, takes_others=False)
        hints = get_type_hints(function)
        fields, takes_others = {}, False
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                takes_others = True
            elif parameter.kind not in KEYWORDS:
                raise ProgramError(
                    f"{name}: the parameter {parameter} cannot be given by name", hint="Arguments come by name."
                )
            else:
                fields[parameter.name] = Field(hints.get(parameter.name, Any), parameter.default)
        return cls(name, function.__doc__ or "", fields, takes_others)

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
        return {
            name: convert(value, self.fields[name].annotation, name) if name in self.fields else value
            for name, value in given.items()
        }

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

    def _suggestion(self, name: str) -> str:
        close = difflib.get_close_matches(name, self.fields, n=1)
        return f"; did you mean {close[0]!r}?" if close else ""

    def _usage(self) -> str:
        if not self.fields:
            return f"{self.name} takes no arguments."
        return f"{self.name} takes: " + "; ".join(f"{name} ({field})" for name, field in self.fields.items())
