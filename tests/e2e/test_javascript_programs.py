"""Programs in TypeScript on the real model: they generate what the same programs in Python do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tartlet import Output, sync
from tartlet.languages.node import node_tool

pytestmark = [
    pytest.mark.model,
    pytest.mark.runner,
    pytest.mark.slow,
    pytest.mark.skipif(node_tool().version is None, reason=f"Node.js is not installed: {node_tool().hint}"),
]

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
TS = EXAMPLES / "languages" / "ts"
STREAMED = """
from tartlet_sdk import Model, Sampler, inferlet

@inferlet
async def main(topic: str) -> list:
    context = Model.default().context()
    context.user(f"Tell me something about {topic}.")
    return (await context.generate(Sampler.top_p(0.8, 0.95, seed=1), max_tokens=80)).tokens
"""
STEPPED = """
from tartlet_sdk import Model, Sampler, inferlet

@inferlet
async def main(banned: str, words: int, seed: int) -> dict:
    model = Model.default()
    context = model.context()
    context.fill("Once upon a time")
    word = model.tokenize(f" {banned}")[0]
    taken = 0
    async with context.steps(Sampler.temperature(0.9, seed=seed), max_tokens=words) as steps:
        while steps.finish_reason is None:
            outcome = await steps.next()
            if outcome.sampled == word and outcome.finish_reason is None:
                await steps.backtrack(1)
                await steps.next(bias={word: -100})
                taken += 1
        return {"text": steps.text, "tokens": steps.tokens, "taken": taken}
"""
CONSTRAINED = """
import { getModel, inferlet } from "tartlet-sdk";

export default inferlet(async () => {
  const context = getModel().context();
  context.user("How old is the captain, and what is the captain's name?");
  const properties = { age: { type: "integer", maximum: 99, minimum: 1 }, name: { type: "string", maxLength: 12 } };
  const jsonSchema = { type: "object", properties, required: ["age", "name"], additionalProperties: false };
  const draft = await context.fork().generate<{ age: number; name: string }>({ jsonSchema, maxTokens: 60 });
  const chosen = await context.generate({ choices: ["yes", "no"] });
  return [typeof draft.value!.age, typeof draft.value!.name, ["yes", "no"].includes(chosen.text)];
});
"""


def test_best_of_n_chooses_the_same(real_host: sync.Host) -> None:
    """All candidates and the choice, from the seed of the run."""
    ours = real_host.run(TS / "best_of_n", {"n": 3}, seed=7)
    theirs = real_host.run(EXAMPLES / "best_of_n", {"n": 3}, seed=7)

    assert len(set(ours["candidates"])) == 3
    assert ours["candidates"] == theirs["candidates"]
    assert ours["best"] == theirs["best"]
    assert ours["probabilities"] == pytest.approx(theirs["probabilities"], abs=0.0011)


def test_hello_greets(real_host: sync.Host) -> None:
    """As in Python."""
    given = {"name": "Ada"}
    assert real_host.run(TS / "hello", given) == real_host.run(EXAMPLES / "hello", given)


def test_a_stream_has_the_same_tokens(real_host: sync.Host) -> None:
    """It ends soon after a sentence; what is printed is the text."""
    run = real_host.start(TS / "streaming", {"topic": "bees"})
    output = "".join(event.text for event in run if isinstance(event, Output))
    ours: dict[str, Any] = run.result()

    theirs = real_host.run(STREAMED, {"topic": "bees"})
    assert len(ours["tokens"]) > 3
    assert ours["tokens"] == theirs[: len(ours["tokens"])]
    assert output == ours["text"] + "\n"


def test_steps_have_the_same_tokens(real_host: sync.Host) -> None:
    """With tokens taken back and steered away from."""
    given = {"banned": "the", "words": 24, "seed": 7}
    ours = real_host.run(TS / "stepping", given)

    assert ours["taken"] > 0
    assert ours == real_host.run(STEPPED, given)


def test_constraints_are_followed(real_host: sync.Host, tmp_path: Path) -> None:
    """The value is what was parsed of the text."""
    (tmp_path / "main.ts").write_text(CONSTRAINED)

    assert real_host.run(tmp_path) == ["number", "string", True]
