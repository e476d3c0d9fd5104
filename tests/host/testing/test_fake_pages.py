import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from tartlet.testing.fake_pages import FakeContext, FakePages, PagesExhaustedError


class Pages(RuleBasedStateMachine):
    """Contexts that grow, fork, shrink and go, over a small pool."""

    contexts = Bundle("contexts")

    def __init__(self) -> None:
        super().__init__()
        self.pages = FakePages(12, page_size=4)
        self.live: list[FakeContext] = []

    @rule(target=contexts)
    def create(self) -> FakeContext:
        """An empty context."""
        context = FakeContext(len(self.live), 0)
        self.live.append(context)
        return context

    @rule(target=contexts, context=contexts, data=st.data())
    def fork(self, context: FakeContext, data: st.DataObject) -> FakeContext:
        """A fork takes no page."""
        held = 12 - self.pages.num_free
        child = FakeContext(len(self.live), 0)
        self.pages.fork(context, child, data.draw(st.integers(0, len(context.token_ids))))
        self.live.append(child)
        assert 12 - self.pages.num_free == held
        return child

    @rule(context=contexts, number=st.integers(1, 10))
    def grow(self, context: FakeContext, number: int) -> None:
        """Computing gives whole pages, a private last one, or changes nothing."""
        context.token_ids.extend(range(number))
        before = list(context.pages)
        try:
            self.pages.compute(context)
        except PagesExhaustedError:
            assert context.pages == before
        else:
            assert len(context.pages) * 4 >= len(context.token_ids) > (len(context.pages) - 1) * 4
            assert not context.num_computed % 4 or self.pages.num_shared(context) < len(context.pages)

    @rule(context=contexts, data=st.data())
    def shrink(self, context: FakeContext, data: st.DataObject) -> None:
        """Drops a tail."""
        self.pages.truncate(context, data.draw(st.integers(0, len(context.token_ids))))

    @rule(context=consumes(contexts))
    def free(self, context: FakeContext) -> None:
        """Drops everything."""
        self.pages.truncate(context, 0)
        self.live.remove(context)

    @invariant()
    def adds_up(self) -> None:
        """Every page is held as often as contexts say."""
        self.pages.check(self.live)


TestPages = Pages.TestCase


def test_a_wrong_account_is_noticed() -> None:
    """`check` fails if a context claims a page that the accounts do not know of."""
    pages = FakePages(4, page_size=4)
    context = FakeContext(0, 0, token_ids=[1])
    pages.compute(context)
    pages.check([context])

    with pytest.raises(AssertionError):
        pages.check([])


def test_evicting_gives_pages_back() -> None:
    """Pages that the remaining tokens do not need are free."""
    pages = FakePages(12, page_size=4)
    context = FakeContext(1, 0, list(range(10)))
    pages.compute(context)
    pages.evict(context, 1, 6)

    assert context.token_ids == [0, 6, 7, 8, 9]
    assert (context.num_computed, len(context.pages), pages.num_free) == (5, 2, 10)
    pages.check([context])
