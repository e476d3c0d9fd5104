"""What the program side asks of a forward pass, and what it is answered."""

from __future__ import annotations

import msgspec

from tartlet_engine.api.values import Sampling, TokenLogprob


class RowRequest(msgspec.Struct, frozen=True):
    """What is wanted of the model's distribution after one token of a pass, or after the context's last one."""

    row: int  # the token's index in the pass; -1: the context's last token
    sampling: Sampling | None = None  # sample a token, which is not appended to anything
    sample_index: int = 0  # which number of the seed's stream to sample by: a generation's first token has 0
    top: int = 0  # so many most likely tokens
    token_ids: tuple[int, ...] = ()  # the log-probabilities of these
    entropy: bool = False
    logits: bool = False  # all of them, as they are


class RowResult(msgspec.Struct, frozen=True):
    """The answer to one `RowRequest`. Log-probabilities and entropy are of the model's own distribution, in nats."""

    row: int
    sampled: TokenLogprob | None = None  # after penalties and bias, before temperature
    top: tuple[TokenLogprob, ...] = ()  # the most likely first
    logprobs: tuple[float, ...] = ()  # one for each of the request's token_ids
    entropy: float | None = None
    logits: bytes = b""  # float32[V], little-endian


class Forward(msgspec.Struct, frozen=True, tag=True):
    """Computes tokens after a context's last one, provisionally. Answered by `Forwarded`, or `Failed`, with its id.

    The context is busy, but for forks, which have its own tokens only, until `CommitForward` or `DiscardForward`.
    """

    operation_id: int
    context_id: int
    token_ids: tuple[int, ...]
    parents: tuple[int, ...] | None = None  # which token each one follows, -1: the context's last; None: the one before
    # Where each token stands: after what it follows, but not necessarily right after. None: right after.
    positions: tuple[int, ...] | None = None
    requests: tuple[RowRequest, ...] = ()
    logprobs: bool = False  # that of each of the tokens, after what it follows


class CommitForward(msgspec.Struct, frozen=True, tag=True):
    """Appends a path of a pass that has been answered to the context, and forgets the rest of it. No event follows."""

    context_id: int
    path: tuple[int, ...]  # indexes of tokens: the first follows the context's last one, each other the one before


class DiscardForward(msgspec.Struct, frozen=True, tag=True):
    """Forgets the context's pass, or ends it without an answer. No event follows; ignored if there is none."""

    context_id: int


class Forwarded(msgspec.Struct, frozen=True, tag=True):
    """A pass has been computed. It waits to be committed or discarded."""

    operation_id: int
    logprobs: tuple[float, ...]  # one for each token, if asked for
    rows: tuple[RowResult, ...]  # in the order of the requests


ForwardCommand = Forward | CommitForward | DiscardForward
