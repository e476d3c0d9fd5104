"""What `generate` takes as a constraint, and the values that come of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from tartlet_sdk import InvalidArgument, Mask, Model
from tartlet_sdk.constraint import Constraint, constraint_of

NONE: dict[str, Any] = dict.fromkeys(("json_schema", "regex", "lark", "choices", "substring", "tokens"))


@dataclass
class Place:
    """What a schema is made of."""

    city: str
    size: Literal["small", "large"] = "small"


class Shop:
    """A class as pydantic makes it."""

    @staticmethod
    def model_json_schema() -> dict[str, Any]:
        return {"type": "object"}

    @classmethod
    def model_validate_json(cls, text: str) -> dict[str, Any]:
        return {"shop": json.loads(text)}


def made(**given: Any) -> Constraint:
    constraint = constraint_of(**NONE | given)
    assert constraint is not None
    return constraint


def test_no_argument_is_no_constraint() -> None:
    """Without any of them a generation is free."""
    assert constraint_of(**NONE) is None


@pytest.mark.parametrize(
    ("given", "text", "value"),
    [
        ({"json_schema": {"type": "array"}}, "[1]", [1]),
        ({"json_schema": '{"type": "array"}'}, "[1]", [1]),
        ({"json_schema": Place}, '{"city": "Ulm"}', Place("Ulm", "small")),
        ({"json_schema": list[Place]}, '[{"city": "Ulm", "size": "large"}]', [Place("Ulm", "large")]),
        ({"json_schema": Shop}, "{}", {"shop": {}}),
        ({"regex": "a+"}, "aa", "aa"),
        ({"lark": 'start: "a"'}, "a", "a"),
        ({"choices": ("a", "b")}, "a", "a"),
        ({"substring": "a b"}, "b", "b"),
        ({"tokens": {5}}, "x", "x"),
    ],
)
def test_values(given: dict[str, Any], text: str, value: object) -> None:
    """A schema gives what its JSON stands for, as an instance where it was a class; the others give the text."""
    assert made(**given).parse(text) == value


def test_a_type_becomes_its_schema() -> None:
    """Fields without a default are required, and there are no others."""
    argument = made(json_schema=Place).argument

    assert isinstance(argument, str)
    assert json.loads(argument) == {
        "type": "object",
        "properties": {"city": {"type": "string"}, "size": {"enum": ["small", "large"]}},
        "required": ["city"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"regex": "a", "choices": ["b"]}, "regex and choices are given at once"),
        ({"regex": 5}, "regex must be a str"),
        ({"choices": "yes"}, "several texts"),
        ({"choices": ["yes", 5]}, "a choice must be a str"),
        ({"tokens": [-1]}, "token ids"),
        ({"json_schema": {"a": object()}}, "cannot be written as JSON"),
        ({"lark": "\ud800"}, "lone surrogate"),
        ({"constraint": "a+"}, "constraint must be a Constraint, not str"),
        ({"constraint": Constraint.regex("a"), "regex": "b"}, "regex and constraint are given at once"),
    ],
)
def test_refusals(given: dict[str, Any], message: str) -> None:
    """What is wrong is said before anything starts."""
    with pytest.raises(InvalidArgument, match=message):
        made(**given)


def test_parts_are_put_together_flat() -> None:
    """`&` and `|` take the parts of their like, and keep the others as they are."""
    one, two, three = (Constraint.regex(pattern) for pattern in "abc")
    assert (one & two & three).argument == (one, two, three)
    assert (one | (two | three)).argument == (one, two, three)
    mixed = one & (two | three)
    assert mixed.name == "all_of"
    assert isinstance(mixed.argument, tuple)
    assert [part.name for part in mixed.argument] == ["regex", "any_of"]
    with pytest.raises(TypeError):
        one & "b"  # type: ignore[operator]


def test_values_of_combinations() -> None:
    """Of all of: what the schema makes of it. Of any of: what the first part makes of it that can."""
    place, words = Constraint.json_schema(Place), Constraint.choices("none", "many")
    assert (Constraint.regex(".*") & place).parse('{"city": "Ulm"}') == Place("Ulm")
    assert (words & Constraint.regex(".*")).parse("none") == "none"
    either = place | words
    assert either.parse('{"city": "Ulm"}') == Place("Ulm")
    assert either.parse("many") == "many"
    assert (place | Constraint.json_schema({"type": "integer"})).parse("12") == 12


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constraint.regex(5), "Constraint.regex: regex must be a str"),  # type: ignore[arg-type]
        (lambda: Constraint.choices("a", 5), "Constraint.choices: a choice must be"),  # type: ignore[arg-type]
        (lambda: Constraint.tokens("ab"), "Constraint.tokens: tokens must be"),  # type: ignore[arg-type]
        (lambda: Constraint.mask([5]), "Constraint.mask: mask must be a Mask"),  # type: ignore[arg-type]
    ],
)
def test_constructors_name_themselves(make: Any, message: str) -> None:
    """What is wrong is said where it is written."""
    with pytest.raises(InvalidArgument, match=message):
        make()


def test_combinations_are_compiled_part_by_part(run_async: Any) -> None:
    """A generation can follow them, and a mask besides."""

    async def main() -> None:
        constraint = (Constraint.regex("a") | Constraint.mask(Mask.of([5]))) & Constraint.json_schema(Place)
        draft = await Model.default().context().generate(constraint=constraint, mask=Mask.all())
        assert draft.text == "some text"

    run_async(main())


def test_generations_compile_and_drop_it(run_async: Any) -> None:
    """Awaited or iterated, by one task or two, a constrained generation gives its draft; unfinished it has no value."""
    import asyncio

    async def main() -> None:
        first = Model.default().context().generate(choices=["a", "b"])
        assert (await first).value is None  # the stub ends by length
        second = Model.default().context().generate(json_schema=Place)
        one, other = await asyncio.gather(asyncio.create_task(_text(second)), asyncio.create_task(_text(second)))
        assert one + other == second.result.text == "some text"

    run_async(main())


async def _text(generation: Any) -> str:
    return "".join([chunk.text async for chunk in generation])


@pytest.mark.runner
def test_in_the_sandbox(sandbox: Any) -> None:
    """Values come whole; a grammar's error is the author's, with the library's words; forks and models keep working."""
    value, kind, text, saved = sandbox.run("""
from dataclasses import dataclass
@dataclass
class Place:
    city: str
@inferlet
async def main():
    context = Model.default().context()
    context.user('{"city": "Ulm"}')
    fork = context.fork()
    draft = await fork.generate(json_schema=Place)
    try:
        await context.generate(regex="(")
    except InvalidArgument as error:
        kind = error.message
    text = (await context.generate(choices=["x"])).value
    await context.save("constrained", overwrite=True)
    opened = await Context.open("constrained")
    Context.delete("constrained")
    opened.user("hi")
    return [draft.value.city, draft.value], kind, text, (await opened.generate(regex="hi")).value
""")

    assert value == ["Ulm", {"city": "Ulm"}]
    assert kind.startswith("the regex cannot be used")
    assert text == '{"city": "Ulm"}'
    assert saved == "hi"
