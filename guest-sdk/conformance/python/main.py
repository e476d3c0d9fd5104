"""The conformance suite in Python: runs the case that its input names, and returns the lines of its transcript."""

from __future__ import annotations

import inspect

import constraint_cases
import context_cases
import event_cases
import failure_cases
import forward_cases
import generation_cases
import model_cases
import run_cases
import steered_cases
import stepping_cases
import store_cases
import text_cases
import tiny_cases
import tree_cases
from registry import CASES
from transcript import Transcript

from tartlet_sdk import inferlet

SUBJECTS = (
    constraint_cases,
    context_cases,
    event_cases,
    failure_cases,
    forward_cases,
    generation_cases,
    model_cases,
    run_cases,
    steered_cases,
    stepping_cases,
    store_cases,
    text_cases,
    tiny_cases,
    tree_cases,
)
"""They have entered their cases in `CASES`."""


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
