from tartlet.testing.fake_saved import BYTES_PER_TOKEN, MAX_BYTES, FakeSaved, FakeSavedContexts
from tartlet_engine.api import EngineError, ErrorCode, SaveContext


def code(answer: object) -> ErrorCode:
    assert isinstance(answer, EngineError)
    return answer.code


def test_contexts_by_tenant_and_name() -> None:
    """What one tenant saves another does not find; a taken name needs `overwrite`, and a deleted one is free."""
    store = FakeSavedContexts("fake")
    assert store.put("one", SaveContext(1, 2, "a", host_state="s"), [1, 2]) is None

    found = store.get("one", "a")
    assert isinstance(found, FakeSaved)
    assert (found.token_ids, found.host_state) == ((1, 2), "s")
    assert code(store.get("two", "a")) is ErrorCode.NOT_FOUND
    assert code(store.put("one", SaveContext(1, 2, "a"), [3])) is ErrorCode.ALREADY_EXISTS
    assert store.put("one", SaveContext(1, 2, "a", overwrite=True), [3]) is None
    assert [(each.name, each.num_tokens) for each in store.of_tenant("one")] == [("a", 1)]
    assert store.delete("one", "a") is None
    assert code(store.delete("one", "a")) is ErrorCode.NOT_FOUND


def test_a_quota_and_a_time_to_live() -> None:
    """Too many tokens are refused, and what has expired is gone."""
    store = FakeSavedContexts("fake")
    too_many = [0] * (MAX_BYTES // BYTES_PER_TOKEN + 1)

    assert code(store.put("t", SaveContext(1, 2, "big"), too_many)) is ErrorCode.QUOTA_EXCEEDED
    assert store.put("t", SaveContext(1, 2, "short", ttl_ms=-1), [1]) is None
    assert store.of_tenant("t") == ()
