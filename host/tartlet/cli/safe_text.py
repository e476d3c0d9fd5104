"""Text from programs and models, made harmless for a terminal."""

from __future__ import annotations

_KEPT = "\n\t"
_ESCAPES = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in _KEPT},  # ␛ and the like
    0x0D: None,  # a lone carriage return would let a line write over the one before
    0x7F: "\u2421",
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),  # lone surrogates, which no stream takes
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),  # some terminals take these for escape sequences too
}


def safe_text(text: str) -> str:
    """Replace control characters, other than newline and tab, by visible signs.

    A terminal then shows escape sequences instead of obeying them. Works character by character, so that a stream may
    be cut anywhere.
    """
    return text.translate(_ESCAPES)
