"""What the engine does for tenants besides steps, such as commands and copies, charged as if it were steps.

Pure Python. A second of it costs as many tokens of prompts as could have been computed in it.
"""

from __future__ import annotations

from tartlet_engine.contexts import ContextTable
from tartlet_engine.costs import Costs
from tartlet_engine.fairness import PREFILL_COST, TenantShare


class SideWork:
    """Charges side work to the tenants that it was done for. On the engine's thread."""

    def __init__(self, contexts: ContextTable, costs: Costs) -> None:
        """Charge by what a token costs, for what keeps the `contexts` of others waiting."""
        self._contexts = contexts
        self._costs = costs

    @property
    def is_awaited(self) -> bool:
        """Tell whether somebody waits for the next step."""
        return bool(self._contexts.active)

    def charge(self, share: TenantShare, seconds: float) -> None:
        """Charge for so much time, if another tenant waited for a step meanwhile: what nobody else wanted is free.

        Cost: one pass over the contexts that somebody waits for, up to the first of another tenant.
        """
        if any(sequence.account.share is not share for sequence in self._contexts.active.values()):
            share.charge(PREFILL_COST * seconds / self._costs.seconds_per_token)
