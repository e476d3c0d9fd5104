import os
from pathlib import Path

from tartlet.runtime.code_cache import CodeCache


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    """A text is found under its digest, in another process too, and under no other."""
    CodeCache(tmp_path).put("a" * 64, "text €")

    assert CodeCache(tmp_path).get("a" * 64) == "text €"
    assert CodeCache(tmp_path).get("b" * 64) is None


def test_the_least_used_go(tmp_path: Path) -> None:
    """Above the limit of bytes, what was used longest ago is dropped."""
    cache = CodeCache(tmp_path, max_bytes=2)
    cache.put("old", "1")
    cache.put("used", "2")
    for name, age in (("old", 100), ("used", 200)):
        os.utime(tmp_path / f"{name}.json", (age, age))
    assert cache.get("old") == "1"  # now "used" is the oldest

    cache.put("new", "3")

    assert [cache.get(name) for name in ("old", "used", "new")] == ["1", None, "3"]


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    """Without a place to keep it, a text is simply not kept."""
    cache = CodeCache(tmp_path / "missing")

    cache.put("a", "text")

    assert cache.get("a") is None
