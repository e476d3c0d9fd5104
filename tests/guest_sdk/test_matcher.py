"""Going through a constraint, as programs do."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_sdk import Constraint, InvalidArgument, Matcher


def test_it_tells_where_it_is(run_async: Any) -> None:
    """After each move, without waiting again."""

    async def main() -> None:
        matcher = await Matcher.begin(Constraint.regex("a+"))
        await matcher.advance([97])
        await matcher.rollback(1)
        fork = await matcher.fork()
        assert (fork.forced, fork.may_end, fork.is_complete, fork.problem) == ([], True, False, None)
        assert 97 in fork.mask

    run_async(main())


def test_wrong_types_are_told_by_name(run_async: Any) -> None:
    """They never reach the host, where they would end the run."""

    async def main() -> None:
        with pytest.raises(InvalidArgument, match=r"Matcher\.begin: constraint must be a Constraint, not str"):
            await Matcher.begin("a+")  # type: ignore[arg-type]
        matcher = await Matcher.begin(Constraint.regex("a+"))
        with pytest.raises(InvalidArgument, match=r"Matcher\.advance: tokens must be token ids"):
            await matcher.advance("a")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match=r"Matcher\.rollback: count must be from 0"):
            await matcher.rollback(-1)

    run_async(main())


@pytest.mark.runner
def test_in_the_sandbox(sandbox: Any) -> None:
    """Moves wait for the host; errors name the SDK's own call."""
    place, error = sandbox.run("""
@inferlet
async def main():
    model = Model.default()
    matcher = await Matcher.begin(Constraint.regex("a+") | Constraint.choices("b"), model)
    await matcher.advance(model.tokenize("aa"))
    fork = await matcher.fork()
    await asyncio.gather(matcher.rollback(2), fork.advance(model.tokenize("a")))
    try:
        await matcher.rollback(1)
    except InvalidArgument as failure:
        error = str(failure)
    return [fork.may_end, fork.is_complete, fork.forced, len(fork.mask) > 256], error
""")

    assert place == [True, False, [], True]
    assert "Matcher.rollback" in error
    assert "0" in error
