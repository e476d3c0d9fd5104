from tartlet.testing.fake_generation_commands import FakeGenerationCommands
from tartlet.testing.fake_pages import FakeContext
from tartlet.testing.fake_state import FakeState
from tartlet_engine.api import (
    CancelGeneration,
    Chunk,
    EngineError,
    ErrorCode,
    Failed,
    Finished,
    FinishReason,
    Generate,
    Sampling,
    Stop,
)

GENERATE = Generate(10, 2, Sampling(seed=0), Stop(max_tokens=2))


def generating(state: FakeState) -> FakeGenerationCommands:
    """What carries out commands about generations, with context 2 to generate from."""
    state.contexts[2] = FakeContext(2, 1, [97])
    return FakeGenerationCommands(state, lambda prompt: prompt + "b")


def test_a_reply_is_played_until_it_stops(state: FakeState) -> None:
    """Each step adds one token of the reply to the context, until something stops it."""
    commands = generating(state)
    commands.handlers[Generate](GENERATE)
    commands.step()
    commands.step()

    *chunks, end = state.events
    assert [chunk.text for chunk in chunks if isinstance(chunk, Chunk)] == ["a", "b"]
    assert isinstance(end, Finished)
    assert end.reason is FinishReason.LENGTH
    assert state.contexts[2].token_ids == list(b"aab")
    assert state.generations == {}


def test_a_cancelled_generation_ends_in_the_next_step(state: FakeState) -> None:
    """Cancelling gives no more tokens; cancelling what has ended does nothing."""
    commands = generating(state)
    commands.handlers[Generate](GENERATE)
    for _ in range(2):
        commands.handlers[CancelGeneration](CancelGeneration(10))
        commands.step()

    (end,) = state.events
    assert isinstance(end, Finished)
    assert end.reason is FinishReason.CANCELLED


def test_generations_that_cannot_start(state: FakeState) -> None:
    """The failure that a test asked for comes first, then that of a constraint which is not the run's."""
    commands = generating(state)
    commands.failures.append(EngineError(ErrorCode.UNAVAILABLE, "asked for"))
    commands.handlers[Generate](GENERATE)
    commands.handlers[Generate](Generate(11, 2, Sampling(seed=0), Stop(), constraint_id=7))

    codes = [event.error.code for event in state.events if isinstance(event, Failed)]
    assert codes == [ErrorCode.UNAVAILABLE, ErrorCode.NOT_FOUND]
    assert state.generations == {}
