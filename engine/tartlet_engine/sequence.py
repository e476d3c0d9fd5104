"""A sequence: the tokens of one context, the pages of those computed, and what is still to be computed, for whom.

Pure Python. The tokens of a sequence are known at once; computing them follows when something demands it. Tokens below
`num_computed` have their keys and values in the pages. The token that a generation sampled last is not yet computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tartlet_engine import gaps as gaps_of
from tartlet_engine.accounts import RunAccount
from tartlet_engine.gaps import Gaps
from tartlet_engine.page_table import PageTable, SlotMoves

if TYPE_CHECKING:
    from torch import Tensor

    from tartlet_engine.generation import Generation
    from tartlet_engine.lookahead import Lookahead


@dataclass(frozen=True, slots=True)
class Room:
    """What an eviction needs besides the context's own pages, all of them in the pool: others for those it replaces."""

    first: int  # page of the page table that is replaced
    last: int  # the one after the last that is
    num_new: int  # pages that take their place


@dataclass(slots=True)
class Flush:
    """A demand to compute the first `target_len` tokens; without an operation id, nobody asked but a fork waits."""

    operation_id: int | None
    target_len: int
    then: Callable[[], None] | None = None  # what follows, instead of the answer
    is_exclusive: bool = False  # nothing else can be done with the context meanwhile, but to fork it
    room: Room | None = None  # what there must be in the step that ends it, when all is computed


@dataclass(slots=True)
class Link:
    """A fork's wait: until `source` has computed the first `prefix_len` tokens, whose pages it then shares."""

    source: Sequence
    prefix_len: int


