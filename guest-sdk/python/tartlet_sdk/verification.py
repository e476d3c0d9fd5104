"""Drafts of a program's own, checked by the model in one pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tartlet_sdk import checks
from tartlet_sdk.forward import Ask, compute
from tartlet_sdk.sampler import Sampler

if TYPE_CHECKING:
    from tartlet_sdk.context import Context

CALL = "Context.verify"
MOST_VERIFIED = 63
"""Tokens of a draft: a pass samples 64 times at most."""


async def verify(context: Context, draft: Iterable[int], sampler: Sampler | None, sample_index: int) -> list[int]:
    """Append what the sampler chooses, as long as that is the draft, and one token more: `Context.verify`."""
    guessed = checks.tokens(draft, "draft", CALL)
    checks.whole(len(guessed), "the number of tokens in draft", CALL, 0, MOST_VERIFIED)
    checks.whole(sample_index, "sample_index", CALL, 0, checks.U32 - MOST_VERIFIED)
    chosen_by = sampler or Sampler.greedy()
    ask = [Ask(row, sample=chosen_by, sample_index=sample_index + row + 1) for row in range(-1, len(guessed))]
    tokens: list[int] = []
    with await compute(context, guessed, parents=None, positions=None, ask=ask, logprobs=False, name=CALL) as found:
        for row, answer in enumerate(found.rows):
            assert answer.sampled is not None
            tokens.append(answer.sampled.token)
            if row == len(guessed) or tokens[-1] != guessed[row]:
                break
        found.commit(range(len(tokens) - 1))
    context.fill_tokens(tokens[-1:])
    return tokens
