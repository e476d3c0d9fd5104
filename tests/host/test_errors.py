from __future__ import annotations

import inspect

import pytest

from tartlet import errors

CLASSES = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, errors.TartletError)]


def make(kind: type[errors.TartletError]) -> errors.TartletError:
    if kind is errors.LimitExceededError:
        return errors.LimitExceededError("cpu_limit", limit="max_cpu_ms", used=1500, allowed=1000, hint="do less")
    if kind is errors.QuotaError:
        return errors.QuotaError("queue_full", limit="queue_length", used=65, allowed=64, hint="do less")
    return kind("what happened", hint="what to do")


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_says_what_happened_and_what_to_do(kind: type[errors.TartletError]) -> None:
    """Message and hint are apart, and together in the text."""
    error = make(kind)

    assert str(error) == f"{error.message}\n{error.hint}"
    assert error.code


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_the_tree_in_the_docstring_is_the_real_one(kind: type[errors.TartletError]) -> None:
    """Each class stands in it, below its base."""
    lines = (errors.__doc__ or "").splitlines()
    names = [line.replace("│", " ").replace("├──", "   ").replace("└──", "   ").split() for line in lines]
    depths = {words[0]: lines[k].index(words[0]) for k, words in enumerate(names) if words}

    assert kind.__name__ in depths
    if kind is not errors.TartletError:
        assert depths[kind.__name__] == depths[kind.__bases__[0].__name__] + 4


def test_a_code_can_be_finer_than_the_class() -> None:
    """The class has a code of its own; an instance may have another."""
    assert errors.ModelError("x").code == "model"
    assert errors.ModelError("x", code="no_network").code == "no_network"
    assert errors.ModelError.code == "model"


def test_a_limit_error_has_its_numbers() -> None:
    """Which limit, what was used, what was allowed; in the message, too."""
    error = errors.LimitExceededError("cpu_limit", limit="max_cpu_ms", used=1500, allowed=1000)

    assert (error.code, error.limit, error.used, error.allowed) == ("cpu_limit", "max_cpu_ms", 1500, 1000)
    assert error.message == "max_cpu_ms allows 1,000, used 1,500"
    assert "Limits(max_cpu_ms=...)" in error.hint
    assert "--limit cpu_ms=..." in error.hint


def test_a_limit_error_can_say_more() -> None:
    """Details, such as a traceback, are part of the message; the hint stays what to do."""
    error = errors.LimitExceededError("memory_limit", limit="max_memory_bytes", used=2, allowed=1, details="Traceback")

    assert error.message == "max_memory_bytes allows 1, used 2\nTraceback"
    assert error.hint == errors.how_to_allow_more("max_memory_bytes")


def test_errors_can_be_raised_and_caught_by_their_base() -> None:
    """One `except` is enough for all of ours."""
    for kind in CLASSES:
        with pytest.raises(errors.TartletError):
            raise make(kind)


def test_a_quota_error_says_when_to_ask_again() -> None:
    """With the numbers, and who can change them; what does not pass has no time."""
    later = errors.QuotaError("rate_limited", limit="requests_per_minute", used=61, allowed=60, retry_after_s=1.5)
    never = errors.QuotaError("quota", limit="inferlets", used=101, allowed=100)

    assert (later.code, later.limit, later.used, later.allowed, later.retry_after_s) == (
        "rate_limited", "requests_per_minute", 61, 60, 1.5,
    )  # fmt: skip
    assert later.message == "requests_per_minute allows 60, used 61"
    assert later.hint.startswith("Ask again in 1.5 s. ")
    assert never.retry_after_s is None
    assert "Ask again" not in never.hint
    assert "--limit inferlets=" in never.hint
