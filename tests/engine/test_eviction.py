"""Evicting: later tokens are as if the range were masked for them, whatever else is done to the context."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tartlet_engine.api import ErrorCode
from tartlet_engine.tiny import make_tiny_model

PROMPT = list(range(10, 40))
RUNNERS = ["fused", "transformers"]


class Masked:
    """transformers' own model over all tokens that there ever were, with a mask for each row's view of them."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.tokens: list[int] = []
        self.is_gone: list[bool] = []
        self.views: list[list[bool]] = []  # by row: what is hidden from it

    def append(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self.tokens.append(token)
            self.is_gone.append(False)
            self.views.append(list(self.is_gone))

    def evict(self, start: int, end: int) -> None:
        there = [index for index, is_gone in enumerate(self.is_gone) if not is_gone]
        for index in there[start:end]:
            self.is_gone[index] = True

    def kept(self) -> list[int]:
        return [token for token, is_gone in zip(self.tokens, self.is_gone, strict=True) if not is_gone]

    @torch.inference_mode()
    def logprobs(self) -> torch.Tensor:
        """After the last token."""
        size = len(self.tokens)
        mask = torch.full((size, size), float("-inf")).triu(1)
        for row, hidden in enumerate(self.views):
            mask[row, : len(hidden)][torch.tensor(hidden)] = float("-inf")
        output = self._model(
            torch.tensor([self.tokens]), attention_mask=mask[None, None], position_ids=torch.arange(size)[None]
        )
        return output.logits[0, -1].float().log_softmax(-1)

    def generate(self, count: int) -> list[tuple[int, float]]:
        """Greedy tokens with their log-probabilities; they are appended."""
        found = []
        for _ in range(count):
            logprobs = self.logprobs()
            token = int(logprobs.argmax())
            found.append((token, float(logprobs[token])))
            self.append([token])
        return found


@pytest.fixture(scope="module")
def masked(tiny_folder: Path) -> Callable[[], Masked]:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_folder, dtype=torch.float32, attn_implementation="eager")
    return lambda: Masked(model)


def generate(driver: Any, context: int, count: int) -> list[tuple[int, float]]:
    generation = driver.generate(context, num_logprobs=0, max_tokens=count)
    driver.settle()
    chunks = [event for event in driver.events if getattr(event, "generation_id", None) == generation]
    return [(p.chosen.token_id, p.chosen.logprob) for chunk in chunks for p in getattr(chunk, "logprobs", ())]


def assert_same(found: list[tuple[int, float]], expected: list[tuple[int, float]]) -> None:
    assert [token for token, _ in found] == [token for token, _ in expected]
    assert [value for _, value in found] == pytest.approx([value for _, value in expected], abs=1e-4)


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize(
    ("start", "end"), [(4, 20), (0, 16), (16, 48), (0, 1), (3, 19), (17, 50), (5, 5), (31, 33), (0, 59), (15, 17)]
)
def test_later_tokens_do_not_see_what_was_evicted(
    tiny_engine: Any, masked: Callable[[], Masked], runner: str, start: int, end: int
) -> None:
    """Greedy tokens are those of transformers with that range masked, logits within 1e-4."""
    driver, reference = tiny_engine(runner=runner), masked()
    tokens = [3 + (7 * i) % 500 for i in range(60)]
    context = driver.create(driver.open_run(), tokens)
    reference.append(tokens)
    evicting = driver.evict(context, start, end)
    driver.settle()
    reference.evict(start, end)

    assert driver.is_done(evicting)
    assert_same(generate(driver, context, 12), reference.generate(12))
    driver.append(context, [100, 101, 102])
    reference.append([100, 101, 102])
    assert_same(generate(driver, context, 12), reference.generate(12))


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_window_that_slides(tiny_engine: Any, masked: Callable[[], Masked], runner: str) -> None:
    """The first tokens and the last ones are kept, again and again; pages are given back."""
    driver, reference = tiny_engine(runner=runner), masked()
    context = driver.create(driver.open_run(), PROMPT)
    reference.append(PROMPT)
    for _ in range(8):
        assert_same(generate(driver, context, 10), reference.generate(10))
        length = len(reference.kept())
        driver.evict(context, 4, length - 20)
        driver.settle()
        reference.evict(4, length - 20)
        assert driver.num_held == 2

    assert driver.failures == []


