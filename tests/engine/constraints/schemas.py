"""JSON schemas of growing difficulty, and a check of values against them that knows the keywords used here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

NAME = {"type": "string", "maxLength": 6}
POINT = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["x", "y"]}

SIMPLE: list[dict[str, Any]] = [
    {"type": "boolean"},
    {"type": "null"},
    {"type": "integer", "minimum": 0, "maximum": 9},
    {"type": "integer", "minimum": -500, "maximum": 500},
    {"type": "integer", "exclusiveMinimum": 10, "exclusiveMaximum": 1000},
    {"type": "integer", "minimum": 0, "maximum": 10_000, "multipleOf": 5},
    {"type": "number", "minimum": 0, "maximum": 1},
    {"type": "number", "minimum": -10.5, "maximum": 10.5},
    {"type": "string", "maxLength": 0},
    {"type": "string", "minLength": 3, "maxLength": 3},
    {"type": "string", "maxLength": 12},
    {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
    {"type": "string", "pattern": "^(red|green|blue)(, (red|green|blue)){0,2}$"},
    {"type": "string", "pattern": "^[^aeiou]{5}$"},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "time"},
    {"type": "string", "format": "uuid"},
    {"type": "string", "format": "ipv4"},
    {"const": "only this"},
    {"const": {"nested": [1, None, {"deep": True}]}},
    {"enum": ["north", "south", "east", "west"]},
    {"enum": [1, "one", None, True, [1], {"one": 1}]},
    {"enum": [f"option {number}" for number in range(200)]},
    {"enum": ["naïve", "日本語", "🍰", 'quote " and \\ backslash', "tab\tand\nline"]},
    {"type": ["string", "null"], "maxLength": 4},
]

COMPOUND: list[dict[str, Any]] = [
    {"type": "array", "items": {"type": "boolean"}, "maxItems": 3},
    {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "maxItems": 4},
    {"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "null"}], "items": False, "minItems": 2},
    {"type": "array", "items": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}, "maxItems": 2},
    {**POINT, "additionalProperties": False},
    {"type": "object", "properties": {"name": NAME}, "additionalProperties": False},
    {"type": "object", "properties": {"name": NAME, "tag": NAME}, "required": ["tag"], "additionalProperties": False},
    {"type": "object", "properties": {}, "additionalProperties": False},
    {
        "type": "object",
        "properties": {f"field_{number}": {"type": "boolean"} for number in range(12)},
        "required": [f"field_{number}" for number in range(0, 12, 2)],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "properties": {"point": {**POINT, "additionalProperties": False}, "label": NAME},
        "required": ["point", "label"],
        "additionalProperties": False,
    },
    {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 99}, {"type": "string", "maxLength": 4}]},
    {"anyOf": [{"type": "null"}, {**POINT, "additionalProperties": False}]},
    {"oneOf": [{"type": "boolean"}, {"const": "neither"}]},
    {
        "anyOf": [
            {
                "type": "object",
                "properties": {"kind": {"const": "circle"}, "radius": {"type": "integer", "minimum": 1, "maximum": 9}},
                "required": ["kind", "radius"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"kind": {"const": "text"}, "text": NAME},
                "required": ["kind", "text"],
                "additionalProperties": False,
            },
        ]
    },
    {"allOf": [{"type": "integer", "minimum": 5}, {"type": "integer", "maximum": 50}]},
    {
        "$defs": {"colour": {"enum": ["red", "green"]}},
        "type": "array",
        "items": {"$ref": "#/$defs/colour"},
        "minItems": 1,
        "maxItems": 3,
    },
    {
        "$defs": {
            "tree": {
                "type": "object",
                "properties": {
                    "leaf": {"type": "boolean"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 1},
                },
                "required": ["leaf"],
                "additionalProperties": False,
            }
        },
        "$ref": "#/$defs/tree",
    },
]


def all_schemas() -> Iterator[dict[str, Any]]:
    """Each of them alone, in a list, in an object, as an optional field, and beside another: 210 in all."""
    for schema in (*SIMPLE, *COMPOUND):
        yield schema
        defs = {"$defs": schema["$defs"]} if "$defs" in schema else {}
        inner = {key: value for key, value in schema.items() if key != "$defs"}
        yield {**defs, "type": "array", "items": inner, "minItems": 1, "maxItems": 2}
        yield {**defs, **_object({"value": inner}, ["value"])}
        yield {**defs, **_object({"value": inner, "note": NAME}, ["note"])}
        yield {**defs, **_object({"first": inner, "second": _object({"inner": inner}, ["inner"])}, ["first", "second"])}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_TYPES = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: type(value) is int or (type(value) is float and value.is_integer()),
    "number": lambda value: type(value) in (int, float),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_FORMATS = {
    "date": r"\d{4}-\d\d-\d\d",
    "time": r"\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)",
    "uuid": r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "ipv4": r"\d{1,3}(\.\d{1,3}){3}",
}


def same(one: Any, other: Any) -> bool:
    """Equality that tells true from 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def matches(value: Any, schema: dict[str, Any], root: dict[str, Any] | None = None) -> bool:
    """Whether a value is what a schema describes."""
    root = schema if root is None else root
    if "$ref" in schema:
        return matches(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_TYPES[name](value) for name in types):
            return False
    checks = [
        "const" not in schema or same(value, schema["const"]),
        "enum" not in schema or any(same(value, each) for each in schema["enum"]),
        "anyOf" not in schema or any(matches(value, each, root) for each in schema["anyOf"]),
        "oneOf" not in schema or sum(matches(value, each, root) for each in schema["oneOf"]) == 1,
        all(matches(value, each, root) for each in schema.get("allOf", ())),
    ]
    if isinstance(value, str):
        checks += [
            schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)),
            re.search(schema.get("pattern", ""), value) is not None,
            "format" not in schema or re.fullmatch(_FORMATS[schema["format"]], value) is not None,
        ]
    elif type(value) in (int, float):
        checks += [
            schema.get("minimum", value) <= value <= schema.get("maximum", value),
            value > schema.get("exclusiveMinimum", value - 1),
            value < schema.get("exclusiveMaximum", value + 1),
            value % schema.get("multipleOf", 1) == 0 or "multipleOf" not in schema,
        ]
    elif isinstance(value, list):
        firsts = schema.get("prefixItems", [])
        rest = schema.get("items", True)
        checks += [
            schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)),
            all(matches(each, part, root) for each, part in zip(value, firsts, strict=False)),
            all(rest if isinstance(rest, bool) else matches(each, rest, root) for each in value[len(firsts) :]),
        ]
    elif isinstance(value, dict):
        properties = schema.get("properties", {})
        checks += [
            all(name in value for name in schema.get("required", ())),
            all(matches(each, properties[name], root) for name, each in value.items() if name in properties),
            schema.get("additionalProperties", True) or all(name in properties for name in value),
        ]
    return all(checks)
