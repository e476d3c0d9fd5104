"""Drafts in a step: rows for guessed tokens beside a generation's own, and which of them come true.

A decode whose generation has a drafter takes guessed tokens along, as far as the step has room. After the forward pass
the own row is sampled as always. As long as what is sampled is what was guessed, the next row holds the logits after
it, and is sampled in its turn. So what is generated is what it would be without drafts, by any sampler: nothing is
accepted but what the sampler has chosen, from the logits that it would have had.

Drafts take nothing from anybody: only what is left of the step's token budget, only free pages, and nothing at all
while somebody waits. Keys and values of guesses that were wrong lie in slots that count as not computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tartlet_engine.accounts import RunLimitError
from tartlet_engine.api import EngineError
from tartlet_engine.commits import Commits
from tartlet_engine.constraints.rows import ConstrainedRows
from tartlet_engine.demands import Demands
from tartlet_engine.drafter import Drafter
from tartlet_engine.fairness import PREFILL_COST
from tartlet_engine.generation import Generation
from tartlet_engine.lookahead import Lookahead, tree_positions
from tartlet_engine.pages import PagePool
from tartlet_engine.prefix_cache import PrefixCache
from tartlet_engine.sampler import Sampled, launch_sampling
from tartlet_engine.sequence import Sequence
from tartlet_engine.step_plan import StepPlan

if TYPE_CHECKING:
    from torch import Tensor


MOST_DRAFTERS = 64
"""Of one run at a time: an index of a long text takes some megabytes. Its other generations do without."""


@dataclass(slots=True, eq=False)
class _Draft:
    """Guessed tokens of one step, and the logits after each of them."""

    generation: Generation
    token_ids: list[int]
    logits: Tensor | None = None  # float32[len(token_ids), V], of the step
    num_accepted: int = 0

    def take_logits(self, rows: list[int], logits: Tensor) -> None:
        """Keep the logits until the end of the step: `Lookahead.take_logits`."""
        assert len(rows) == len(self.token_ids)
        self.logits = logits

    def is_next(self, token_id: int) -> bool:
        """Tell whether the token comes right after those accepted."""
        return self.num_accepted < len(self.token_ids) and self.token_ids[self.num_accepted] == token_id


class DraftRows:
    """Lets generations draft. On the engine's thread."""

    def __init__(
        self,
        pool: PagePool,
        demands: Demands,
        commits: Commits,
        constrained: ConstrainedRows,
        prefix_cache: PrefixCache | None,
    ) -> None:
        """Append what comes true through `commits`, by the masks of `constrained`."""
        self._pool = pool
        self._demands = demands
        self._commits = commits
        self._constrained = constrained
        self._prefix_cache = prefix_cache
        self._drafts: dict[Sequence, _Draft] = {}  # of the step that is under way
        self.num_drafted = 0
        self.num_accepted = 0

    def add(self, plan: StepPlan, room: int) -> None:
        """Let the decodes of a plan take drafts along, with `room` tokens for all of them together."""
        self._drafts.clear()
        if plan.waiting or plan.backlogged:
            return
        for sequence in list(plan.num_planned):
            generation = sequence.generation
            if generation is None or generation.speculation is None or not _can_draft(sequence):
                continue
            most = min(room, generation.tokens_left - 1)
            if most <= 0 or (drafter := _drafter_of(generation)) is None:
                continue
            token_ids = self._within_pages(sequence, drafter.draft(most))
            if not token_ids:
                continue
            draft = _Draft(generation, token_ids)
            positions = tree_positions(sequence.next_position, None, len(token_ids))
            rows = frozenset(range(len(token_ids)))
            sequence.lookahead = Lookahead(token_ids, None, positions, rows, draft.take_logits)
            self._drafts[sequence] = draft
            plan.add(sequence, len(token_ids))
            room -= len(token_ids)
            self.num_drafted += len(token_ids)
            generation.num_drafted += len(token_ids)

    def has_draft(self, sequence: Sequence) -> bool:
        """Tell whether a decode takes a draft along in this step."""
        return sequence in self._drafts

    def end_lookahead(self) -> None:
        """Take what the forward pass has computed: from now on the guesses are no part of their sequences any more."""
        for sequence, draft in list(self._drafts.items()):
            if draft.logits is None or sequence.lookahead is None or sequence.generation is not draft.generation:
                del self._drafts[sequence]  # it has failed or ended
            else:
                sequence.lookahead = None  # pages reserved for the guesses stay until `commit` or `finish`

    def commit(self, generation: Generation, sampled: Sampled) -> None:
        """Append a sampled token, and those after it that were guessed and are sampled, too."""
        draft = self._drafts.pop(generation.sequence, None)
        if draft is None:
            self._commits.sampled(generation, sampled)
            return
        self._append(draft, sampled)
        self._accept(draft)

    def finish(self) -> None:
        """End the drafts that no token was sampled for: there was no mask yet, or other tokens are forced."""
        drafts, self._drafts = self._drafts, {}
        for draft in drafts.values():
            self._accept(draft)

    def _accept(self, draft: _Draft) -> None:
        """Go on along the draft as far as it comes true, and account for it."""
        sequence = draft.generation.sequence
        if sequence.generation is draft.generation:
            num_in_place = self._follow(draft)
            if num_in_place and self._prefix_cache is not None:
                self._prefix_cache.note_computed(sequence)
            sequence.page_table.truncate(sequence.num_computed)
        num_drafted = len(draft.token_ids)
        self.num_accepted += draft.num_accepted
        sequence.account.share.charge(PREFILL_COST * (num_drafted - draft.num_accepted))
        if draft.generation.drafter is not None:
            draft.generation.drafter.note_accepted(num_drafted, draft.num_accepted)

    def _follow(self, draft: _Draft) -> int:
        """Sample row after row while tokens are as guessed. Returns how many guesses are computed tokens now."""
        generation, sequence = draft.generation, draft.generation.sequence
        num_in_place = 0
        while sequence.generation is generation:
            before = num_in_place
            while sequence.num_computed < len(sequence.token_ids) and num_in_place < len(draft.token_ids):
                if sequence.token_ids[sequence.num_computed] != draft.token_ids[num_in_place]:
                    break
                sequence.num_computed += 1
                num_in_place += 1
            self._count(draft, num_in_place)
            if num_in_place == before or sequence.num_computed < len(sequence.token_ids):
                break
            assert draft.logits is not None
            row = draft.logits[num_in_place - 1]
            sequence.logits = row
            if self._constrained.ready([generation], is_idle=False):
                (result,) = launch_sampling(row.unsqueeze(0), [generation.sampling_row]).wait()
                if isinstance(result, EngineError):
                    self._demands.fail(sequence, result)
                else:
                    self._append(draft, result)
            elif sequence.logits is not None:
                break  # its mask is late: it is sampled in a later step
        return num_in_place

    def _append(self, draft: _Draft, sampled: Sampled) -> None:
        """Append a sampled token. It counts as accepted before that may end the generation, which tells its usage."""
        if draft.is_next(sampled.token_id):
            self._count(draft, draft.num_accepted + 1)
        self._commits.sampled(draft.generation, sampled)

    @staticmethod
    def _count(draft: _Draft, num_accepted: int) -> None:
        draft.generation.num_accepted += num_accepted - draft.num_accepted
        draft.num_accepted = num_accepted

    def _within_pages(self, sequence: Sequence, token_ids: list[int]) -> list[int]:
        """Return as many of the tokens as have a place without a page taken from anybody, and reserve it."""
        page_table, page_size = sequence.page_table, self._pool.page_size
        start = sequence.num_computed + 1  # after the own token, whose place is reserved
        num_pages = page_table.num_new_pages(start, start + len(token_ids))
        try:
            sequence.account.require_pages(num_pages)
            has_room = num_pages <= self._pool.num_free
        except RunLimitError:
            has_room = False
        if not has_room:
            token_ids = token_ids[: len(page_table.page_ids) * page_size - start]
        copy = page_table.reserve(start, start + len(token_ids))
        assert copy is None, "the own token's page is its alone"
        return token_ids


def _drafter_of(generation: Generation) -> Drafter | None:
    """Return the generation's drafter, made now if it has none; None while its run has too many."""
    drafters = generation.sequence.account.drafters
    if generation.drafter is None and generation.speculation is not None and len(drafters) < MOST_DRAFTERS:
        generation.drafter = Drafter(generation.speculation, generation.sequence.token_ids, generation.prompt_len)
        drafters.add(generation.drafter)
    return generation.drafter


def _can_draft(sequence: Sequence) -> bool:
    """Tell whether the sequence computes the token sampled last, and nobody waits for that but its generation."""
    return sequence.is_decoding and sequence.lookahead is None and not (sequence.flushes or sequence.followers)
