"""The token budget of a step: whole where nobody else waits, and else what fits into a short step."""

from __future__ import annotations

import pytest

from tartlet_engine.accounts import RunAccount
from tartlet_engine.costs import FixedCosts
from tartlet_engine.fairness import TenantShare
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Sequence
from tartlet_engine.step_budget import LEAST_PREFILL, SHARED_STEP_S, step_budget
from tartlet_engine.turns import TenantTurns

POOL = PagePool(4, 16)


def turns(num_decodes: int, num_prefills: int) -> TenantTurns:
    def sequences(count: int) -> list[Sequence]:
        account = RunAccount(1, "tenant", None, None)
        return [Sequence(number, account, PageTable(POOL, account)) for number in range(count)]

    return TenantTurns(TenantShare("tenant"), sequences(num_decodes), sequences(num_prefills), is_crowded=False)


@pytest.mark.parametrize(
    ("tenants", "tokens_a_step", "expected"),
    [
        ([(0, 1)], 100, 512),  # prompts of one tenant, and nobody else
        ([(0, 3)], 100, 512),
        ([(1, 1)], 100, 100),  # somebody reads along
        ([(0, 1), (0, 1)], 100, 100),  # another tenant's prompt
        ([(1, 0)], 100, 100),
        ([(1, 1)], 1000, 512),  # tokens are cheap: the whole budget takes no longer
        ([(200, 1)], 100, 200 + LEAST_PREFILL),  # all decodes take part, and prompts get on
        ([(600, 1)], 100, 512),
        ([], 100, 512),
    ],
)
def test_the_budget(tenants: list[tuple[int, int]], tokens_a_step: int, expected: int) -> None:
    """It depends on who waits and on what a token takes, and is never more than that of the engine."""
    costs = FixedCosts(seconds_per_token=SHARED_STEP_S / (tokens_a_step + 0.5))

    assert step_budget(512, costs, [turns(*each) for each in tenants]) == expected
