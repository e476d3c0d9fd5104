"""Lookaheads: provisional tokens are computed as if they were the sequence's own, and nobody else ever sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from tartlet_engine.costs import Costs
from tartlet_engine.lookahead import LAST_TOKEN, Lookahead, simplified, tree_positions
from tests.engine.conftest import Driver, next_token

PROMPT = list(range(10, 40))
TREE_PARENTS = [-1, 0, 0, -1, 1, 3, 3, 4, 2]
TREE_TOKENS = [100 + row for row in range(len(TREE_PARENTS))]


class Taken(dict[int, torch.Tensor]):
    """Logits by row, as they were handed over, and whether all were."""

    is_over = False

    def take(self, rows: list[int], logits: torch.Tensor) -> None:
        assert rows == sorted(rows)
        assert not set(rows) & self.keys(), "a row is handed over twice"
        self.update(zip(rows, logits.clone(), strict=True))

    def end(self) -> None:
        assert not self.is_over
        self.is_over = True

    @property
    def tokens(self) -> dict[int, int]:
        """What the hash model says comes next, by row."""
        return {row: int(logits.argmax()) for row, logits in self.items()}


def look_ahead(
    driver: Driver,
    context: int,
    token_ids: Sequence[int],
    parents: Sequence[int] | None = None,
    rows: Sequence[int] | None = None,
) -> tuple[Lookahead, Taken]:
    """Let a context's tokens to come be computed; logits of all rows are wanted, unless told otherwise."""
    sequence = driver.core._contexts.get(context)
    taken = Taken()
    wanted = frozenset(range(-1, len(token_ids)) if rows is None else rows)
    parents = simplified(parents)
    positions = tree_positions(sequence.next_position, parents, len(token_ids))
    lookahead = Lookahead(list(token_ids), parents, positions, wanted, taken.take, taken.end)
    driver.core._demands.look_ahead(sequence, lookahead)
    return lookahead, taken


def keep(driver: Driver, context: int, path: Sequence[int]) -> None:
    driver.core._contexts.get(context).keep(path)


def discard(driver: Driver, context: int) -> None:
    driver.core._contexts.get(context).discard()


def path_to(parents: Sequence[int], row: int) -> list[int]:
    path = []
    while row != LAST_TOKEN:
        path.insert(0, row)
        row = parents[row]
    return path


def generated(driver: Driver, context: int, count: int = 6) -> list[int]:
    generation = driver.generate(context, max_tokens=count)
    driver.settle()
    tokens: list[int] = driver.tokens(generation)
    return tokens


def test_positions_of_a_tree_are_depths() -> None:
    """Each token comes right after what it follows; a tree that is a line counts as one."""
    assert tree_positions(7, None, 3) == [7, 8, 9]
    assert tree_positions(7, [-1, 0, 0, -1, 2], 5) == [7, 8, 8, 7, 9]
    assert simplified([-1, 0, 1]) is None
    assert simplified([-1, 0, 0]) == [-1, 0, 0]


def test_what_the_rows_of_a_tree_see() -> None:
    """Own rows see own rows up to themselves; a row of the tree sees all of those, its ancestors and itself."""
    lookahead = Lookahead([1, 2, 3, 4], [-1, 0, 0, -1], [5, 6, 6, 5], frozenset(), Taken().take)

    assert lookahead.visible(2).astype(int).tolist() == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [1, 1, 1, 1, 0, 0],
        [1, 1, 1, 0, 1, 0],
        [1, 1, 0, 0, 0, 1],
    ]


@pytest.mark.parametrize("is_flushed", [True, False])
@pytest.mark.parametrize("max_batch_tokens", [1, 7, 64])
def test_a_line(hash_engine: Any, is_flushed: bool, max_batch_tokens: int) -> None:
    """Each row gives what a sequence with the tokens up to it would, in however many steps; then it is kept in part."""
    driver = hash_engine(max_batch_tokens=max_batch_tokens)
    context = driver.create(driver.open_run(), PROMPT)
    if is_flushed:
        driver.flush(context)
        driver.settle()
    line = [100 + i for i in range(20)]
    lookahead, taken = look_ahead(driver, context, line)
    driver.settle()

    assert taken.is_over
    assert lookahead.is_done
    assert taken.tokens == {row: next_token([*PROMPT, *line[: row + 1]]) for row in range(-1, 20)}
    num_computed = driver.runner.num_computed_tokens
    keep(driver, context, range(11))
    assert generated(driver, context) == expected([*PROMPT, *line[:11]], 6)
    # The last kept token is computed again, for its logits, and five of the generated ones are.
    assert driver.runner.num_computed_tokens == num_computed + 6
    assert driver.failures == []


