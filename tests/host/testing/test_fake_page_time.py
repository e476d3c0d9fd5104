from __future__ import annotations

import pytest

from tartlet.testing import fake_page_time
from tartlet.testing.fake_page_time import PageTime


def test_pages_count_for_as_long_as_they_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 pages for 10 ns, 5 for 100, none for 1,000, and 1 from then on: 520, as of the last change."""
    now = [0]
    monkeypatch.setattr(fake_page_time.time, "monotonic_ns", lambda: now[0])
    held = PageTime()
    for num_pages, passed in ((2, 10), (3, 100), (-5, 1000), (1, 0)):
        held.add(num_pages)
        now[0] += passed

    assert (held.num_pages, held.total_ns, held.since_ns) == (1, 520, 1110)
