from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from tartlet.server.engine.command_ids import foreign_id
from tartlet_engine.api import (
    AnswerStep,
    AppendTokens,
    Combination,
    CombineConstraints,
    Command,
    ForkContext,
    Generate,
    OpenRun,
    Sampling,
    StepAnswer,
)

OWN = range(100, 200)


@pytest.mark.parametrize(
    ("command", "foreign"),
    [
        (OpenRun(100), None),
        (OpenRun(200), 200),
        (OpenRun(-1), -1),
        (ForkContext(100, 101, 7), None),
        (ForkContext(100, 99, 7), 99),
        (ForkContext(99, 100, 7), 99),
        (AppendTokens(100, (1, 2, 300)), None),
        (Generate(100, 101, Sampling(seed=5)), None),
        (Generate(100, 101, Sampling(seed=5), constraint_id=102, mask_id=199), None),
        (Generate(100, 101, Sampling(seed=5), mask_id=1), 1),
        (CombineConstraints(100, 101, Combination.ALL_OF, (102, 103)), None),
        (CombineConstraints(100, 101, Combination.ALL_OF, (102, 3)), 3),
        (AnswerStep(100, StepAnswer(allow=(1, 2, 3), bias=((4, 1.0),))), None),
    ],
    ids=str,
)
def test_an_id_that_is_not_ones_own_is_found(command: Command, foreign: int | None) -> None:
    """In every place where a command has ids; tokens, lengths and seeds are none."""
    assert foreign_id(command, OWN) == foreign


@pytest.mark.parametrize("kind", get_args(Command), ids=lambda kind: kind.__name__)
def test_every_command_names_somebody(kind: Any) -> None:
    """Each has an id by which it is checked, so a new one cannot slip through."""
    fields = msgspec.structs.fields(kind)
    command = kind(**{field.name: () if field.name in ("part_ids", "token_ids") else 7 for field in fields})

    assert foreign_id(command, range(7, 8)) is None
    assert foreign_id(command, OWN) == 7
