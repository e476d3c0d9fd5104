from __future__ import annotations

import msgspec
import pytest

from tartlet import errors
from tartlet.errors import LimitExceededError, QuotaError, TartletError
from tartlet.server.failures import Failure, to_error, to_failure

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, TartletError)]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in (LimitExceededError, QuotaError)])
def test_every_error_survives_the_way(kind: type[TartletError]) -> None:
    """Class, code, message and hint."""
    error = to_error(_sent(to_failure(kind("what", hint="do", code="some_code"))))

    assert type(error) is kind
    assert (error.message, error.hint, error.code) == ("what", "do", "some_code")


def test_a_limit_keeps_its_numbers() -> None:
    """What was used, what was allowed, and how to allow more."""
    original = LimitExceededError("kv_limit", limit="max_kv_pages", used=9, allowed=8, details="where")
    error = to_error(_sent(to_failure(original)))

    assert isinstance(error, LimitExceededError)
    assert (error.limit, error.used, error.allowed) == ("max_kv_pages", 9, 8)
    assert (error.code, str(error)) == ("kv_limit", str(original))


def test_a_quota_keeps_its_numbers() -> None:
    """But not when to ask again, which is over by then."""
    original = QuotaError("queue_full", limit="queue_length", used=65, allowed=64, retry_after_s=1)
    error = to_error(_sent(to_failure(original)))

    assert isinstance(error, QuotaError)
    assert (error.limit, error.used, error.allowed, error.retry_after_s) == ("queue_length", 65, 64, None)
    assert (error.code, str(error)) == ("queue_full", str(original))


@pytest.mark.parametrize("kind", ["NoSuchError", "annotations", "how_to_allow_more", "__builtins__"])
def test_an_unknown_class_is_an_error_all_the_same(kind: str) -> None:
    """Whatever the other side says, nothing but errors is made."""
    error = to_error(Failure(kind, "code", "what"))

    assert type(error) is TartletError
    assert error.message == "what"


def _sent(failure: Failure) -> Failure:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(failure), type=Failure)
