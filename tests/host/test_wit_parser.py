"""The WIT parser."""

from __future__ import annotations

import pytest

from tartlet.wit_parser import Member, TypeUse, parse

TEXT = """package test:host@1.2.3-rc.1;

/// Things.
/// And more.
interface things {
  use other.{token, event as happening};

  /// A number.
  type number = u32;  // not a doc comment
  record point { x: number, label: option<string>, }
  enum color { red, /// The best.
               green }
  variant shape { dot(point), none }
  flags perms { read, write }
  /* nothing
     here */
  /// A thing.
  resource thing {
    constructor(n: number);
    /// Opens one.
    open: static func(name: string) -> result<thing, color>;
    paint: func(at: list<point>, with: tuple<u8, %type>);
  }
  resource opaque;
  /// Frees them all.
  free: func() -> result<_, color>;
}

world small {
  import things;
  /// Runs.
  export run: func(input: string) -> result;
}

world large {
  use things.{point};
  include small;
  import other;
}
"""


def test_interface() -> None:
    """Types, resources, functions and uses are there, with their doc comments."""
    package = parse(TEXT)
    things = package.interfaces["things"]

    assert (package.name, package.version) == ("test:host", "1.2.3-rc.1")
    assert things.docs == "Things.\nAnd more."
    assert things.uses == {"token": ("other", "token"), "happening": ("other", "event")}
    assert things.types["number"].target == TypeUse("u32")
    assert things.types["number"].docs == "A number."
    assert things.types["point"].members == (
        Member("x", TypeUse("number"), ""),
        Member("label", TypeUse("option", (TypeUse("string"),)), ""),
    )
    assert things.types["color"].members == (Member("red", None, ""), Member("green", None, "The best."))
    assert things.types["shape"].members == (Member("dot", TypeUse("point"), ""), Member("none", None, ""))
    assert [types.form for types in things.types.values()] == [
        "alias", "record", "enum", "variant", "flags", "resource", "resource",
    ]  # fmt: skip


def test_functions() -> None:
    """Functions have the component model's names, and methods a `self`."""
    functions = parse(TEXT).interfaces["things"].functions

    assert list(functions) == ["[constructor]thing", "[static]thing.open", "[method]thing.paint", "free"]
    assert functions["[constructor]thing"].result == TypeUse("thing")
    assert functions["[static]thing.open"].docs == "Opens one."
    assert functions["[method]thing.paint"].parameters == (
        ("self", TypeUse("borrow", (TypeUse("thing"),))),
        ("at", TypeUse("list", (TypeUse("point"),))),
        ("with", TypeUse("tuple", (TypeUse("u8"), TypeUse("type")))),
    )
    assert functions["free"].result == TypeUse("result", (None, TypeUse("color")))


def test_worlds() -> None:
    """Worlds have imports, exports and includes."""
    worlds = parse(TEXT).worlds

    assert worlds["small"].imports == ["things"]
    assert worlds["small"].exports["run"].docs == "Runs."
    assert worlds["small"].exports["run"].result == TypeUse("result")
    assert worlds["large"].includes == ["small"]
    assert worlds["large"].uses == {"point": ("things", "point")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("interface x {}", "line 1: expected package, found 'interface'"),
        ("package a:b@1.0.0;\n\nfunction", "line 3: expected interface or world, found 'function'"),
        ("package a:b@1.0.0;\ninterface x {\n  f: u32;\n}", "line 3: expected func, found 'u32'"),
        ("package a:b@1.0.0;\ninterface x {", "line 2: expected a word, found 'end of the file'"),
        ("package a:b@1.0.0;\n$", "line 2: unexpected '[$]'"),
        ("package a:b@1.0.0;\nworld w { other x; }", "line 2: expected import, use, export or include"),
    ],
)
def test_errors_name_the_line(text: str, message: str) -> None:
    """What is not understood is an error with its line."""
    with pytest.raises(ValueError, match=message):
        parse(text)
