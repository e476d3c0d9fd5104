"""The contexts of all runs: what the context commands do to them. Pure Python.

A fork of a context that is not yet computed waits for it (a `Link`), so that a common prefix is computed once, and then
shares its pages. If what it waits for goes away, one of those that wait takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tartlet_engine.accounts import RunAccount
from tartlet_engine.api import ErrorCode
from tartlet_engine.command_error import CommandError
from tartlet_engine.gaps import total, truncated
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Flush, Link, Room, Sequence

EVICTED = "evicted"
"""The operation of a context from whose middle tokens are dropped: until that is done, it has all of them."""


class ContextTable:
    """Contexts by id, and those of them that demand to be computed. Not thread-safe."""

    def __init__(self, pool: PagePool, context_len: int) -> None:
        """Make an empty table; `context_len` is the most tokens that a context may have."""
        self._pool = pool
        self._context_len = context_len
        self._num_demands = 0
        self.sequences: dict[int, Sequence] = {}
        self.active: dict[int, Sequence] = {}  # those with a demand, in the order in which it began

    def create(self, context_id: int, account: RunAccount, adapter: str | None = None) -> None:
        """Make an empty context of the run, whose tokens are to be computed with an adapter or without."""
        self._require_new(context_id)
        self.sequences[context_id] = Sequence(context_id, account, PageTable(self._pool, account), adapter=adapter)

    def get(self, context_id: int) -> Sequence:
        """Return a context. Raises CommandError `not-found`."""
        try:
            return self.sequences[context_id]
        except KeyError:
            raise CommandError(ErrorCode.NOT_FOUND, f"there is no context {context_id}") from None

    def of_run(self, account: RunAccount) -> list[Sequence]:
        """Return the contexts of a run, the oldest first. Cost: one pass over all contexts."""
        return [sequence for sequence in self.sequences.values() if sequence.account is account]

    def append(self, sequence: Sequence, token_ids: tuple[int, ...]) -> None:
        """Append tokens. Raises CommandError if the context is busy or would grow too long."""
        self.require_idle(sequence)
        needed = sequence.next_position + len(token_ids)
        if needed > self._context_len:
            what = f"tokens, {total(sequence.gaps):,} evicted ones included" if sequence.gaps else "tokens"
            message = f"the context would have {needed:,} {what}; the model's context length is {self._context_len:,}"
            raise CommandError(ErrorCode.CONTEXT_OVERFLOW, message, "Truncate the context, or begin a new one.")
        sequence.append(token_ids)

    def truncate(self, sequence: Sequence, length: int) -> None:
        """Drop the tokens after the first `length`. Raises CommandError if it is busy or shorter."""
        self.require_idle(sequence)
        self._require_length(sequence, length)
        self.cut(sequence, length)

    def cut(self, sequence: Sequence, length: int) -> None:
        """Drop the tokens after the first `length`, of which there are as many. Forks that wait for them go on."""
        self.orphan_followers(sequence, kept_len=length)
        sequence.truncate(length)
        if sequence.link is not None:
            self._follow(sequence, sequence.link.source, sequence.link.prefix_len)

    def fork(self, sequence: Sequence, child_id: int, length: int) -> None:
        """Make a context out of the first `length` tokens. Allocates no page and copies no logits."""
        self._require_new(child_id)
        if sequence.operation != EVICTED:
            self._require_no_operation(sequence)
        self._require_length(sequence, length)
        page_table = PageTable(self._pool, sequence.account)
        child = Sequence(child_id, sequence.account, page_table, adapter=sequence.adapter)
        child.token_ids = sequence.token_ids[:length]
        child.gaps = truncated(sequence.gaps, length)
        num_full = length // self._pool.page_size
        child.page_keys, child.published_keys = sequence.page_keys[:num_full], sequence.published_keys[:num_full]
        self.sequences[child_id] = child
        if self._will_compute(sequence, length):
            self._follow(child, sequence, length)
        else:
            child.share_from(sequence, length)

    def flush(
        self,
        sequence: Sequence,
        operation_id: int | None,
        then: Callable[[], None] | None = None,
        *,
        is_exclusive: bool = False,
        room: Room | None = None,
    ) -> None:
        """Demand that what the context holds is computed. `then` is called when it is, instead of an answer.

        Exclusive: the context is busy until then. With `room`, `then` is called in a step in which all pages are in the
        pool and that room is there, and logits are not demanded.
        """
        sequence.flushes.append(Flush(operation_id, len(sequence.token_ids), then, is_exclusive, room))
        if room is None:
            sequence.demand_logits()
        self.activate(sequence)

    def free(self, sequence: Sequence) -> None:
        """Free a context that nobody waits for any more. Forks that waited for it go on without it."""
        assert not sequence.has_demand
        self.orphan_followers(sequence, kept_len=0)
        self._unlink(sequence)
        sequence.page_table.truncate(0)
        del self.sequences[sequence.context_id]

    @property
    def holders_between_steps(self) -> list[Sequence]:
        """Contexts that are being saved, opened or evicted from, and hold pages which nothing can be taken from."""
        return [
            sequence
            for sequence in self.sequences.values()
            if sequence.operation is not None and not sequence.has_demand and sequence.page_table.page_ids
        ]

    def activate(self, sequence: Sequence) -> None:
        """Let the context take part in steps, because somebody demands something of it."""
        if sequence.context_id not in self.active:
            self._num_demands += 1
            sequence.demand_order = self._num_demands
            self.active[sequence.context_id] = sequence

    def settle(self, sequence: Sequence) -> None:
        """Take note that a demand has ended: forks must not wait for what nobody demands any more."""
        self.orphan_followers(sequence, kept_len=max(sequence.num_computed, sequence.target_len))
        if not sequence.has_demand:
            sequence.is_waiting = sequence.is_fresh = False
            sequence.page_table.truncate(sequence.num_filled)  # pages reserved for what is not computed any more
            self.active.pop(sequence.context_id, None)

    def share_with_followers(self, sequence: Sequence) -> None:
        """Let the forks share that were waiting for what has been computed by now, and forks of theirs."""
        sources = [sequence]  # a list and no recursion: a chain of forks can be long
        while sources:
            source = sources.pop()
            for follower in list(source.followers):
                if follower.link is not None and follower.link.prefix_len <= source.num_computed:
                    self._share(follower, source, follower.link.prefix_len)
                    sources.append(follower)

    def orphan_followers(self, sequence: Sequence, kept_len: int) -> None:
        """Find another source for the forks that wait for more than the first `kept_len` tokens of this one.

        The one that waits for most takes the place of this sequence, with what is computed so far.
        """
        orphans = [follower for follower in sequence.followers if follower.link and follower.link.prefix_len > kept_len]
        if not orphans:
            return
        prefix_lens = {orphan.context_id: orphan.link.prefix_len for orphan in orphans if orphan.link}
        for orphan in orphans:
            self._unlink(orphan)
        heir = max(orphans, key=lambda orphan: prefix_lens[orphan.context_id])
        heir_len = prefix_lens[heir.context_id]
        if sequence.link is not None:
            self._follow(heir, sequence.link.source, min(heir_len, sequence.link.prefix_len))
        else:
            self._share(heir, sequence, heir_len)
            self.share_with_followers(heir)
        for orphan in orphans:
            if orphan is not heir:
                self._follow(orphan, heir, prefix_lens[orphan.context_id])

    def require_idle(self, sequence: Sequence) -> None:
        """Raise CommandError `unavailable` if something is under way on the context, or it is not there yet."""
        self._require_no_operation(sequence)
        if any(flush.is_exclusive for flush in sequence.flushes):
            message = f"context {sequence.context_id} is busy: tokens are being evicted"
            raise CommandError(ErrorCode.UNAVAILABLE, message, "Wait until that is done.")
        if sequence.generation is not None:
            message = (
                f"context {sequence.context_id} is busy: generation {sequence.generation.generation_id} runs on it"
            )
            raise CommandError(
                ErrorCode.UNAVAILABLE, message, "Wait for the generation, cancel it, or fork the context."
            )
        if sequence.lookahead is not None:
            message = f"context {sequence.context_id} is busy: a forward pass on it is neither committed nor discarded"
            raise CommandError(ErrorCode.UNAVAILABLE, message, "Commit or discard the pass, or fork the context.")

    def check_integrity(self, other_page_tables: Iterable[PageTable] = ()) -> None:
        """Raise AssertionError unless every context, page and reference adds up; others hold pages, too."""
        for sequence in self.sequences.values():
            sequence.check_integrity()
            assert sequence.has_demand == (sequence.context_id in self.active), f"context {sequence.context_id}"
            assert not (sequence.has_demand and sequence.account.is_stopped), f"run {sequence.account.run_id} goes on"
        page_tables = [*(sequence.page_table for sequence in self.sequences.values()), *other_page_tables]
        self._pool.check_integrity(page_table.page_ids for page_table in page_tables)

    def _will_compute(self, sequence: Sequence, length: int) -> bool:
        """Tell whether the sequence computes its first `length` tokens on its own, whatever it samples."""
        generation = sequence.generation
        return generation is None or generation.steps is not None or length <= generation.prompt_len

    def _follow(self, follower: Sequence, source: Sequence, prefix_len: int) -> None:
        """Let the follower share the source's first `prefix_len` tokens, at once or when they are computed."""
        self._unlink(follower)
        if prefix_len <= source.num_computed:
            self._share(follower, source, prefix_len)
            self.share_with_followers(follower)
            return
        follower.link = Link(source, prefix_len)
        source.followers.append(follower)
        if source.target_len < prefix_len and not source.account.is_stopped:
            self.flush(source, operation_id=None)

    def _share(self, follower: Sequence, source: Sequence, prefix_len: int) -> None:
        self._unlink(follower)
        follower.share_from(source, prefix_len)
        if follower.has_demand:
            follower.demand_logits()

    def _unlink(self, follower: Sequence) -> None:
        if follower.link is not None:
            follower.link.source.followers.remove(follower)
            follower.link = None

    def _require_no_operation(self, sequence: Sequence) -> None:
        if sequence.operation is not None:
            what = "tokens are being" if sequence.operation == EVICTED else "it is being"
            message = f"context {sequence.context_id} is busy: {what} {sequence.operation}"
            raise CommandError(ErrorCode.UNAVAILABLE, message, "Wait until that is done.")

    def _require_new(self, context_id: int) -> None:
        if context_id in self.sequences:
            raise CommandError(ErrorCode.ALREADY_EXISTS, f"there is a context {context_id} already")

    def _require_length(self, sequence: Sequence, length: int) -> None:
        if not 0 <= length <= len(sequence.token_ids):
            message = f"length must be between 0 and the context's {len(sequence.token_ids):,} tokens, got {length:,}"
            raise CommandError(ErrorCode.INVALID_ARGUMENT, message)
