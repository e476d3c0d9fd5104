from tartlet.testing.fake_pages import FakeContext
from tartlet.testing.fake_saved_commands import FakeSavedCommands
from tartlet.testing.fake_state import FakeState
from tartlet_engine.api import (
    DeleteSaved,
    Done,
    ErrorCode,
    Failed,
    ListSaved,
    Opened,
    OpenSaved,
    SaveContext,
    SavedList,
)


def test_what_is_saved_opens_again(state: FakeState) -> None:
    """An opened context has the tokens and adapter of the saved one, and its pages, without a prefill."""
    handlers = FakeSavedCommands(state).handlers
    state.contexts[2] = FakeContext(2, 1, [5, 6], adapter="polite")

    handlers[SaveContext](SaveContext(2, 10, "a", host_state="s"))
    num_prefilled = state.stats().prefill_tokens
    handlers[OpenSaved](OpenSaved(11, 1, 3, "a"))

    assert state.events == [Done(10), Opened(11, (5, 6), "s")]
    assert (state.contexts[3].token_ids, state.contexts[3].adapter) == ([5, 6], "polite")
    assert state.stats().prefill_tokens == num_prefilled


def test_what_is_deleted_is_gone(state: FakeState) -> None:
    """A deleted context is not listed, and opening it says that there is none."""
    handlers = FakeSavedCommands(state).handlers
    state.contexts[2] = FakeContext(2, 1, [5])
    handlers[SaveContext](SaveContext(2, 10, "a"))
    handlers[DeleteSaved](DeleteSaved(11, 1, "a"))
    handlers[ListSaved](ListSaved(12, 1))
    handlers[OpenSaved](OpenSaved(13, 1, 3, "a"))

    assert state.events[:3] == [Done(10), Done(11), SavedList(12, ())]
    last = state.events[3]
    assert isinstance(last, Failed)
    assert last.error.code is ErrorCode.NOT_FOUND
