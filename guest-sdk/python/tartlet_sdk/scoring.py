"""How likely texts are after a context: the log-probabilities behind `Context.score` and `Context.logprobs`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tartlet_sdk import checks
from tartlet_sdk.draft import TokenLogprob
from tartlet_sdk.errors import InvalidArgument
from tartlet_sdk.forward import LAST, Ask, compute
from tartlet_sdk.host_call import call

if TYPE_CHECKING:
    from tartlet_sdk.context import Context

MOST_BRANCHES = 256
"""Tokens of a pass that is a tree."""


class Branches:
    """Texts as a tree that shares their beginnings.

    The last token of a text is no node of it: its probability is known before it is computed.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self._children: dict[tuple[int, int], int] = {}  # by row and token: the row of that token
        self._next: dict[int, dict[int, None]] = {LAST: {}}  # by row: tokens whose probability after it is wanted

    def num_new(self, text: list[int]) -> int:
        """Number of nodes that a text would add."""
        row, index = LAST, 0
        while index < len(text) - 1 and (row, text[index]) in self._children:
            row, index = self._children[row, text[index]], index + 1
        return len(text) - 1 - index

    def add(self, text: list[int]) -> None:
        """Add a text of at least one token."""
        row = LAST
        for token in text[:-1]:
            self._next[row][token] = None
            key = row, token
            if key not in self._children:
                self._children[key] = len(self.tokens)
                self._next[len(self.tokens)] = {}
                self.tokens.append(token)
                self.parents.append(row)
            row = self._children[key]
        self._next[row][text[-1]] = None

    async def logprobs(self, context: Context, name: str) -> dict[tuple[int, int], float]:
        """Compute all for the call `name`, and keep nothing: log-probabilities by row and the token after it."""
        ask = [Ask(row, given=list(tokens)) for row, tokens in self._next.items()]
        with await compute(
            context, self.tokens, parents=self.parents, positions=None, ask=ask, logprobs=False, name=name
        ) as found:
            return {
                (row, token): logprob
                for (row, tokens), answer in zip(self._next.items(), found.rows, strict=True)
                for token, logprob in zip(tokens, answer.given, strict=True)
            }

    def total(self, text: list[int], logprobs: dict[tuple[int, int], float]) -> float:
        """The log-probability of a text that was added."""
        row, total = LAST, 0.0
        for token in text:
            total += logprobs[row, token]
            row = self._children.get((row, token), LAST)
        return total


async def score(context: Context, options: Iterable[str]) -> list[float]:
    """The log-probability of each text: `Context.score`."""
    name = "Context.score"
    if isinstance(options, str):
        raise InvalidArgument("options must be several texts, not one", hint='Write ["one", "two"].', call=name)
    texts = [_tokens(context, option, "an option", name) for option in options]
    totals: list[float] = []
    while len(totals) < len(texts):
        branches = Branches()
        group: list[list[int]] = []
        for text in texts[len(totals) :]:
            if len(branches.tokens) + branches.num_new(text) > MOST_BRANCHES:
                break
            branches.add(text)
            group.append(text)
        if group:
            found = await branches.logprobs(context, name)
            totals += [branches.total(text, found) for text in group]
        else:  # a text that is a pass by itself
            totals.append(sum(await line(context, texts[len(totals)], name)))
    return totals


async def logprobs(context: Context, text: str) -> list[TokenLogprob]:
    """Each token of a text with its log-probability: `Context.logprobs`."""
    name = "Context.logprobs"
    tokens = _tokens(context, text, "text", name)
    return [TokenLogprob(*pair) for pair in zip(tokens, await line(context, tokens, name), strict=True)]


async def line(context: Context, tokens: list[int], name: str) -> list[float]:
    """The log-probability of each token, if they all follow the context. Keeps nothing."""
    last = Ask(len(tokens) - 2, given=tokens[-1:])  # known before the last token is computed
    with await compute(
        context, tokens[:-1], parents=None, positions=None, ask=[last], logprobs=True, name=name
    ) as found:
        return [*found.logprobs, *found.rows[0].given]


def _tokens(context: Context, text: str, what: str, name: str) -> list[int]:
    tokens = call(name, context._model.tokenize, checks.text(text, what, name))
    if not tokens:
        raise InvalidArgument(f"{what} is empty", call=name)
    return list(tokens)
