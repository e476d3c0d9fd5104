"""Generations with a controller, as the inferlet sees them."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_sdk import InvalidArgument, Model, Speculation
from tartlet_sdk.controlled import SequenceText


def test_chunks_are_put_together(stub: Any) -> None:
    """What a chunk takes back goes first, of the text and of the tokens; the finish stays."""
    text = SequenceText()
    for back, added, token_back, tokens in ((0, "abc", 0, [1, 2]), (2, "x", 1, [3]), (0, "", 2, [])):
        text.add(stub.controllers.SequenceChunk(0, back, added, token_back, tokens, [], None), ())

    assert (text.text, text.tokens, text.finish) == ("ax", [], None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"controller": 3}, "controller must be a str"),
        ({"controller": "x", "config": {1, 2}}, "config cannot be written as JSON"),
        ({"controller": "x", "speculation": Speculation()}, "a generation with a controller does not speculate"),
    ],
)
def test_wrong_arguments(stub: Any, options: Any, message: str) -> None:
    """They are refused when the generation is made."""
    with Model.default().context() as context, pytest.raises(InvalidArgument, match=message):
        context.generate(**options)


FORK = """
class Two(Controller):
    def step(self, sequence, info):
        if not sequence.generated and sequence.id == 0:
            return [Branch.force([72, 73]), Branch.force([74])]
        return [] if len(sequence.generated) > 2 else None
"""


@pytest.mark.runner
def test_a_draft_has_all_sequences(tiny: Any) -> None:
    """It is that of the context's own sequence; the others have their texts, tokens, reasons and usage."""
    program = (
        FORK
        + """
@inferlet
async def main():
    context = Model.default().context()
    context.fill("hello there")
    draft = await context.generate(controller="main", logprobs=1)
    own, other = draft.sequences
    assert draft.text == own.text and draft.tokens == own.tokens
    assert context.tokens[-len(own.tokens):] == list(own.tokens)
    return [own.tokens[:2], other.tokens[:1], own.finish_reason, other.usage.generated_tokens, len(other.logprobs)]
"""
    )
    assert tiny(program) == [[72, 73], [74], "stopped", 3, 2]


@pytest.mark.runner
def test_it_can_be_a_task_and_be_given_up(tiny: Any) -> None:
    """As any generation: in a task, twice awaited by none, ended with a task that is cancelled."""
    program = (
        FORK
        + """
@inferlet
async def main():
    context = Model.default().context()
    context.fill("hello there")
    task = asyncio.create_task(context.generate(controller="main"))
    await task
    generation = context.generate(controller="main")
    task = asyncio.create_task(generation)
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        pass
    return [repr(generation), (await context.generate(controller="main", max_tokens=1)).finish_reason]
"""
    )
    assert tiny(program) == ["<Generation, given up>", "length"]
