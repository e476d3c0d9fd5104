"""Thirty lines with asyncio, re and json, that tell when the first of them ran."""

import time

FIRST_LINE_NS = time.monotonic_ns()

import asyncio  # noqa: E402
import json  # noqa: E402
import re  # noqa: E402
from dataclasses import asdict, dataclass  # noqa: E402

from tartlet_sdk import inferlet  # noqa: E402

WORD = re.compile(r"[a-z]+")


@dataclass
class Answer:
    """What one worker found."""

    text: str
    words: int


async def work(text: str) -> Answer:
    """Count words, the others taking turns."""
    await asyncio.sleep(0)
    return Answer(text, len(WORD.findall(text)))


@inferlet
async def thirty_lines() -> int:
    """Put three workers to work at once."""
    answers = await asyncio.gather(*(work(text) for text in ("one two", "three", "four five six")))
    print(json.dumps([asdict(answer) for answer in answers]))
    return FIRST_LINE_NS
