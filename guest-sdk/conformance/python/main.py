"""The conformance suite in Python: runs the case that its input names, and returns the lines of its transcript."""

from __future__ import annotations

import inspect

from registry import CASES
from transcript import Transcript

from tartlet_sdk import inferlet


@inferlet
async def main(case: str) -> list[str]:
    """Run one case; for the name `list`, tell which there are."""
    if case == "list":
        return sorted(CASES)
    transcript = Transcript()
    outcome = CASES[case](transcript)
    if inspect.isawaitable(outcome):
        await outcome
    return transcript.lines
