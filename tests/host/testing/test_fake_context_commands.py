from tartlet.testing.fake_context_commands import FakeContextCommands
from tartlet.testing.fake_state import FakeState
from tartlet_engine.api import (
    AppendTokens,
    Command,
    CreateContext,
    Done,
    EvictContext,
    FlushContext,
    ForkContext,
    FreeContext,
    TruncateContext,
)


def execute(state: FakeState, *commands: Command) -> None:
    handlers = FakeContextCommands(state).handlers
    for command in commands:
        handlers[type(command)](command)


def test_a_fork_shares_its_parents_pages(state: FakeState) -> None:
    """The parent is computed first, and the child holds its pages and its adapter."""
    execute(state, CreateContext(2, 1, "polite"), AppendTokens(2, (5, 6)), ForkContext(2, 3, 1))

    parent, child = state.contexts[2], state.contexts[3]
    assert (child.token_ids, child.adapter, child.pages) == ([5], "polite", parent.pages)
    execute(state, FreeContext(2), FreeContext(3))
    assert state.stats().pages_held == 0


def test_cutting_a_context(state: FakeState) -> None:
    """What is evicted or truncated is gone; flush and evict say when they are done."""
    execute(state, CreateContext(2, 1), AppendTokens(2, (5, 6, 7, 8)), FlushContext(2, 10))
    execute(state, EvictContext(2, 11, 1, 2), TruncateContext(2, 2))

    assert state.contexts[2].token_ids == [5, 7]
    assert state.events == [Done(10), Done(11)]
