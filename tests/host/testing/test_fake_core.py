from tartlet.testing import FakeEngine
from tartlet.testing.fake_core import FakeCore
from tartlet_engine.api import (
    AppendTokens,
    Chunk,
    CloseRun,
    CreateContext,
    Finished,
    Generate,
    OpenRun,
    PagesHeld,
    Sampling,
    Stop,
)


def test_a_step_gives_each_generation_one_token() -> None:
    """Without a thread, one step after the other: a token for each, then the ends."""
    engine = FakeEngine()
    engine.close()
    core = FakeCore(engine.models["fake"], lambda prompt: "ab")
    core.execute(OpenRun(1))
    for context_id in (2, 3):
        core.execute(CreateContext(context_id, 1))
        core.execute(AppendTokens(context_id, (97,)))
        core.execute(Generate(10 + context_id, context_id, Sampling(seed=0), Stop(max_tokens=2)))

    first, second = core.step(), core.step()

    assert [type(event) for event in first] == [Chunk, Chunk, PagesHeld]
    assert [type(event) for event in second] == [Chunk, Finished, Chunk, Finished]
    assert not core.has_work
    core.execute(CloseRun(1))
    core.check_integrity()
    assert core.stats().pages_free == core.stats().pages_total
