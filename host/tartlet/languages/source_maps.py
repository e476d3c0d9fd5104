"""Joins the source maps of texts that stand one below the other (ECMA-426, version 3 of the format)."""

from __future__ import annotations

import json

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_BITS = 5  # of a number in a digit; one more says that others follow


class JoinedMap:
    """The map of a text that is made of others, in the order in which it is written."""

    def __init__(self) -> None:
        self._sources: list[str] = []
        self._lines: list[str] = []
        self._last = [0, 0, 0]  # source, line and column of the last place so far, from which the next one is counted

    def skip_lines(self, count: int) -> None:
        """Add lines that come of no source."""
        self._lines += [""] * count

    def add(self, source: str, mappings: str, num_lines: int) -> None:
        """Add the lines of a text that comes of one source.

        Args:
            source: Its name.
            mappings: Of the text's own map.
            num_lines: Of the text.
        """
        place = [0, 0, 0]
        is_first = True
        lines = mappings.split(";")
        for number, line in enumerate(lines):
            segments = []
            for segment in filter(None, line.split(",")):
                numbers = _decode(segment)
                if len(numbers) >= 4:
                    place = [before + step for before, step in zip(place, numbers[1:4], strict=True)]
                    if is_first:
                        start = [len(self._sources), place[1], place[2]]
                        numbers[1:4] = [now - before for now, before in zip(start, self._last, strict=True)]
                        is_first = False
                    del numbers[4:]  # which name stands there
                segments.append("".join(map(_encode, numbers)))
            lines[number] = ",".join(segments)
        if not is_first:
            self._last = [len(self._sources), place[1], place[2]]
        self._sources.append(source)
        self._lines += (lines + [""] * num_lines)[:num_lines]

    def to_json(self) -> str:
        """The map, as far as it tells places."""
        return json.dumps({"sources": self._sources, "mappings": ";".join(self._lines)})


def _decode(segment: str) -> list[int]:
    """The numbers of a segment. Each is written in base64 digits, the lowest first; its last bit is the sign."""
    numbers = []
    value = shift = 0
    for digit in segment:
        part = _VALUES[digit]
        value |= (part & ((1 << _BITS) - 1)) << shift
        shift += _BITS
        if not part >> _BITS:
            numbers.append(-(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
    return numbers


def _encode(number: int) -> str:
    value = number << 1 if number >= 0 else (-number << 1) | 1
    digits = ""
    while True:
        part = value & ((1 << _BITS) - 1)
        value >>= _BITS
        digits += _DIGITS[part | (1 << _BITS) if value else part]
        if not value:
            return digits
