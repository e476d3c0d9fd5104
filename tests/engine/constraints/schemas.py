"""JSON schemas of growing difficulty, and a check of values against them that knows the keywords used here."""

from __future__ import annotations

import random
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


LEAVES: list[dict[str, Any]] = [
    *SIMPLE,
    {"type": "integer", "minimum": -3, "maximum": 1_000_000},
    {"type": "integer", "exclusiveMinimum": -1, "maximum": 7},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 99.5},
    {"type": "number", "minimum": -1e-3, "maximum": 1e-3},
    {"type": "integer", "minimum": 0, "maximum": 1000, "multipleOf": 25},
    {"type": "string", "format": "date-time"},
    {"type": "string", "format": "duration"},
    {"type": "string", "format": "ipv6"},
    {"type": "string", "pattern": "^(GB|DE|FR)[0-9]{2}( [0-9]{4}){2,4}$"},
    {"type": "string", "pattern": "[0-9]", "maxLength": 5},
    {"type": "string", "pattern": "^[äöüßéñ中文]{1,4}$"},
    {"type": "string", "pattern": "^#[0-9a-f]{6}$", "maxLength": 7},
    {"enum": ["\u0000", "\\", "/", "\u2028", "\U0001f600", ""]},
    {"enum": [0.5, -1, 10**12, "x" * 50]},
    {"type": ["integer", "boolean", "null"], "minimum": 0, "maximum": 5},
]


def grown_schemas(count: int = 200) -> Iterator[dict[str, Any]]:
    """Schemas that were put together at random, the first ones flat, the last ones five levels deep."""
    choose = random.Random(1)
    grown: list[dict[str, Any]] = []
    while len(grown) < count:
        defs: dict[str, Any] = {}
        schema = _grow(choose, 1 + 5 * len(grown) // count, defs)
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": defs, **schema}
        if schema not in grown:
            grown.append(schema)
    yield from grown


def _grow(choose: random.Random, depth: int, defs: dict[str, Any]) -> dict[str, Any]:
    if depth == 0:
        return choose.choice(LEAVES)

    def inner() -> dict[str, Any]:
        return _grow(choose, choose.randint(0, depth - 1), defs)

    match choose.choice(("object", "object", "open", "array", "tuple", "any", "tagged", "ref", "recursive", "all")):
        case "object":
            names = choose.sample(
                ["id", "name", "größe", "日付", "a b", 'q"uote', "x/y", "$ref", "type"], choose.randint(1, 5)
            )
            properties = {name: inner() for name in names}
            return _object(properties, choose.sample(names, choose.randint(0, len(names))))
        case "open":
            known = {"known": inner()}
            return {"type": "object", "properties": known, "required": ["known"], "additionalProperties": inner()}
        case "array":
            least = choose.randint(0, 2)
            return {"type": "array", "items": inner(), "minItems": least, "maxItems": least + choose.randint(0, 2)}
        case "tuple":
            firsts = [inner() for _ in range(choose.randint(1, 3))]
            return {"type": "array", "prefixItems": firsts, "items": False, "minItems": choose.randint(0, len(firsts))}
        case "any":
            return {"anyOf": [inner() for _ in range(choose.randint(2, 4))]}
        case "tagged":
            kinds = choose.sample(["circle", "square", "text"], 2)
            return {"oneOf": [_object({"kind": {"const": kind}, "of": inner()}, ["kind", "of"]) for kind in kinds]}
        case "ref":
            name = f"part{len(defs)}"
            defs[name] = {}
            defs[name] = inner()
            return {"$ref": f"#/$defs/{name}"}
        case "recursive":
            name = f"node{len(defs)}"
            defs[name] = {}
            below = {"type": "array", "items": {"$ref": f"#/$defs/{name}"}, "maxItems": 1}
            defs[name] = _object({"value": inner(), "below": below}, ["value"])
            return {"$ref": f"#/$defs/{name}"}
        case _:
            return {"allOf": [{"type": "integer", "minimum": choose.randint(0, 9)}, {"type": "integer", "maximum": 99}]}


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
_TIME = r"\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"
_FORMATS = {
    "date-time": rf"\d{{4}}-\d\d-\d\d[Tt]{_TIME}",
    "duration": r"P(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(\d+H)?(\d+M)?(\d+S)?)?)",
    "ipv6": r"[0-9A-Fa-f:.]{2,45}",
    "date": r"\d{4}-\d\d-\d\d",
    "time": r"\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)",
    "uuid": r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "ipv4": r"\d{1,3}(\.\d{1,3}){3}",
}


def same(one: Any, other: Any) -> bool:
    """Equality that tells true from 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _others(schema: dict[str, Any]) -> dict[str, Any]:
    """What a schema says of properties that it does not name."""
    others = schema.get("additionalProperties", True)
    return others if isinstance(others, dict) else {} if others else {"enum": []}


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
            all(matches(each, _others(schema), root) for name, each in value.items() if name not in properties),
        ]
    return all(checks)
