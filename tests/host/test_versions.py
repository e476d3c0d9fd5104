from __future__ import annotations

import random

from tartlet.versions import version_key


def test_versions_are_ordered_number_by_number() -> None:
    """1.10 comes after 1.9; text comes before numbers; a name without a version comes first."""
    ordered = ["p", "p@beta", "p@1", "p@1.2", "p@1.2.0", "p@1.9", "p@1.10", "p@2.0-a", "p@2.0-b", "p@10"]
    shuffled = random.Random(0).sample(ordered, len(ordered))

    assert sorted(shuffled, key=version_key) == ordered