@dataclass(slots=True, eq=False)
class Sequence:
    """One context's tokens, pages and demands. Only the engine's thread touches it."""

    context_id: int
    account: RunAccount
    page_table: PageTable
    token_ids: list[int] = field(default_factory=list)
    num_computed: int = 0
    adapter: str | None = None  # LoRA weights that its tokens are computed with; the same for all forks
    # Keys of its first full pages, as far as they were needed: as its tenant's, and as the operator's.
    page_keys: list[bytes] = field(default_factory=list)
    published_keys: list[bytes] = field(default_factory=list)
    # What the prefix cache found last: from which page on, which pages, and its index's `num_removed` then.
    found_pages: tuple[int, list[int], int] = (0, [], 0)
    gaps: Gaps = ()  # in its positions, where tokens were evicted
    # float32[V] after the last token: set only while all tokens are computed. Forks share it, nobody writes to it.
    logits: Tensor | None = None
    has_lent_logits: bool = False  # they are a row of a step's logits, which must not be kept for long: `keep_logits`
    generation: Generation | None = None
    lookahead: Lookahead | None = None  # tokens after its own that are computed provisionally
    flushes: list[Flush] = field(default_factory=list)
    link: Link | None = None
    followers: list[Sequence] = field(default_factory=list)  # those whose link's source is this sequence
    operation: str | None = (
        None  # what is being done with it as a whole: it is "saved", "opened" or "evicted" from; busy until then
    )
    num_dropped: int = 0  # so many tokens were computed once, before what they needed was dropped
    is_waiting: bool = False  # it has something to compute, but there were too few pages, or it had to give up some
    is_fresh: bool = False  # it takes part in steps (again), but has not got any further: nothing can be taken from it
    last_served_step: int = -1
    demand_order: int = 0  # grows with each sequence that begins to demand something

    @property
    def is_indexable(self) -> bool:
        """Tell whether the slot of each token is its position, as in all pages of the prefix cache."""
        return not self.gaps

    @property
    def next_position(self) -> int:
        """The position of the token that is appended next."""
        return len(self.token_ids) + gaps_of.total(self.gaps)

    def positions(self, start: int, end: int) -> Iterable[int]:
        """Return the positions of the tokens `start <= i < end`."""
        return gaps_of.positions(self.gaps, start, end)

    @property
    def target_len(self) -> int:
        """Tokens of its own to be computed for whoever demands most."""
        if self.is_looking_ahead or (self.generation is not None and not self.generation.is_parked):
            return len(self.token_ids)
        return max((flush.target_len for flush in self.flushes), default=0)

    @property
    def is_looking_ahead(self) -> bool:
        """Tell whether it has a lookahead of which something is still wanted."""
        return self.lookahead is not None and not self.lookahead.is_done

    @property
    def target_slots(self) -> int:
        """Slots that are filled when the demands are met: those of its own tokens and of the lookahead's."""
        return self.target_len + (len(self.lookahead.token_ids) if self.lookahead and self.is_looking_ahead else 0)

    @property
    def num_missing_pages(self) -> int:
        """Pages that it takes to meet the demands, beyond those of the pool that it holds; without copies on write."""
        page_table = self.page_table
        num_needed = max(len(page_table.page_ids), -(-self.target_slots // page_table.page_size))
        return num_needed - len(page_table.page_ids) + page_table.num_swapped

    @property
    def num_filled(self) -> int:
        """Slots that hold keys and values: those of its own tokens, and of the lookahead's."""
        return self.num_computed + (0 if self.lookahead is None else self.lookahead.num_computed)

    @property
    def has_demand(self) -> bool:
        """Tell whether somebody waits for this sequence to be computed."""
        is_generating = self.generation is not None and not self.generation.is_parked
        return is_generating or bool(self.flushes) or self.is_looking_ahead

    @property
    def num_to_compute(self) -> int:
        """Tokens to compute before the demands are met; 0 while it waits for the source of its link."""
        if self.link is not None:
            return 0
        num_ahead = 0 if self.lookahead is None else self.lookahead.num_to_compute
        return max(0, self.target_len - self.num_computed) + num_ahead

    @property
    def room(self) -> Room | None:
        """What it waits for although all that is demanded of it is computed, if anything."""
        if not self.flushes or self.link is not None or self.num_to_compute > 0:
            return None
        return next((flush.room for flush in self.flushes if flush.room is not None), None)

    @property
    def num_extra_pages(self) -> int:
        """Available pages that it takes to replace its pages as `room` says: dropped ones that nobody shares serve."""
        if (room := self.room) is None:
            return 0
        return max(0, room.num_new - self.page_table.num_unshared(room.first, room.last))

    @property
    def is_decoding(self) -> bool:
        """Tell whether all that is left to compute is the token which its generation sampled last."""
        generation = self.generation
        return (
            generation is not None
            and generation.ends_with_sampled
            and self.lookahead is None
            and self.num_to_compute == 1
        )

    def note_computed(self, num_filled: int) -> int:
        """Take note that so many slots are filled. Returns how many tokens of a lookahead are so for the first time."""
        self.num_computed = min(num_filled, len(self.token_ids))
        return 0 if self.lookahead is None else self.lookahead.note_computed(num_filled - self.num_computed)

    def keep(self, path: Seq[int]) -> None:
        """Make the tokens of a path of the lookahead its own, and end the lookahead.

        What lies where it belongs stays computed, bit by bit as if it had never been provisional. The rest is computed
        again when somebody demands it.

        Args:
            path: rows of the lookahead, each of which follows the one before: see `Lookahead.follows`.
        """
        lookahead = self.lookahead
        assert lookahead is not None, f"context {self.context_id} has no lookahead"
        num_in_place = lookahead.num_in_place(path)
        for row in path:
            num_left_out = lookahead.positions[row] - self.next_position
            if num_left_out:
                self.gaps = (*self.gaps, (len(self.token_ids), num_left_out))
            self.append((lookahead.token_ids[row],))
        self.keep_computed(num_in_place)

    def keep_computed(self, num_tokens: int) -> None:
        """End the lookahead, of which so many tokens at the beginning have become the sequence's own."""
        self.lookahead = None
        self.num_computed += num_tokens
        self.page_table.truncate(self.num_computed)

    def discard(self) -> None:
        """End the lookahead, if there is one, and give back its pages."""
        if self.lookahead is not None:
            self.keep_computed(0)

    def drop_lookahead(self) -> None:
        """Give back the pages of the lookahead, and those that nothing has been written to."""
        if self.lookahead is not None:
            self.lookahead.num_computed = 0
        self.page_table.truncate(self.num_computed)

    def append(self, token_ids: list[int] | tuple[int, ...]) -> None:
        """Append tokens, not yet computed."""
        if token_ids:
            self.token_ids.extend(token_ids)
            self.logits = None

    def truncate(self, length: int) -> None:
        """Drop the tokens after the first `length`, with their pages; demands for them shrink."""
        assert self.lookahead is None, f"context {self.context_id} looks ahead of tokens that are to be dropped"
        if length < len(self.token_ids):
            del self.token_ids[length:]
            self._forget_keys(length)
            self.gaps = gaps_of.truncated(self.gaps, length)
            self.logits = None
        self.num_computed = min(self.num_computed, length)
        self.num_dropped = min(self.num_dropped, length)
        self.page_table.truncate(length)
        for flush in self.flushes:
            flush.target_len = min(flush.target_len, length)
        if self.link is not None:
            self.link.prefix_len = min(self.link.prefix_len, length)

    def evict(self, start: int, end: int) -> SlotMoves | None:
        """Drop the tokens `start <= i < end`. All tokens must be computed, and one must follow; the others stay.

        Returns the moves of keys and values to carry out at once. Raises as `PageTable.evict`, with nothing changed.
        """
        assert self.num_computed == len(self.token_ids) > end, f"context {self.context_id} is not computed"
        assert self.lookahead is None, f"context {self.context_id} looks ahead"
        moves = self.page_table.evict(start, end, len(self.token_ids))
        self.drop_evicted(start, end)
        return moves

    def drop_evicted(self, start: int, end: int) -> None:
        """Take note that the page table has no slots any more for the tokens `start <= i < end`."""
        del self.token_ids[start:end]
        self._forget_keys(start)
        self.gaps = gaps_of.evicted(self.gaps, start, end)
        self.num_computed = len(self.token_ids)
        self.num_dropped = min(self.num_dropped, self.num_computed)

    def uncompute(self, num_computed: int) -> None:
        """Give back the pages of all but the first `num_computed` tokens, which stay computed. The tokens stay."""
        self.num_computed = num_computed
        self.drop_lookahead()

    def drop_tail(self, num_computed: int) -> None:
        """Give back the pages of all but the first `num_computed` tokens, to be computed again when it is demanded."""
        self.num_dropped = max(self.num_dropped, self.num_computed)
        self.num_computed = num_computed
        self.logits = None
        self.drop_lookahead()

    def forget(self) -> None:
        """Give back all pages. The tokens stay, and are computed again when somebody demands it."""
        self.num_computed = 0
        self.logits = None
        self.drop_lookahead()

    def demand_logits(self) -> None:
        """See to it that meeting the demands yields the last token's logits, computing it again if they are gone."""
        is_complete = self.num_computed == len(self.token_ids)
        if is_complete and self.logits is None and self.link is None and self.token_ids:
            self.drop_lookahead()
            self.num_computed -= 1

    def keep_logits(self) -> None:
        """Make the logits a copy of its own, if they are a row of a whole step's."""
        if self.has_lent_logits and self.logits is not None:
            self.logits = self.logits.clone()
        self.has_lent_logits = False

    def share_from(self, source: Sequence, prefix_len: int) -> None:
        """Share the source's pages of the first `prefix_len` tokens, as far as computed, and its logits if they fit."""
        self.num_computed = min(prefix_len, source.num_computed)
        self.page_table.share_prefix(source.page_table, self.num_computed)
        if self.num_computed == len(self.token_ids) == len(source.token_ids):
            source.keep_logits()
            self.logits = source.logits

    def _forget_keys(self, length: int) -> None:
        """Forget the keys of all pages but those that the first `length` tokens, which stay, fill."""
        for keys in (self.page_keys, self.published_keys):
            del keys[length // self.page_table.page_size :]
        self.found_pages = (0, [], 0)

    def check_integrity(self) -> None:
        """Raise AssertionError unless the numbers, pages, links and logits fit together."""
        name = f"context {self.context_id}"
        page_size = self.page_table.page_size
        assert 0 <= self.num_computed <= len(self.token_ids), name
        num_keys = max(len(self.page_keys), len(self.published_keys))
        assert num_keys <= len(self.token_ids) // page_size, f"{name}: keys of pages that are not full"
        assert len(self.page_table.page_ids) * page_size >= self.num_filled, f"{name}: computed tokens without pages"
        is_complete = self.num_computed == len(self.token_ids)
        assert is_complete or self.num_filled == self.num_computed, f"{name}: looks ahead of tokens not computed"
        assert self.logits is None or self.num_computed == len(self.token_ids), f"{name}: logits of another token"
        assert self.num_dropped <= len(self.token_ids), f"{name}: dropped tokens that it does not have"
        assert self.has_demand or not (self.is_waiting or self.is_fresh), f"{name}: takes part without a demand"
        assert all(index < len(self.token_ids) for index, _ in self.gaps), f"{name}: a gap before no token"
        assert all(flush.target_len <= len(self.token_ids) for flush in self.flushes), name
        assert all(link_of.link is not None and link_of.link.source is self for link_of in self.followers), name
        if self.link is not None:
            assert self in self.link.source.followers, f"{name}: waits for a sequence that does not know of it"
            assert self.link.source.adapter == self.adapter, f"{name}: waits for tokens computed with another adapter"
            assert self.num_computed == 0, f"{name}: computed something while it waits for its source"
            assert self.link.prefix_len <= min(len(self.token_ids), len(self.link.source.token_ids)), name
