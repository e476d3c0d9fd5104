from __future__ import annotations

from tartlet.server.front.live_run import LiveRun
from tartlet.server.front.served import Served, ServedRuns


def test_a_request_is_known_while_it_is_answered() -> None:
    """To its tenant, by the name that was asked for; also if the answer fails."""
    served, runs = ServedRuns(), [LiveRun(tenant, "web", "d") for tenant in ("acme", "acme", "globex")]
    with served.noted(runs[0], "GET", "/a"), served.noted(runs[2], "GET", "/c"):
        with served.noted(runs[1], "POST", "/b"):
            during = served.of("acme"), served.of("acme", "web"), served.of("acme", "other"), served.of("nobody")
        after = served.of("acme")

    both = [Served(runs[0], "GET", "/a"), Served(runs[1], "POST", "/b")]
    assert during == (both, both, [], [])
    assert after == both[:1]
    assert served.of("globex") == []
