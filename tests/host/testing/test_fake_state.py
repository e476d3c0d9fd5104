from tartlet.testing.fake_pages import FakeContext
from tartlet.testing.fake_state import FakeState
from tartlet_engine.api import Done, ErrorCode, Failed, LimitReached


def test_what_can_never_fit_fails_at_once(state: FakeState) -> None:
    """A context of more pages than its run may hold fails whoever waits for it, and gets none of them."""
    context = state.contexts[2] = FakeContext(2, 1, [0] * (2 * state.info.page_size + 1))

    assert not state.prefill(context, failed_id=9)

    (event,) = state.events
    assert isinstance(event, Failed)
    assert (event.failed_id, event.error.code) == (9, ErrorCode.KV_EXHAUSTED)
    assert state.stats().pages_held == 0


def test_pages_of_all_contexts_count_against_the_run(state: FakeState) -> None:
    """The page that is one too many stops the run."""
    for context_id in (2, 3):
        context = state.contexts[context_id] = FakeContext(context_id, 1, [0] * (state.info.page_size + 1))
        may_go_on = state.prefill_within_limits(context, failed_id=9)
        assert may_go_on is (context_id == 2)

    assert state.events == [LimitReached(1, "kv_pages", 4, 2)]


def test_freeing_gives_pages_back(state: FakeState) -> None:
    """A freed context holds nothing; freeing it twice does nothing."""
    context = state.contexts[2] = FakeContext(2, 1, [0])
    assert state.prefill(context, failed_id=9)
    assert state.stats().pages_held == 1

    state.free(2)
    state.free(2)

    assert state.stats().pages_held == 0


def test_an_answer_without_an_error_is_done(state: FakeState) -> None:
    """Whoever waits hears that it is done."""
    state.answer(5)

    assert state.events == [Done(5)]
