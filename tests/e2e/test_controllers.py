"""Controllers on the real model: the examples, by themselves, from an inferlet, and from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tartlet import sync
from tartlet.cli import app

pytestmark = [pytest.mark.model, pytest.mark.runner, pytest.mark.slow]

CONTROLLERS = Path(__file__).parent.parent.parent / "examples" / "controllers"
FIELDS = {"name": "text", "age": "number"}
PROMPT = "What do I need to bake bread? Name every ingredient."


def test_a_form_is_filled_in(real_host: sync.Host) -> None:
    """JSON of the fields that were asked for; the text between the answers is forced, and costs no sampled token."""
    run = real_host.start_control(
        CONTROLLERS / "form.py", "Invent a person. Answer in JSON.", FIELDS, chat=True, temperature=0.7, seed=2
    )
    (sequence,) = run.result()["sequences"]

    filled = json.loads(sequence["text"])
    assert list(filled) == ["name", "age"]
    assert filled["name"].strip(), "the model gives the person a name"
    assert isinstance(filled["age"], int)
    assert sequence["finish_reason"] == "stopped"


def test_a_banned_word_does_not_come(real_host: sync.Host) -> None:
    """The model would write it; with the controller it writes something else from there on, and the same before."""
    options: dict[str, Any] = {"chat": True, "max_tokens": 80, "seed": 1}
    (free,) = real_host.control(CONTROLLERS / "ban_word.py", PROMPT, "no such word", **options)["sequences"]
    assert "flour" in free["text"].lower()

    (banned,) = real_host.control(CONTROLLERS / "ban_word.py", PROMPT, "flour", **options)["sequences"]
    assert "flour" not in banned["text"].lower()
    common = free["text"].lower().index("flour")
    assert banned["text"][: common - 4] == free["text"][: common - 4]


def test_what_does_nothing_changes_nothing(real_host: sync.Host) -> None:
    """The text of a generation whose controller only looks on is that of one without."""
    watching = """
from tartlet_sdk import Branch, Controller, Model, inferlet

class Watch(Controller):
    def step(self, sequence, info):
        return Branch()

@inferlet
async def main(prompt: str) -> list[str]:
    drafts = []
    for controller in (None, "main"):
        context = Model.default().context()
        context.user(prompt)
        drafts.append((await context.generate(controller=controller, max_tokens=40)).text)
    return drafts
"""
    alone, watched = real_host.run(watching, {"prompt": PROMPT})

    assert watched == alone
    assert len(alone) > 40


def test_an_inferlet_attaches_one_by_name(real_host: sync.Host) -> None:
    """Next to a generation without, in the same run; what the controller bans, the other still writes."""
    source = """
import asyncio
from tartlet_sdk import Model, inferlet

@inferlet
async def main(prompt: str, word: str) -> list[str]:
    context = Model.default().context()
    context.user(prompt)
    context.cue()
    banned, free = await asyncio.gather(
        context.fork().generate(controller="ban", config=word, max_tokens=80),
        context.fork().generate(max_tokens=80),
    )
    return [banned.text.lower(), free.text.lower()]
"""
    programs = {"ban@1.0": CONTROLLERS / "ban_word.py"}
    banned, free = real_host.start(source, {"prompt": PROMPT, "word": "flour"}, programs=programs).result()

    assert "flour" in free
    assert "flour" not in banned


def test_the_command_line_runs_one() -> None:
    """With its config; the result has the sequence."""
    arguments = ["run", "--controller", str(CONTROLLERS / "form.py"), "--config", json.dumps(FIELDS), "--chat"]
    result = CliRunner().invoke(app, [*arguments, "--prompt", "Invent a person. Answer in JSON.", "--json"])

    assert result.exit_code == 0, result.output
    (sequence,) = json.loads(result.stdout.splitlines()[-1])["value"]["sequences"]
    assert list(json.loads(sequence["text"])) == list(FIELDS)
