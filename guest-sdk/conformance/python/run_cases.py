"""The run itself."""

from __future__ import annotations

from registry import case
from transcript import Transcript

from tartlet_sdk import run


@case("runs.info")
def info(t: Transcript) -> None:
    this = run.info()
    t.say("an id", len(this.id) > 0, len(this.inferlet) > 0)
    t.say("tenant", this.tenant)
    t.say("seed", this.seed)


@case("runs.limits")
async def limits(t: Transcript) -> None:
    for name, limit in run.limits().items():
        t.say(name, limit.allowed)
    t.say("used", run.limits()["max_tokens"].used, run.limits()["max_controllers"].used)
