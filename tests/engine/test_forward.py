"""Forward passes: what they answer, what is kept of them, and that nothing is left when they end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tartlet_engine.api import ErrorCode, RowRequest, Sampling
from tartlet_engine.costs import FixedCosts
from tests.engine.conftest import Driver, next_token

PROMPT = [3 + (7 * i) % 500 for i in range(40)]
PARENTS = (-1, 0, 0, -1, 1, 3, 3, 4, 2)
TREE = [100 + row for row in range(len(PARENTS))]
RUNNERS = ["fused", "transformers"]


def path_to(row: int, parents: Sequence[int] | None = PARENTS) -> list[int]:
    path: list[int] = []
    while row >= 0:
        path.insert(0, row)
        row = row - 1 if parents is None else parents[row]
    return path


def raw(row_result: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.frombuffer(row_result.logits, dtype="<f4")


def forward(driver: Driver, context: int, tokens: Sequence[int], *requests: RowRequest, **options: Any) -> Any:
    operation = driver.forward(context, tokens, *requests, **options)
    driver.settle()
    return driver.forwarded(operation)


def generated(driver: Driver, context: int, count: int = 6, **options: Any) -> list[int]:
    generation = driver.generate(context, max_tokens=count, **options)
    driver.settle()
    tokens: list[int] = driver.tokens(generation)
    return tokens


def logits_after(driver: Driver, tokens: Sequence[int]) -> torch.Tensor:
    """What the engine computes for a context of these tokens, without any pass."""
    context = driver.create(driver.open_run(), tokens)
    driver.flush(context)
    driver.settle()
    logits = driver.logits(context)
    assert logits is not None
    return logits.clone()


@pytest.mark.parametrize("max_batch_tokens", [5, 64])
def test_a_line_has_the_bits_of_one_token_after_the_other(tiny_engine: Any, max_batch_tokens: int) -> None:
    """On the fused runner each row's logits equal, as bits, those of a fresh context of the tokens up to it."""
    driver = tiny_engine(runner="fused", prefix_cache=False, max_batch_tokens=max_batch_tokens)
    context = driver.create(driver.open_run(), PROMPT)
    line = [9, 8, 7, 6, 5, 4, 3]
    answer = forward(driver, context, line, *(RowRequest(row, logits=True) for row in range(-1, len(line))))

    for row, result in enumerate(answer.rows, -1):
        assert result.row == row
        expected = logits_after(driver, [*PROMPT, *line[: row + 1]])
        assert np.array_equal(raw(result), expected.numpy())


