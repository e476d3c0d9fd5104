"""What a JavaScript program is: its input, result, output and errors."""

from __future__ import annotations

from typing import Any

import pytest

import tartlet

pytestmark = pytest.mark.runner

FIELDS = """
import { inferlet, input } from "tartlet-sdk";

const fields = {
  n: input.integer(),
  name: input.text("x"),
  kinds: input.list(input.choice(["a", "b"]), ["a"]),
};
export default inferlet(fields, ({ n, name, kinds }) => [n, name, kinds]);
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"n": 1}, [1, "x", ["a"]]),
        ({"n": 2, "name": "y", "kinds": ["b", "a"]}, [2, "y", ["b", "a"]]),
    ],
)
def test_an_input_has_the_fields_that_are_declared(js: Any, given: Any, expected: Any) -> None:
    """Those with a default may be left out."""
    assert js.run(FIELDS, given) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, 'missing argument "n"'),
        ({"n": 1.5}, "n must be a whole number, not 1.5"),
        ({"n": 1, "name": 5}, "name must be text, not 5"),
        ({"n": 1, "kinds": ["c"]}, 'kinds[0] must be one of "a", "b", not "c"'),
        ({"n": 1, "m": 1}, 'there is no argument "m"\nIt takes: n (a whole number); name (text, default "x")'),
        ([1], "the input must be a JSON object such as"),
    ],
)
def test_an_input_that_does_not_fit_is_refused(js: Any, given: Any, message: str) -> None:
    """The error names the field; no line of the program is to blame."""
    error = js.error(FIELDS, given)

    assert error.startswith("TartletError [invalid-argument]: inferlet: ")
    assert message in error
    assert "main.ts" not in error


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", None),
        ("return [1, 'ü', null, true, { a: undefined, b: [undefined] }];", [1, "ü", None, True, {"b": [None]}]),
        (
            "return new Map<any, any>([['a', new Set([1, 2])], [3, new Date(0)]]);",
            {"a": [1, 2], "3": "1970-01-01T00:00:00.000Z"},
        ),
        ("return given.x + 1;", 3),
        ("return '\\ud83d';", "\ud83d"),
    ],
)
def test_a_result_is_json(js: Any, body: str, expected: Any) -> None:
    """Maps become objects, sets arrays; what is undefined is left out of objects."""
    assert js.main(body, {"x": 2}) == expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return { a: [1, NaN] };", 'the result["a"][1] is NaN'),
        ("return () => 1;", "the result is a function"),
        ("return 1n;", "the result is a bigint"),
        ("return [sleep(0)];", "the result[0] is a promise"),
        ("const a: any = []; a.push(a); return a;", "the result[0] contains itself"),
    ],
)
def test_a_result_that_is_no_json_is_refused(js: Any, body: str, message: str) -> None:
    """The error names the part of it."""
    program = f'import {{ sleep }} from "tartlet-sdk";\nexport default async () => {{ {body} }};'
    assert js.error(program).startswith(f"TartletError [program]: cannot be written as JSON: {message}")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("export const x = 1;", "the program has no default export, so there is no inferlet to run"),
        ("export default 5;", "the program exports a number by default"),
        ('import { inferlet } from "tartlet-sdk";\nexport default inferlet(5 as any);', "inferlet takes a function"),
        ('const name = "fs";\nexport default () => import(name);', "there is no module"),
    ],
)
def test_what_is_no_inferlet_is_told(js: Any, program: str, message: str) -> None:
    """With what to write instead."""
    assert message in js.error(program)


def test_an_error_shows_where_it_comes_from(js: Any) -> None:
    """Lines are those of the author's file, in functions that have waited, too."""
    error = js.error(
        """import { sleep } from "tartlet-sdk";

function inner(value: any): number {
  return value.missing.length;
}

async function outer(): Promise<number> {
  await sleep(1);
  return inner({});
}

export default async () => await outer();
"""
    )

    assert error.splitlines()[:2] == [
        "TypeError: cannot read property 'length' of undefined",
        "    at inner (main.ts:4:10)",
    ]
    assert "main.ts:9:" in error


def test_an_error_of_the_sdk_names_call_argument_and_place(js: Any) -> None:
    """And says what to do, if there is something to say."""
    error = js.error(
        'import { getModel } from "tartlet-sdk";\n'
        "export default () => {\n"
        "  getModel().context().generate({ maxTokens: 0 });\n"
        "};\n"
    )

    assert error.startswith(
        "TartletError [invalid-argument]: Context.generate: maxTokens must be from 1 to 4294967295, not"
    )
    assert "main.ts:3:" in error


def test_causes_and_other_things_that_are_thrown_are_shown(js: Any) -> None:
    """Whatever it is."""
    assert js.error("export default () => { throw { a: 1 }; };") == "the program threw { a: 1 }, which is no Error"
    error = js.error('export default () => { throw new Error("outer", { cause: new RangeError("inner") }); };')
    assert "Error: outer\n" in error
    assert "caused by RangeError: inner\n" in error


def test_what_is_printed_is_output_and_the_rest_is_log(js: Any) -> None:
    """Values are written so that one can read them."""
    js.main(
        """
        console.log("a", 1, [1, "b"], { c: null }, new Set([1]), new Error("x"));
        console.warn("careful");
        console.debug({ a: { b: { c: { d: { e: 1 } } } } });
        sdk.print("no newline \\ud800");
        sdk.log.error("bad");
        """
    )

    assert js.output == 'a 1 [1, "b"] { c: null } Set {1} Error: x\nno newline \ufffd'
    assert js.logs == [("warn", "careful"), ("debug", "{ a: { b: { c: { d: {...} } } } }"), ("error", "bad")]


def test_random_numbers_come_from_the_runs_seed(js: Any) -> None:
    """The same seed gives the same, another one others."""
    body = "return [Math.random(), Math.random()];"
    first, second, other = (js.main(body, seed=seed) for seed in (1, 1, 2))

    assert first == second
    assert first != other
    assert all(0 <= each < 1 for each in first)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return new TextDecoder().decode(new TextEncoder().encode('aü€🌱'));", "aü€🌱"),
        ("return new TextDecoder().decode(Uint8Array.of(0x61, 0xff, 0xe2, 0x82, 0x62));", "a\ufffd\ufffdb"),
        ("const a = { m: new Map([[1, [2]]]) }; return structuredClone(a).m.get(1) === a.m.get(1);", False),
        ("const a = new Uint8Array([1, 2, 3]); return Array.from(structuredClone(a));", [1, 2, 3]),
        ("try { structuredClone(() => 1); } catch (e: any) { return e.name; }", "DataCloneError"),
    ],
)
def test_globals_are_there(js: Any, body: str, expected: Any) -> None:
    """Those that programs use everywhere."""
    assert js.main(body) == expected


def test_a_program_that_never_ends_is_ended(js: Any) -> None:
    """By its limits, as any other."""
    with pytest.raises(tartlet.LimitExceededError):
        js.main("for (;;) {}", limits=tartlet.Limits(max_cpu_ms=100))
