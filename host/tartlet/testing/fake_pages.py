"""The page accounts of the fake engine: counts and sharing are real, the pages hold nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


class PagesExhaustedError(Exception):
    """No page is free."""


@dataclass(eq=False, slots=True)
class FakeContext:
    """A sequence of tokens, of which the first `num_computed` have their keys and values in `pages`."""

    context_id: int
    run_id: int
    token_ids: list[int] = field(default_factory=list)
    num_computed: int = 0
    pages: list[int] = field(default_factory=list)
    adapter: str | None = None


class FakePages:
    """Give out pages and counts how many contexts hold each."""

    def __init__(self, num_pages: int, page_size: int) -> None:
        self.page_size = page_size
        self.num_pages = num_pages
        self._free = list(range(num_pages))
        self._references: Counter[int] = Counter()

    @property
    def num_free(self) -> int:
        """Pages that nobody holds."""
        return len(self._free)

    def compute(self, context: FakeContext) -> None:
        """Give the context pages for all of its tokens. Raises PagesExhaustedError, with nothing changed."""
        size = self.page_size
        copies_last = context.num_computed % size != 0 and self._references[context.pages[-1]] > 1
        num_new = -(-len(context.token_ids) // size) - len(context.pages)
        is_behind = len(context.token_ids) > context.num_computed
        if num_new + (copies_last and is_behind) > len(self._free):
            raise PagesExhaustedError
        if copies_last and is_behind:
            self._release([context.pages.pop()])
            context.pages.append(self._take())
        context.pages.extend(self._take() for _ in range(num_new))
        context.num_computed = len(context.token_ids)

    def fork(self, parent: FakeContext, child: FakeContext, length: int) -> None:
        """Make the child hold the parent's first tokens, and share the pages of those that are computed."""
        child.token_ids = parent.token_ids[:length]
        child.num_computed = min(length, parent.num_computed)
        child.pages = parent.pages[: -(-child.num_computed // self.page_size)]
        self._references.update(child.pages)

    def truncate(self, context: FakeContext, length: int) -> None:
        """Drop the tokens after the first `length`, and the pages that hold no other."""
        del context.token_ids[length:]
        context.num_computed = min(length, context.num_computed)
        num_kept = -(-context.num_computed // self.page_size)
        self._release(context.pages[num_kept:])
        del context.pages[num_kept:]

    def evict(self, context: FakeContext, start: int, end: int) -> None:
        """Drop tokens out of the middle of a computed context, and the pages that are too many then."""
        del context.token_ids[start:end]
        self.truncate(context, len(context.token_ids))

    def num_shared(self, context: FakeContext) -> int:
        """Pages of the context that others hold too."""
        return sum(self._references[page] > 1 for page in context.pages)

    def check(self, contexts: Iterable[FakeContext]) -> None:
        """Raise AssertionError unless every page is held exactly as often as the contexts say."""
        held = Counter(page for context in contexts for page in context.pages)
        assert held == self._references, f"held {held}, counted {self._references}"
        assert len(self._free) + len(held) == self.num_pages
        assert not held.keys() & set(self._free)

    def _take(self) -> int:
        page = self._free.pop()
        self._references[page] = 1
        return page

    def _release(self, pages: Iterable[int]) -> None:
        for page in pages:
            self._references[page] -= 1
            if not self._references[page]:
                del self._references[page]
                self._free.append(page)