@pytest.mark.parametrize("runner", RUNNERS)
def test_any_history(tiny_engine: Any, masked: Callable[[], Masked], runner: str) -> None:
    """Evicted, appended, generated, saved and opened in any order: always as transformers with masks."""
    driver = tiny_engine(runner=runner)

    @settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        reference = masked()
        run = driver.open_run()
        tokens = data.draw(st.lists(st.integers(3, 500), min_size=1, max_size=50))
        context = driver.create(run, tokens)
        reference.append(tokens)
        for _ in range(data.draw(st.integers(1, 6))):
            action = data.draw(st.sampled_from(("evict", "evict", "append", "generate", "fork", "save")))
            length = len(reference.kept())
            if action == "evict":
                start = data.draw(st.integers(0, length - 1))
                end = data.draw(st.integers(start, length - 1))
                driver.evict(context, start, end)
                driver.settle()
                reference.evict(start, end)
            elif action == "append":
                more = data.draw(st.lists(st.integers(3, 500), min_size=1, max_size=20))
                driver.append(context, more)
                reference.append(more)
            elif action == "generate":
                assert_same(generate(driver, context, 3), reference.generate(3))
            elif action == "fork":
                context = driver.fork(context, length)
            else:
                driver.save(context, overwrite=True)
                driver.settle()
                _, context = driver.open_saved(run)
                driver.settle()
        assert_same(generate(driver, context, 5), reference.generate(5))
        driver.core.check_integrity()
        driver.close_run(run)

    check()
    assert driver.failures == []


def test_forks_keep_what_they_have(hash_engine: Any, hash_text: Callable[..., list[int]]) -> None:
    """A fork from before or during an eviction sees all tokens, one from afterwards those that are left."""
    driver = hash_engine(num_pages=100)
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    before = driver.fork(context, 25)
    driver.evict(context, 3, 14)
    during = driver.fork(context, 30)
    driver.settle()
    after = driver.fork(context, 10)
    kept = PROMPT[:3] + PROMPT[14:]
    for each, tokens in ((before, PROMPT[:25]), (during, PROMPT), (after, kept[:10])):
        generation = driver.generate(each, max_tokens=6)
        driver.settle()
        assert driver.tokens(generation) == hash_text(tokens, 6)
    generation = driver.generate(context, max_tokens=6)
    driver.settle()

    (first,) = hash_text(PROMPT, 1)  # of the logits after a token that saw everything
    assert driver.tokens(generation) == [first, *hash_text([*kept, first], 5)]
    assert driver.failures == []
    driver.close_run(run)
    assert driver.num_held == 0