def expected(token_ids: Sequence[int], count: int) -> list[int]:
    """What the hash model generates."""
    tokens = list(token_ids)
    for _ in range(count):
        tokens.append(next_token(tokens))
    return tokens[len(token_ids) :]


@pytest.mark.parametrize("is_flushed", [True, False])
@pytest.mark.parametrize("max_batch_tokens", [9, 10, 15, 64])
@pytest.mark.parametrize("kept_row", range(-1, len(TREE_PARENTS)))
def test_a_tree(hash_engine: Any, is_flushed: bool, max_batch_tokens: int, kept_row: int) -> None:
    """Each row gives what a sequence with the tokens of its path would; any path can be kept."""
    driver = hash_engine(max_batch_tokens=max_batch_tokens)
    context = driver.create(driver.open_run(), PROMPT)
    if is_flushed:
        driver.flush(context)
        driver.settle()
    lookahead, taken = look_ahead(driver, context, TREE_TOKENS, TREE_PARENTS)
    driver.settle()

    assert lookahead.is_done
    paths = {row: path_to(TREE_PARENTS, row) for row in range(-1, len(TREE_PARENTS))}
    lines = {row: [*PROMPT, *(TREE_TOKENS[each] for each in path)] for row, path in paths.items()}
    assert taken.tokens == {row: next_token(lines[row]) for row in paths}
    keep(driver, context, paths[kept_row])
    assert generated(driver, context) == expected(lines[kept_row], 6)
    assert driver.failures == []


@pytest.mark.parametrize("tenant", ["local", "another"])
def test_a_tree_is_never_split(hash_engine: Any, tenant: str) -> None:
    """It waits for a step that has room for all of it, in its turn, while prompts of others take what there is."""
    driver = hash_engine(max_batch_tokens=12, num_pages=200)
    run = driver.open_run(tenant=tenant)
    context, other = driver.create(driver.open_run(), PROMPT), driver.create(run, range(40, 440))
    driver.flush(context)
    driver.settle()
    driver.flush(other)
    driver.step()
    lookahead, taken = look_ahead(driver, context, TREE_TOKENS, TREE_PARENTS)
    num_steps = 0
    while not lookahead.is_done:
        assert lookahead.num_computed == 0
        driver.step()
        num_steps += 1

    assert num_steps < 8, "it waits until the prompt is computed"
    assert len(taken) == 10
    driver.settle()


def test_discarding_leaves_all_as_it_was(hash_engine: Any) -> None:
    """Tokens, logits and pages are those of before, and nothing of it is found by anybody else."""
    driver = hash_engine()
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.flush(context)
    driver.settle()
    num_held, logits = driver.num_held, driver.logits(context)
    look_ahead(driver, context, range(100, 130))
    driver.settle()
    assert driver.num_held > num_held
    discard(driver, context)

    assert driver.num_held == num_held
    assert driver.logits(context) is logits
    num_computed = driver.runner.num_computed_tokens
    same = driver.create(run, [*PROMPT, *range(100, 130)])
    driver.flush(same)
    driver.settle()
    assert driver.runner.num_computed_tokens == num_computed + 32, "provisional tokens are in the prefix cache"
    assert generated(driver, context) == expected(PROMPT, 6)


def test_what_is_kept_of_a_line_is_found_by_others(hash_engine: Any) -> None:
    """Its full pages are in the prefix cache as soon as something else is computed in the context."""
    driver = hash_engine()
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    line = list(range(100, 130))
    look_ahead(driver, context, line)
    driver.settle()
    keep(driver, context, range(30))
    generated(driver, context, 1)
    num_computed = driver.runner.num_computed_tokens
    assert generated(driver, driver.create(run, [*PROMPT, *line]), 1) == expected([*PROMPT, *line], 1)
    assert driver.runner.num_computed_tokens == num_computed + 1


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_forks_have_own_tokens_only(hash_engine: Any, when: str) -> None:
    """A fork of a context with a lookahead is one of its own tokens, whether they are computed yet or not."""
    driver = hash_engine(max_batch_tokens=8)
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    lookahead, taken = look_ahead(driver, context, range(100, 120))
    if when == "during":
        while not lookahead.num_computed:
            driver.step()
    elif when == "after":
        driver.settle()
    fork = driver.fork(context, len(PROMPT))
    generation = driver.generate(fork, max_tokens=9)
    driver.settle()

    assert driver.tokens(generation) == expected(PROMPT, 9)
    assert taken.tokens == {row: next_token([*PROMPT, *range(100, 101 + row)]) for row in range(-1, 20)}
    keep(driver, context, range(5))
    assert generated(driver, context) == expected([*PROMPT, *range(100, 105)], 6)
    assert generated(driver, fork, 2) == expected([*PROMPT, *expected(PROMPT, 9)], 2)


