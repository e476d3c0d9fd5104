import pytest

from tartlet.errors import LimitExceededError
from tartlet.runtime.counters import Counters
from tartlet_engine.api import PagesHeld, Usage

USAGE = Usage(
    prompt_tokens=10, cached_tokens=4, generated_tokens=5, pages=3, shared_pages=2, first_token_ns=1, total_ns=2
)


def test_sums_over_generations() -> None:
    """What generations used is summed; one that failed adds itself and its prompt."""
    counters = Counters(None)
    for usage in (USAGE, USAGE, None):
        counters.begin_generation(10)
        counters.end_generation(usage)

    assert (counters.generations, counters.prompt_tokens, counters.cached_tokens, counters.shared_pages) == (
        3,
        30,
        8,
        4,
    )


def test_pages_count_until_the_end() -> None:
    """What the engine has told, and since then as many pages as it told last."""
    counters = Counters(None)
    before = counters.page_ns
    counters.note_pages(PagesHeld(1, 3, page_ns=500, at_ns=counters.started_ns + 100))
    counters.ended_ns = counters.started_ns + 300

    assert (before, counters.page_ns) == (0, 500 + 3 * 200)


def test_the_first_token_counts_once() -> None:
    """The time to the first token is that of the first of all."""
    counters = Counters(None)
    counters.begin_generation(10)

    counters.add_tokens(1, counters.started_ns + 7)
    counters.add_tokens(2, counters.started_ns + 9)

    assert (counters.first_token_ns, counters.generated_tokens) == (7, 3)
    assert counters.tokens_per_second is not None


def test_output_beyond_the_limit_is_refused_with_its_numbers() -> None:
    """Up to the limit all is well; one byte more names the limit, the use and the allowance."""
    counters = Counters(10)
    counters.add_output(10)

    with pytest.raises(LimitExceededError) as caught:
        counters.add_output(1)
    assert (caught.value.code, caught.value.limit, caught.value.used, caught.value.allowed) == (
        "output_limit",
        "max_output_bytes",
        11,
        10,
    )