@pytest.mark.parametrize("runner", RUNNERS)
def test_rows_of_a_tree_equal_forks(tiny_engine: Any, runner: str) -> None:
    """Each row's logits are those of a context with the tokens of its path."""
    driver = tiny_engine(runner=runner, prefix_cache=False)
    context = driver.create(driver.open_run(), PROMPT)
    requests = [RowRequest(row, logits=True) for row in range(1, len(TREE))]
    answer = forward(driver, context, TREE, *requests, parents=PARENTS)

    for result in answer.rows:
        expected = logits_after(driver, [*PROMPT, *(TREE[each] for each in path_to(result.row))])
        torch.testing.assert_close(torch.from_numpy(raw(result).copy()), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("row", range(-1, len(TREE)))
@pytest.mark.parametrize("is_tree", [True, False])
def test_what_is_committed_is_as_if_filled(tiny_engine: Any, row: int, is_tree: bool) -> None:
    """On the fused runner, the logits after a path that is committed have the bits of a fresh context, and so on."""
    driver = tiny_engine(runner="fused", prefix_cache=False)
    context = driver.create(driver.open_run(), PROMPT)
    parents = PARENTS if is_tree else None
    forward(driver, context, TREE, parents=parents)
    path = path_to(row, parents)
    driver.commit(context, path)
    tokens = [*PROMPT, *(TREE[each] for each in path)]
    driver.flush(context)
    driver.settle()

    logits = driver.logits(context)
    assert logits is not None
    assert torch.equal(logits, logits_after(driver, tokens))
    fresh = driver.create(driver.open_run(), tokens)
    assert generated(driver, context, 12) == generated(driver, fresh, 12)
    assert driver.failures == []


def test_what_can_be_asked_of_a_row(tiny_engine: Any) -> None:
    """Most likely tokens, given ones, entropy and log-probabilities of the pass's tokens follow from the raw logits."""
    driver = tiny_engine()
    context = driver.create(driver.open_run(), PROMPT)
    answer = forward(
        driver,
        context,
        TREE,
        RowRequest(2, top=5, token_ids=(7, 300), entropy=True, logits=True),
        RowRequest(-1, logits=True),
        RowRequest(2),
        parents=PARENTS,
        logprobs=True,
    )
    result, last, nothing = answer.rows

    logprobs = torch.from_numpy(raw(result).astype(np.float64)).log_softmax(0)
    best = logprobs.topk(5)
    assert [each.token_id for each in result.top] == best.indices.tolist()
    assert [each.logprob for each in result.top] == pytest.approx(best.values.tolist(), abs=1e-5)
    assert result.logprobs == pytest.approx([float(logprobs[7]), float(logprobs[300])], abs=1e-5)
    assert result.entropy == pytest.approx(float(-(logprobs.exp() * logprobs).sum()), abs=1e-5)
    first = torch.from_numpy(raw(last).astype(np.float64)).log_softmax(0)
    assert answer.logprobs[0] == pytest.approx(float(first[TREE[0]]), abs=1e-5)
    assert answer.logprobs[8] == pytest.approx(float(logprobs[TREE[8]]), abs=1e-5)
    assert (nothing.row, nothing.top, nothing.logprobs, nothing.entropy, nothing.logits) == (2, (), (), None, b"")


@pytest.mark.parametrize("options", [{}, {"top_p": 0.9, "temperature": 1.5}, {"repetition_penalty": 1.8}])
def test_samples_are_those_of_a_generation(tiny_engine: Any, options: dict[str, Any]) -> None:
    """With the same seed and number in its stream, and the same penalties, a row gives what a generation would."""
    driver = tiny_engine()
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    fresh = driver.create(run, PROMPT)
    settings = {"temperature": 1.0} | options
    tokens = generated(driver, fresh, 8, seed=5, **settings)
    requests = [RowRequest(row, Sampling(seed=5, **settings), sample_index=row + 1) for row in range(-1, 7)]
    answer = forward(driver, context, tokens[:7], *requests)

    assert [result.sampled.token_id for result in answer.rows] == tokens


def test_a_pass_of_nothing_but_the_last_row(hash_engine: Any) -> None:
    """The distribution after the context; computed once, and kept."""
    driver = hash_engine()
    context = driver.create(driver.open_run(), PROMPT)
    answer = forward(driver, context, (), RowRequest(-1, top=1))
    assert answer.rows[0].top[0].token_id == next_token(PROMPT)
    num_computed = driver.runner.num_computed_tokens
    driver.discard(context)
    again = forward(driver, context, (), RowRequest(-1, Sampling(seed=1, temperature=0.0)))

    assert again.rows[0].sampled.token_id == next_token(PROMPT)
    assert driver.runner.num_computed_tokens == num_computed


def test_a_context_is_busy_until_the_pass_is_over(hash_engine: Any) -> None:
    """Everything but a fork is refused by name; afterwards all goes on."""
    driver = hash_engine()
    context = driver.create(driver.open_run(), PROMPT)
    first = driver.forward(context, [1, 2, 3])
    second = driver.forward(context, [4])
    driver.settle()
    third = driver.forward(context, [4])
    refused = driver.generate(context)
    for each in (second, third, refused):
        assert driver.failure(each).code is ErrorCode.UNAVAILABLE
    driver.append(context, [5])
    assert driver.failure(context).code is ErrorCode.UNAVAILABLE
    assert driver.forwarded(first)
    assert generated(driver, driver.fork(context, len(PROMPT)), 1) == [next_token(PROMPT)]
    driver.discard(context)

    assert generated(driver, context, 1) == [next_token(PROMPT)]


def test_committing_while_pages_are_swapped(hash_engine: Any, hash_text: Any) -> None:
    """What is in the swap space is not indexed: whoever begins with the same tokens later would fail."""
    driver = hash_engine(num_pages=10, swap_pages=100, costs=FixedCosts(seconds_per_byte=0.0, seconds_per_token=1.0))
    run = driver.open_run()
    context = driver.create(run, PROMPT[:16])
    forward(driver, context, [100, 101])
    big = driver.create(run, range(200, 240))
    driver.flush(big)
    driver.settle()
    assert driver.core._contexts.get(context).page_table.num_swapped > 0
    driver.commit(context, [])
    driver.core.check_integrity()
    driver.free(big)

    assert generated(driver, context, 2) == hash_text(PROMPT[:16], 2)
    driver.free(context)
    assert generated(driver, driver.create(run, PROMPT[:16]), 2) == hash_text(PROMPT[:16], 2)
    assert not driver.failures


def test_what_cannot_be_committed(hash_engine: Any) -> None:
    """No pass, one that is still computed, and a path that is none: the context stays as it is."""
    driver = hash_engine(max_batch_tokens=5)
    context = driver.create(driver.open_run(), PROMPT)
    driver.commit(context, ())
    driver.forward(context, TREE[:5], parents=PARENTS[:5])
    driver.step()
    driver.commit(context, (0,))
    driver.settle()
    for path in ((1,), (0, 3), (0, 0), (5,), (-1,)):
        driver.commit(context, path)
    assert len(driver.failures) == 7
    assert {failure.error.code for failure in driver.failures} == {ErrorCode.INVALID_ARGUMENT}
    driver.commit(context, (0, 1))

    assert generated(driver, context, 1) == [next_token([*PROMPT, 100, 101])]


def test_discarded_in_the_midst_of_it(hash_engine: Any) -> None:
    """A pass that nobody wants any more ends at once, without an answer, and its pages are free."""
    driver = hash_engine(max_batch_tokens=5, prefix_cache=False)
    context = driver.create(driver.open_run(), PROMPT)
    operation = driver.forward(context, TREE, logprobs=True)
    driver.step(9)
    driver.discard(context)
    driver.discard(context)

    assert driver.num_held == len(PROMPT) // 4
    assert driver.failures == []
    with pytest.raises(ValueError, match="not enough values"):
        driver.forwarded(operation)
    assert generated(driver, context, 1) == [next_token(PROMPT)]


def test_positions_that_leave_some_out(tiny_engine: Any) -> None:
    """Tokens after a left-out range are computed at their positions, and so is what is committed and what follows."""
    driver = tiny_engine(runner="transformers")
    model = driver.core._stepper._runner._model
    context = driver.create(driver.open_run(), PROMPT)
    line, positions = [5, 6, 7], [45, 46, 60]
    requests = [RowRequest(row, logits=True) for row in range(3)]
    answer = forward(driver, context, line, *requests, positions=tuple(positions))
    driver.commit(context, (0, 1, 2))
    tokens = generated(driver, context, 2)

    all_positions = [*range(40), *positions, 61]
    with torch.inference_mode():
        from tartlet_engine.attention import ATTENTION_NAME

        assert model.config._attn_implementation == ATTENTION_NAME
        model.set_attn_implementation("eager")
        expected = model(torch.tensor([[*PROMPT, *line, tokens[0]]]), position_ids=torch.tensor([all_positions]))
        model.set_attn_implementation(ATTENTION_NAME)
    for row in range(3):
        torch.testing.assert_close(
            torch.from_numpy(raw(answer.rows[row]).copy()), expected.logits[0, 40 + row].float(), atol=1e-4, rtol=1e-4
        )
    assert tokens == [int(expected.logits[0, 42].argmax()), int(expected.logits[0, 43].argmax())]


def test_sampled_tokens_count_for_the_run(hash_engine: Any) -> None:
    """A run that may generate no more is ended by a pass that samples, and not by one that does not."""
    driver = hash_engine()
    run = driver.open_run(max_generated_tokens=3)
    context, other = driver.create(run, PROMPT), driver.create(run, PROMPT[:9])
    sampling = Sampling(seed=1)
    forward(driver, context, [1, 2], RowRequest(0, sampling), RowRequest(0, sampling), RowRequest(1, top=3))
    driver.discard(context)
    driver.forward(other, [1, 2, 3])
    driver.forward(context, [1, 2], RowRequest(0, sampling), RowRequest(1, sampling))
    driver.settle()

    (reached,) = driver.limits_reached
    assert (reached.limit, reached.used, reached.allowed) == ("generated_tokens", 4, 3)
    driver.close_run(run)
    assert driver.num_held == 0


def test_pages_of_a_pass_count_for_the_run(hash_engine: Any) -> None:
    """What can never fit is refused; what the run may not hold besides its other contexts is its limit."""
    driver = hash_engine()
    run = driver.open_run(max_pages=12)
    context = driver.create(run, PROMPT)
    refused = driver.forward(context, range(100, 109))
    assert driver.failure(refused).code is ErrorCode.KV_EXHAUSTED
    other = driver.create(run, PROMPT[:5])
    driver.flush(other)
    driver.forward(context, range(100, 108))
    driver.settle()

    assert driver.limits_reached[0].limit == "kv_pages"


def test_a_pass_is_charged_as_a_prompt(hash_engine: Any) -> None:
    """Each provisional token costs what one of a prompt does, once."""
    driver = hash_engine()
    run = driver.open_run(tenant="payer")
    context = driver.create(run, PROMPT)
    driver.flush(context)
    driver.settle()
    share = driver.core._shares.tenants["payer"]
    before = share.counter
    forward(driver, context, TREE, parents=PARENTS)

    assert share.counter - before == pytest.approx(len(TREE), abs=0.1)


def test_what_is_asked_counts_for_the_budget_of_a_step(hash_engine: Any) -> None:
    """Passes that ask for much are computed in several steps, others in one."""
    driver = hash_engine(max_batch_tokens=32)
    run = driver.open_run()

    def num_steps(*requests: RowRequest) -> int:
        contexts = [driver.create(run, PROMPT[:5]) for _ in range(8)]
        for context in contexts:
            driver.flush(context)
        driver.settle()
        before = driver.core.stats().steps
        for context in contexts:
            driver.forward(context, [1, 2], *requests)
        driver.settle()
        steps: int = driver.core.stats().steps - before
        return steps

    assert num_steps(RowRequest(0, top=1)) == 1
    assert num_steps(*[RowRequest(0, Sampling(seed=1))] * 20) == 8


def test_a_row_without_numbers_fails_its_pass_alone(hash_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits that are not finite are an error of the pass that asked for them."""
    driver = hash_engine()
    run = driver.open_run()
    context, other = driver.create(run, PROMPT), driver.create(run, PROMPT[:9])
    compute = driver.runner.forward

    def forward_with_nan(batch: Any) -> torch.Tensor:
        logits: torch.Tensor = compute(batch)
        logits[batch.token_ids[batch.logit_rows] == 77] = math.nan
        return logits

    monkeypatch.setattr(driver.runner, "forward", forward_with_nan)
    generation = driver.generate(other, max_tokens=4)
    operation = driver.forward(context, [76, 77], logprobs=True)
    failing = driver.forward(driver.fork(context, 5), [76, 77, 78], logprobs=True)
    driver.settle()

    assert driver.forwarded(operation)
    assert driver.failure(failing).code is ErrorCode.INTERNAL
    assert len(driver.tokens(generation)) == 4


def test_forward_on_what_is_not_there(hash_engine: Any) -> None:
    """An unknown context and an empty one are refused."""
    driver = hash_engine()
    assert driver.failure(driver.forward(999, [1])).code is ErrorCode.NOT_FOUND
    empty = driver.create(driver.open_run())
    assert driver.failure(driver.forward(empty, [1])).code is ErrorCode.INVALID_ARGUMENT
    driver.discard(999)


@pytest.mark.parametrize("has_cache", [True, False])
def test_any_schedule(hash_engine: Any, has_cache: bool) -> None:
    """Passes, commits, discards, forks, generations and limits in any order: every context is what it should be."""

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        driver = hash_engine(
            num_pages=data.draw(st.sampled_from((24, 40, 200))),
            max_batch_tokens=data.draw(st.sampled_from((9, 16, 40))),
            prefix_cache=has_cache,
            swap_pages=data.draw(st.sampled_from((0, 6, 100))),
        )
        run = driver.open_run()
        contexts: dict[int, list[int]] = {}
        passes: dict[int, tuple[int, list[int], list[int]]] = {}
        for _ in range(data.draw(st.integers(3, 25))):
            action = data.draw(
                st.sampled_from(("create", "fork", "forward", "commit", "discard", "step", "free", "add"))
            )
            if action == "create" and len(contexts) < 4:
                tokens = data.draw(st.lists(st.integers(3, 9), min_size=1, max_size=12))
                contexts[driver.create(run, tokens)] = tokens
                continue
            if not contexts:
                continue
            context = data.draw(st.sampled_from(sorted(contexts)))
            tokens = contexts[context]
            if action == "step":
                driver.step(data.draw(st.integers(1, 3)))
            elif action == "fork" and len(contexts) < 4:
                length = data.draw(st.integers(1, len(tokens)))
                contexts[driver.fork(context, length)] = tokens[:length]
            elif action == "forward" and context not in passes:
                size = data.draw(st.integers(1, 9))
                is_tree = data.draw(st.booleans())
                parents = [data.draw(st.integers(-1, row - 1)) if is_tree else row - 1 for row in range(size)]
                line = data.draw(st.lists(st.integers(3, 9), min_size=size, max_size=size))
                requests = [RowRequest(row, top=1) for row in range(-1, size)]
                operation = driver.forward(context, line, *requests, parents=tuple(parents))
                passes[context] = operation, line, parents
            elif action in ("commit", "discard", "free") and context in passes:
                operation, line, parents = passes.pop(context)
                if action == "free":
                    driver.free(context)
                    del contexts[context]
                    continue
                if action == "discard":
                    driver.discard(context)
                    continue
                driver.settle()
                paths = {row: path_to(row, parents) for row in range(-1, len(line))}
                for result in driver.forwarded(operation).rows:
                    path = [line[each] for each in paths[result.row]]
                    assert result.top[0].token_id == next_token([*tokens, *path])
                path = paths[data.draw(st.integers(-1, len(line) - 1))]
                driver.commit(context, path)
                tokens.extend(line[row] for row in path)
            elif action == "add" and context not in passes:
                driver.append(context, [5])
                tokens.append(5)
            driver.core.check_integrity()
        for context in passes:
            driver.discard(context)
        for context, tokens in contexts.items():
            assert generated(driver, context, 3) == expected(tokens, 3)
        assert driver.failures == []
        driver.close_run(run)
        assert driver.num_held == 0

    check()


def expected(token_ids: Sequence[int], count: int) -> list[int]:
    tokens = list(token_ids)
    for _ in range(count):
        tokens.append(next_token(tokens))
    return tokens[len(token_ids) :]


def test_requests_are_answered_in_their_order(hash_engine: Any) -> None:
    """Several of one row, too."""
    driver = hash_engine(max_batch_tokens=3)
    context = driver.create(driver.open_run(), PROMPT)
    rows = (4, -1, 4, 0, 3)
    answer = forward(driver, context, range(100, 106), *(RowRequest(row, top=1) for row in rows))

    assert tuple(result.row for result in answer.rows) == rows
