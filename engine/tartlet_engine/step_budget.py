"""How many tokens one step may have. Pure Python.

A step of many tokens makes the most of the processor, and lasts: on two cores, 512 tokens of a small model take 0.3 s.
While it lasts, nobody gets a token and no prompt that arrives is begun. So a step that others wait for is shorter.
"""

from __future__ import annotations

from collections.abc import Sequence

from tartlet_engine.costs import Costs
from tartlet_engine.turns import TenantTurns

# What a step should last at most, if somebody reads along or several tenants want something of it.
SHARED_STEP_S = 0.075
# Tokens of prompts that it may have anyway, or prompts would not get on where tokens are expensive.
LEAST_PREFILL = 32


def step_budget(max_batch_tokens: int, costs: Costs, tenants: Sequence[TenantTurns]) -> int:
    """Return the token budget of a step.

    Args:
        max_batch_tokens: the budget when one tenant has nothing but prompts to compute.
        costs: what a token takes.
        tenants: those that want something of the step.
    """
    num_decodes = sum(turns.num_decodes for turns in tenants)
    is_shared = num_decodes > 0 or len(tenants) > 1
    if not is_shared or max_batch_tokens * costs.seconds_per_token <= SHARED_STEP_S:
        return max_batch_tokens
    affordable = int(SHARED_STEP_S / costs.seconds_per_token)
    return min(max_batch_tokens, max(affordable, num_decodes + LEAST_PREFILL))
