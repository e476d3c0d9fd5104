"""A small contract with every form of type, for the C emitter."""

from __future__ import annotations

import pytest

from tartlet_bindings.model import Contract
from tartlet_bindings.reading import read_contract

WIT = """package a:b@1.0.0;

interface types {
  enum error-code { bad, worse }
  record error { code: error-code, message: string, hint: string }
}

/// Things.
interface things {
  use types.{error};
  type id = u32;
  record options { ids: list<id>, weight: option<f32>, name: option<string>, pair: tuple<id, f32> }
  variant shape { nothing, dot(id), many(list<string>) }
  /// A thing.
  resource thing {
    /// Makes one.
    make: static func(options: options) -> result<thing, error>;
    join: func(other: list<u32>) -> result<_, error>;
    shape: func() -> shape;
    options: func() -> options;
    const: func(default: u8) -> bool;
  }
  many: func(a: options, b: options, c: u64) -> result<tuple<thing, id>, error>;
}

interface others { record item { x: u8 } }
interface more { record item { x: u64 } f: func(item: item) -> item; }

world inferlet {
  import types; import things; import others; import more;
  export run: func(input: string) -> result<string, string>;
}
world controller { import types; export step: func(items: list<string>) -> result<list<u32>, string>; }
"""


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Contract:
    """The small contract."""
    folder = tmp_path_factory.mktemp("wit")
    (folder / "world.wit").write_text(WIT)
    return read_contract(folder)
