"""JSON values and Python's types: checking a value against an annotation, and describing an annotation.

Supported: int, float, str, bool, None, list, tuple, set, dict with text keys, optional and other unions, Literal,
enums, dataclasses, and Any; everything else is refused by name.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tartlet_sdk.errors import ArgumentError, ProgramError

ANY = (Any, object)
SCALARS = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
LISTS = {list: list, set: set, frozenset: frozenset, Sequence: list}  # what makes the value from a JSON list
MOST_SHOWN = 60


def beginning(value: object) -> str:
    """The beginning of what a value looks like in Python."""
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 3] + "..."


def shown(value: object) -> str:
    """A value for an error message: its type and the beginning of what it looks like."""
    text = beginning(value)
    return text if value is None or isinstance(value, bool) else f"{text} ({type(value).__name__})"


def convert(value: Any, annotation: Any, path: str) -> Any:
    """The JSON `value` as an `annotation`. Raises `ArgumentError`, which names `path`, the expected and the given."""
    if annotation in ANY:
        return value
    if annotation in SCALARS:
        return _scalar(value, annotation, path)
    origin, parts = get_origin(annotation) or annotation, get_args(annotation)
    if origin in (Union, types.UnionType):
        return _union(value, annotation, parts, path)
    if origin is Literal:
        return (
            value
            if any(value == each and type(value) is type(each) for each in parts)
            else _refuse(value, annotation, path)
        )
    if origin in LISTS:
        if not isinstance(value, list):
            _refuse(value, annotation, path)
        item = parts[0] if parts else Any
        return LISTS[origin](convert(each, item, f"{path}[{k}]") for k, each in enumerate(value))
    if origin is tuple:
        return _tuple(value, annotation, parts, path)
    if origin in (dict, Mapping):
        if not isinstance(value, dict):
            _refuse(value, annotation, path)
        item = _dict_item(annotation, parts)
        return {key: convert(each, item, f"{path}.{key}") for key, each in value.items()}
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        members = [member for member in annotation if member.value == value]
        return members[0] if members else _refuse(value, annotation, path)
    if dataclasses.is_dataclass(annotation):
        return _dataclass(value, annotation, path)
    raise _unsupported(annotation)


def describe(annotation: Any) -> str:
    """The annotation in words, for an error message."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation in ANY:
        return "anything"
    if annotation is type(None):
        return "null"
    if origin in (Union, types.UnionType):
        return " or ".join(describe(part) for part in parts)
    if origin is Literal:
        return "one of " + ", ".join(map(repr, parts))
    if origin is not None:
        inner = ", ".join("..." if part is ... else describe(part) for part in parts)
        return f"{origin.__name__}[{inner}]"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "one of " + ", ".join(repr(member.value) for member in annotation)
    return getattr(annotation, "__name__", repr(annotation))


def schema(annotation: Any) -> dict[str, Any]:
    """The annotation as a JSON schema."""
    origin, parts = get_origin(annotation) or annotation, get_args(annotation)
    if annotation in ANY:
        return {}
    if annotation in SCALARS:
        return {"type": SCALARS[annotation]}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema(part) for part in parts]}
    if origin is Literal:
        return {"enum": list(parts)}
    if origin in LISTS:
        return {"type": "array", "items": schema(parts[0] if parts else Any)}
    if origin is tuple:
        if not parts or parts[-1] is ...:
            return {"type": "array", "items": schema(parts[0] if parts else Any)}
        return {
            "type": "array",
            "prefixItems": [schema(part) for part in parts],
            "minItems": len(parts),
            "maxItems": len(parts),
        }
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": schema(_dict_item(annotation, parts))}
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return {"enum": [member.value for member in annotation]}
    if dataclasses.is_dataclass(annotation):
        hints = get_type_hints(annotation)
        fields = [field for field in dataclasses.fields(annotation) if field.init]
        return {
            "type": "object",
            "properties": {field.name: schema(hints[field.name]) for field in fields},
            "required": [field.name for field in fields if not _has_default(field)],
            "additionalProperties": False,
        }
    raise _unsupported(annotation)


def _scalar(value: Any, annotation: Any, path: str) -> Any:
    if annotation is float and type(value) is int:
        return float(value)
    return value if type(value) is annotation else _refuse(value, annotation, path)


def _union(value: Any, annotation: Any, parts: tuple[Any, ...], path: str) -> Any:
    problems = []
    for part in sorted(parts, key=lambda part: part is float):  # an int stays one if both are allowed
        try:
            return convert(value, part, path)
        except ArgumentError as error:
            problems.append(error)
    inner = [error for error in problems if not error.message.startswith(f"argument {path!r}")]
    if len(inner) == 1:  # the one whose outer type was right knows best
        raise inner[0]
    return _refuse(value, annotation, path)


def _tuple(value: Any, annotation: Any, parts: tuple[Any, ...], path: str) -> Any:
    if not isinstance(value, list):
        _refuse(value, annotation, path)
    items: Iterator[Any] | tuple[Any, ...] = parts
    if not parts or parts[-1] is ...:
        items = (parts[0] if parts else Any,) * len(value)
    elif len(parts) != len(value):
        _refuse(value, annotation, path)
    return tuple(convert(each, item, f"{path}[{k}]") for k, (each, item) in enumerate(zip(value, items, strict=True)))


def _dataclass(value: Any, annotation: Any, path: str) -> Any:
    if not isinstance(value, dict):
        _refuse(value, annotation, path)
    hints = get_type_hints(annotation)
    fields = {field.name: field for field in dataclasses.fields(annotation) if field.init}
    for name in value:
        if name not in fields:
            raise ArgumentError(
                f"argument {path!r} has no field {name!r}; {annotation.__name__} has: {', '.join(fields)}"
            )
    for name, field in fields.items():
        if name not in value and not _has_default(field):
            raise ArgumentError(f"argument {path!r} lacks the field {name!r}, {describe(hints[name])}")
    return annotation(**{name: convert(each, hints[name], f"{path}.{name}") for name, each in value.items()})


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _dict_item(annotation: Any, parts: tuple[Any, ...]) -> Any:
    """The type of a dict's values; its keys must be text."""
    if parts and parts[0] not in (str, *ANY):
        raise _unsupported(annotation)
    return parts[1] if parts else Any


def _refuse(value: object, annotation: Any, path: str) -> Any:
    raise ArgumentError(f"argument {path!r}: expected {describe(annotation)}, got {shown(value)}")


def _unsupported(annotation: Any) -> ProgramError:
    return ProgramError(
        f"a parameter cannot have the type {describe(annotation)}",
        hint="Use int, float, str, bool, list, tuple, dict with str keys, Literal, an enum, a dataclass, or a union.",
    )
