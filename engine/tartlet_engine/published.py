"""Prefixes that the operator has published: computed once, kept, and found by every tenant. Pure Python.

A prefix is computed in a context like any other, of a run that is the operator's own. Its full pages are indexed below
the operator's root, where all tenants look first, and held until it is unpublished.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tartlet_engine import validation
from tartlet_engine.accounts import RunAccount
from tartlet_engine.api import Done, EngineError, ErrorCode, ModelInfo, PublishPrefix, UnpublishPrefix
from tartlet_engine.command_error import CommandError
from tartlet_engine.contexts import ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool
from tartlet_engine.prefix_cache import PrefixCache
from tartlet_engine.prefix_index import OPERATOR
from tartlet_engine.sequence import Sequence

# Part of the pool that published prefixes may hold, so that tenants always have the rest.
MAX_POOL_SHARE = 0.5

_OPERATORS_RUN = -1  # clients number theirs from 0


class PublishedPrefixes:
    """The prefixes that are published or being computed for it, by number. Not thread-safe."""

    def __init__(
        self, info: ModelInfo, pool: PagePool, contexts: ContextTable, demands: Demands, cache: PrefixCache | None
    ) -> None:
        """Start with none. Without a cache, none can be published."""
        self._info = info
        self._pool = pool
        self._contexts = contexts
        self._demands = demands
        self._cache = cache
        self._computing: dict[int, Sequence] = {}
        self._page_keys: dict[int, list[bytes]] = {}  # of those published and those being computed
        self.handlers: dict[type, Callable[[Any, int], None]] = {
            PublishPrefix: self._publish,
            UnpublishPrefix: self._unpublish,
        }
        self.account = RunAccount(_OPERATORS_RUN, OPERATOR, None, None)
        self.page_tables: dict[int, PageTable] = {}  # of those published

    def settle(self) -> None:
        """After a step: let go of what has failed."""
        for prefix_id, sequence in list(self._computing.items()):
            if not sequence.has_demand:
                del self._computing[prefix_id]
                self._forget(prefix_id)
                self._contexts.free(sequence)

    def check_integrity(self) -> None:
        """Raise AssertionError unless the operator's account is of exactly the pages that prefixes hold."""
        page_tables = [*self.page_tables.values(), *(sequence.page_table for sequence in self._computing.values())]
        self.account.check_integrity(page_table.page_ids for page_table in page_tables)
        assert self._page_keys.keys() == self.page_tables.keys() | self._computing.keys()

    def _publish(self, command: PublishPrefix, arrived_ns: int) -> None:
        """Begin to compute a prefix. `Done` or `Failed` with its number follows.

        Raises CommandError if it is shorter than a page, too long, or there is one of this number already.
        """
        page_size = self._pool.page_size
        if self._cache is None:
            raise CommandError(ErrorCode.UNSUPPORTED, "the engine runs without a prefix cache")
        if command.prefix_id in self._page_keys:
            raise CommandError(ErrorCode.ALREADY_EXISTS, f"there is a prefix {command.prefix_id} already")
        validation.check_token_ids("token_ids", command.token_ids, self._info.vocabulary_size)
        validation.check_adapter(command.adapter, self._info)
        num_pages = len(command.token_ids) // page_size
        if num_pages == 0:
            message = f"a prefix must fill a page of {page_size} tokens, got {len(command.token_ids)}"
            raise CommandError(ErrorCode.INVALID_ARGUMENT, message)
        allowed = int(MAX_POOL_SHARE * self._pool.num_pages)
        needed = num_pages + sum(map(len, self._page_keys.values()))
        if needed > allowed:
            message = f"published prefixes would need {needed:,} pages; of {self._pool.num_pages:,} they may have "
            hint = "Publish less, or give the engine a larger KV cache (kv_pages)."
            raise CommandError(ErrorCode.KV_EXHAUSTED, f"{message}{allowed:,}", hint)
        context_id = -1 - command.prefix_id  # no client's: theirs count up from 0
        self._contexts.create(context_id, self.account, command.adapter)
        sequence = self._contexts.get(context_id)
        try:
            self._contexts.append(sequence, command.token_ids[: num_pages * page_size])
        except CommandError:
            self._contexts.free(sequence)
            raise
        self._computing[command.prefix_id] = sequence
        self._page_keys[command.prefix_id] = self._cache.keys(sequence, num_pages)
        self._note_longest()
        self._contexts.flush(sequence, command.prefix_id, then=lambda: self._keep(command.prefix_id))

    def _keep(self, prefix_id: int) -> None:
        """Hold the pages of a prefix, as soon as it is computed: a moment later others could take them."""
        sequence = self._computing.pop(prefix_id)
        self.page_tables[prefix_id] = PageTable(self._pool, self.account)
        self.page_tables[prefix_id].share_prefix(sequence.page_table, sequence.num_computed)
        self._contexts.free(sequence)
        self._demands.events.append(Done(prefix_id))

    def _unpublish(self, command: UnpublishPrefix, arrived_ns: int) -> None:
        """Let go of a prefix: nobody finds it any more, and those who hold its pages keep them. No effect if unknown.

        One that is still being computed fails as cancelled.
        """
        prefix_id = command.prefix_id
        if (sequence := self._computing.get(prefix_id)) is not None:
            error = EngineError(ErrorCode.CANCELLED, "the prefix was unpublished before it was computed")
            self._demands.fail(sequence, error)
            self.settle()
        elif prefix_id in self.page_tables:
            page_table = self.page_tables.pop(prefix_id)
            self._forget(prefix_id)
            page_table.truncate(0)

    def _forget(self, prefix_id: int) -> None:
        """Take the pages of a prefix out of the index, but for those that another one has, too."""
        keys = self._page_keys.pop(prefix_id)
        self._note_longest()
        kept = {key for other in self._page_keys.values() for key in other}
        for key in keys:
            page_id = self._pool.index.find(key)
            if page_id is not None and key not in kept:
                self._pool.unindex(page_id)

    def _note_longest(self) -> None:
        if self._cache is not None:
            self._cache.max_published_pages = max(map(len, self._page_keys.values()), default=0)
