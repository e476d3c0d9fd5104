"""Finding the initial contents of memories in a component."""

from __future__ import annotations

from wasmtime import wat2wasm

from tartlet.wasm.data_segments import read_memory_images

COMPONENT = bytes(
    wat2wasm("""(component
  (core module $none (func))
  (component
    (core module
      (memory 1)
      (data (i32.const 300) "later")
      (data (i32.const 8) "first")
      (data "passive")
      (data (i32.const 15) "xyz")))
  (core module
    (import "env" "base" (global $base i32))
    (memory 1)
    (data (global.get $base) "somewhere")
    (data (i32.const 0x80000000) "high")))""")
)


def test_images_are_read_by_address() -> None:
    """Modules inside components are found; what lies between segments is zero, and so is what is outside of them."""
    first, second = read_memory_images(COMPONENT)

    assert (first.num_bytes, second.num_bytes) == (13, 4)
    assert first.read(6, 14) == b"\0\0first\0\0xyz\0\0"
    assert first.read(0, 3) == b"\0\0\0"
    assert first.read(302, 5) == b"ter\0\0"
    assert second.read(0x80000002, 2) == b"gh"


def test_positions_in_the_component() -> None:
    """What lies in one segment has a place in the component's bytes; what does not, has none."""
    first, second = read_memory_images(COMPONENT)

    for image, address, text in ((first, 9, b"irst"), (first, 300, b"later"), (second, 0x80000000, b"high")):
        position = image.position(address, len(text))
        assert position is not None
        assert COMPONENT[position : position + len(text)] == text
    assert [first.position(address, 4) for address in (0, 6, 10, 14, 299, 302)] == [None] * 6


def test_a_component_without_data() -> None:
    """It has no image."""
    assert read_memory_images(bytes(wat2wasm("(component (core module (memory 1)))"))) == []
