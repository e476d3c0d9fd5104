from __future__ import annotations

from pathlib import Path

from tartlet.contract import contract, merge
from tartlet.wit_docs import COMMAND, write_reference
from tartlet.wit_parser import parse

ROOT = Path(__file__).parent.parent.parent

PACKAGE = """package a:b@1.2.3;
/// About one.
interface one {
  /// A shape.
  variant shape {
    /// Round.
    circle(f32),
    dot,
  }
  /// Draws it.
  draw: func(shape: shape, at: option<tuple<u32, u32>>) -> result<_, string>;
}
/// The world.
world w { import one; export go: func(); }
"""


def test_the_page_is_that_of_the_contract() -> None:
    """Whoever changes wit/ writes docs/wit.md anew: `make docs`."""
    page = (ROOT / "docs" / "wit.md").read_text(encoding="utf-8")

    assert page == write_reference(contract()), f"run: {COMMAND}"


def test_every_item_has_its_comment_and_its_types() -> None:
    """Types are written as wit writes them."""
    page = write_reference(merge([parse(PACKAGE)]))

    assert "`a:b@1.2.3`" in page
    assert "## one\n\nAbout one.\n" in page
    assert "### variant `shape`\n\nA shape.\n\n- `circle: f32`: Round.\n- `dot`\n" in page
    assert "### `draw(shape: shape, at: option<tuple<u32, u32>>) -> result<_, string>`\n\nDraws it.\n" in page
    assert "## World w\n\nThe world.\n\n- imports `one`\n- exports `go()`\n" in page


def test_every_item_of_the_contract_is_commented() -> None:
    """The contract explains itself."""
    for interface in contract().interfaces.values():
        assert interface.docs
        for item in [*interface.types.values(), *interface.functions.values()]:
            assert item.docs, f"{interface.name}: {item}"