def test_whole_pages_are_dropped_without_a_copy(hash_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the range begins and ends with pages nothing moves, and its pages are free at once."""
    driver = hash_engine(prefix_cache=False)
    context = driver.create(driver.open_run(), PROMPT)
    driver.flush(context)
    driver.settle()
    monkeypatch.setattr(driver.runner, "move_slots", None)
    held = driver.num_held
    evicting = driver.evict(context, 4, 24)

    assert driver.is_done(evicting)
    assert driver.num_held == held - 5


def test_kept_logits_stay(hash_engine: Any) -> None:
    """After an eviction the next token comes from the logits that are there, without a forward pass."""
    driver = hash_engine()
    context = driver.create(driver.open_run(), PROMPT)
    driver.flush(context)
    driver.settle()
    before, computed = driver.logits(context), driver.runner.num_computed_tokens
    driver.evict(context, 5, 11)
    driver.settle()
    generation = driver.generate(context, max_tokens=1)
    driver.settle()

    assert before is not None
    assert driver.tokens(generation) == [int(before.argmax())]
    assert driver.runner.num_computed_tokens == computed


@pytest.mark.parametrize("length", [2, 5, 6, 20])
def test_truncating(hash_engine: Any, hash_text: Callable[..., list[int]], length: int) -> None:
    """A cut behind the gap keeps it, a cut at or before it forgets it: positions go on after the last token."""
    driver = hash_engine(context_len=32)
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.evict(context, 5, 9)
    driver.settle()
    driver.truncate(context, length)
    kept = (PROMPT[:5] + PROMPT[9:])[:length]
    generation = driver.generate(context)
    driver.settle()
    num_positions = length if length <= 5 else length + 4

    assert driver.tokens(generation) == hash_text(kept, 32 - num_positions)


def test_positions_count_for_the_context_length(hash_engine: Any) -> None:
    """What was evicted still counts: positions are not given back."""
    driver = hash_engine(context_len=32)
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.evict(context, 0, 20)
    driver.settle()
    driver.append(context, [50, 51])
    driver.append(context, [52])

    assert driver.failure(context).code is ErrorCode.CONTEXT_OVERFLOW
    assert "20 evicted ones included" in driver.failure(context).message


@pytest.mark.parametrize(("start", "end"), [(0, 30), (0, 31), (5, 4), (-1, 3), (29, 30)])
def test_bad_ranges_are_refused(hash_engine: Any, start: int, end: int) -> None:
    """The last token stays, and a range has an order."""
    driver = hash_engine()
    evicting = driver.evict(driver.create(driver.open_run(), PROMPT), start, end)

    assert driver.failure(evicting).code is ErrorCode.INVALID_ARGUMENT


def test_an_empty_context_has_nothing_to_evict(hash_engine: Any) -> None:
    """Nothing of nothing is done at once."""
    driver = hash_engine()
    evicting = driver.evict(driver.create(driver.open_run()), 0, 0)

    assert driver.is_done(evicting)


def test_busy_until_it_is_done(hash_engine: Any) -> None:
    """While the context is computed for it, nothing else can be asked of it; afterwards everything."""
    driver = hash_engine()
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    evicting = driver.evict(context, 2, 5)
    refused = [driver.flush(context), driver.generate(context), driver.save(context), driver.evict(context, 0, 1)]
    assert {driver.failure(each).code for each in refused} == {ErrorCode.UNAVAILABLE}
    driver.settle()

    assert driver.is_done(evicting)
    again = driver.evict(context, 0, 1)
    driver.settle()
    assert driver.is_done(again)


def test_a_failed_step_leaves_the_context_usable(hash_engine: Any) -> None:
    """If the tokens before cannot be computed, nothing is evicted, and the context is not busy for ever."""
    driver = hash_engine()
    context = driver.create(driver.open_run(), PROMPT)
    evicting = driver.evict(context, 2, 5)
    driver.runner.failures = 1
    driver.settle()
    again = driver.evict(context, 2, 5)
    driver.settle()

    assert driver.failure(evicting).code is ErrorCode.INTERNAL
    assert driver.is_done(again)


def test_no_room_to_move(hash_engine: Any, hash_text: Callable[..., list[int]]) -> None:
    """Where a fork keeps the old pages and none are left for what moves, it stands back: it is computed again."""
    driver = hash_engine(num_pages=8, prefix_cache=False)
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.flush(context)
    driver.settle()
    fork = driver.fork(context, 30)
    evicting = driver.evict(context, 2, 5)
    driver.settle()

    assert driver.is_done(evicting)
    driver.free(context)
    generation = driver.generate(fork, max_tokens=2)
    driver.settle()
    assert driver.tokens(generation) == hash_text(PROMPT[:30], 2)


def test_never_room_to_move(hash_engine: Any) -> None:
    """A fork that can be neither swapped nor computed again keeps the old pages: nothing is evicted."""
    driver = hash_engine(num_pages=9, prefix_cache=False)
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    first = driver.evict(context, 0, 1)
    driver.settle()
    fork = driver.fork(context, len(PROMPT) - 1)
    evicting = driver.evict(context, 2, 5)
    driver.settle()

    assert driver.is_done(first)
    error = driver.failure(evicting)
    assert error.code is ErrorCode.KV_EXHAUSTED
    assert re.search(r"needs \d+ pages; \d+ of 9 can be had", error.message)
    driver.free(fork)
    again = driver.evict(context, 2, 5)
    driver.settle()
    assert driver.is_done(again)


def test_a_limit_of_pages(hash_engine: Any) -> None:
    """A fork and what moves count for the run's pages: too many end the run."""
    driver = hash_engine()
    run = driver.open_run(max_pages=9)
    context = driver.create(run, PROMPT)
    driver.flush(context)
    driver.settle()
    driver.fork(context, 30)
    driver.evict(context, 2, 5)
    driver.settle()

    assert [event.limit for event in driver.limits_reached] == ["kv_pages"]
    driver.close_run(run)


def test_evicted_contexts_stay_out_of_the_prefix_cache(hash_engine: Any, hash_text: Callable[..., list[int]]) -> None:
    """Nobody who has the same tokens without a gap is given its pages; those before the gap are shared as ever."""
    driver = hash_engine(num_pages=100)
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.evict(context, 4, 12)
    driver.settle()
    generated = driver.generate(context, max_tokens=10)
    driver.settle()
    kept = PROMPT[:4] + PROMPT[12:] + driver.tokens(generated)
    computed = driver.runner.num_computed_tokens
    other = driver.generate(driver.create(run, kept), max_tokens=1)
    driver.settle()

    assert driver.tokens(other) == hash_text(kept, 1)
    assert driver.runner.num_computed_tokens == computed + len(kept) - 4


def test_a_sliding_window_model_refuses(tiny_engine: Any, tmp_path: Path) -> None:
    """Where a layer attends within a window of positions, evicting is `unsupported`, and the model's facts say so."""
    import json

    make_tiny_model(tmp_path / "tiny")
    path = tmp_path / "tiny" / "config.json"
    config = json.loads(path.read_text())
    config |= {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": 8}
    path.write_text(json.dumps(config))
    for runner in RUNNERS:
        driver = tiny_engine(tmp_path / "tiny", runner=runner)
        evicting = driver.evict(driver.create(driver.open_run(), PROMPT), 2, 5)

        assert "evict" not in driver.info.features
        assert driver.failure(evicting).code is ErrorCode.UNSUPPORTED