@pytest.mark.parametrize("swap_pages", [0, 100])
@pytest.mark.parametrize("parents", [None, TREE_PARENTS])
def test_others_may_have_its_pages(hash_engine: Any, swap_pages: int, parents: list[int] | None) -> None:
    """A lookahead that nobody waits for any more gives way; what is kept of it is computed again."""
    driver = hash_engine(num_pages=16, page_size=4, swap_pages=swap_pages, costs=Costs())
    run = driver.open_run()
    context = driver.create(run, PROMPT[:20])
    lookahead, _ = look_ahead(driver, context, TREE_TOKENS, parents)
    driver.settle()
    assert driver.num_held == 8
    assert generated(driver, driver.create(run, range(200, 250)), 2) == expected(range(200, 250), 2)

    assert lookahead.num_computed == 0
    path = [0, 1] if parents is None else [3, 6]
    keep(driver, context, path)
    assert generated(driver, context, 3) == expected([*PROMPT[:20], *(TREE_TOKENS[row] for row in path)], 3)
    assert driver.failures == []


@pytest.mark.parametrize("parents", [None, TREE_PARENTS])
def test_one_that_is_under_way_is_preempted(hash_engine: Any, parents: list[int] | None) -> None:
    """An older demand takes its pages; it begins again, and hands each row over once."""
    driver = hash_engine(num_pages=16, page_size=4, max_batch_tokens=10)
    run = driver.open_run()
    older = driver.create(run, range(200, 220))
    generation = driver.generate(older, max_tokens=30)
    driver.step(3)
    context = driver.create(run, PROMPT[:20])
    tokens, parents = (list(range(100, 112)), None) if parents is None else (TREE_TOKENS, parents)
    _, taken = look_ahead(driver, context, tokens, parents)
    driver.settle()

    assert driver.tokens(generation) == expected(range(200, 220), 30)
    lines = [path_to(parents or range(-1, 11), row) for row in range(-1, len(tokens))]
    assert taken.tokens == {
        row: next_token([*PROMPT[:20], *(tokens[each] for each in line)]) for row, line in enumerate(lines, -1)
    }
    assert taken.is_over
    assert driver.failures == []


def test_only_the_rows_that_are_wanted(hash_engine: Any) -> None:
    """Logits of the others are not computed; without the last own token's, it is not computed again either."""
    driver = hash_engine()
    context = driver.create(driver.open_run(), PROMPT)
    _, first = look_ahead(driver, context, range(100, 110), rows=[2, 9])
    driver.settle()
    assert first.keys() == {2, 9}
    keep(driver, context, range(10))
    num_computed = driver.runner.num_computed_tokens
    look_ahead(driver, context, [5], rows=[0])
    driver.settle()

    assert driver.runner.num_computed_tokens == num_computed + 1


def test_no_tokens_and_the_last_row(hash_engine: Any) -> None:
    """The logits after a context's last token alone: at once where they are kept, else computed."""
    driver = hash_engine()
    context = driver.create(driver.open_run(), PROMPT)
    _, taken = look_ahead(driver, context, ())
    assert not taken
    driver.settle()
    assert taken.tokens == {-1: next_token(PROMPT)}
    discard(driver, context)
    _, again = look_ahead(driver, context, ())

    assert again.is_over
    assert again.tokens == taken.tokens


def test_a_taker_that_fails_concerns_nobody_else(hash_engine: Any) -> None:
    """Whoever cannot take logits ends its own lookahead; the context and all others go on."""
    driver = hash_engine()
    run = driver.open_run()
    context, other = driver.create(run, PROMPT), driver.create(run, PROMPT[:9])
    generation = driver.generate(other, max_tokens=5)
    lookahead, _ = look_ahead(driver, context, [1, 2, 3])

    def fail(rows: list[int], logits: torch.Tensor) -> None:
        raise ZeroDivisionError("taken wrongly")

    lookahead.take_logits, lookahead.operation_id = fail, 77
    driver.settle()

    assert "taken wrongly" in driver.failure(77).message
    assert driver.tokens(generation) == expected(PROMPT[:9], 5)
    assert generated(driver, context) == expected(PROMPT, 6)


def test_a_failed_step_and_an_end_leave_nothing(hash_engine: Any) -> None:
    """After a model's failure, or freed in the midst of it, all pages are free."""
    driver = hash_engine(max_batch_tokens=8, prefix_cache=False)
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    lookahead, _ = look_ahead(driver, context, range(100, 120))
    lookahead.operation_id = 77
    driver.step(5)
    driver.runner.failures = 1
    driver.settle()
    assert "out of order" in driver.failure(77).message
    assert driver.num_held == 0
    look_ahead(driver, context, range(100, 120))
    driver.step(5)
    driver.free(context)
    driver.settle()

    assert driver.num_held == 0
