"""Checks what comes with `Forward`, before anything depends on it."""

from __future__ import annotations

from collections.abc import Sequence

from tartlet_engine import validation
from tartlet_engine.api import ErrorCode, Forward, ModelInfo
from tartlet_engine.command_error import CommandError
from tartlet_engine.lookahead import LAST_TOKEN, simplified, tree_positions

MAX_TREE_TOKENS = 256
MAX_REQUESTS = 512
MAX_VALUES = 16_384
"""Most likely tokens, and log-probabilities of given tokens, that all requests of a pass ask for together."""
MAX_SAMPLES = 64
MAX_LOGIT_ROWS = 8
"""Rows whose raw logits a pass can be asked for."""


def check_forward(command: Forward, info: ModelInfo, next_position: int, max_batch_tokens: int) -> None:
    """Raise CommandError unless a pass can be computed, and answered within its bounds.

    Args:
        command: what is asked for.
        info: the model's facts.
        next_position: of a token that follows the context's last one.
        max_batch_tokens: of a step, in which a tree must fit.
    """
    num_tokens = len(command.token_ids)
    validation.check_token_ids("token_ids", command.token_ids, info.vocabulary_size)
    for name, values in (("parents", command.parents), ("positions", command.positions)):
        if values is not None and len(values) != num_tokens:
            _refuse(f"{name} must be one for each of {num_tokens:,} tokens, got {len(values):,}")
    for index, parent in enumerate(command.parents or ()):
        if not LAST_TOKEN <= parent < index:
            earlier = f"one of the {index:,} tokens before it, or " if index else ""
            _refuse(f"parents[{index}] must be {earlier}the context's last token")
    parents = simplified(command.parents)
    most = min(MAX_TREE_TOKENS, max_batch_tokens)
    if parents is not None and num_tokens > most:
        _refuse(f"a tree may have {most:,} tokens, got {num_tokens:,}", "Score fewer branches at a time.")
    _check_positions(command, parents, info, next_position)
    _check_requests(command, info)


def _check_positions(command: Forward, parents: Sequence[int] | None, info: ModelInfo, next_position: int) -> None:
    default = tree_positions(next_position, parents, len(command.token_ids))
    positions = default if command.positions is None else list(command.positions)
    if positions != default and "evict" not in info.features:
        message = f"{info.name} attends within sliding windows, in which no position can be left out"
        raise CommandError(ErrorCode.UNSUPPORTED, message)
    for index, position in enumerate(positions):
        parent = index - 1 if parents is None else parents[index]
        least = next_position if parent == LAST_TOKEN else positions[parent] + 1
        if position < least:
            _refuse(f"positions[{index}] must be at least {least:,}, after what the token follows, got {position:,}")
    if (needed := max(positions, default=-1) + 1) > info.context_len:
        message = f"the pass needs {needed:,} positions; the model's context length is {info.context_len:,}"
        raise CommandError(ErrorCode.CONTEXT_OVERFLOW, message, "Truncate the context, or forward fewer tokens.")


def _check_requests(command: Forward, info: ModelInfo) -> None:
    requests = command.requests
    if not requests and not command.token_ids:
        _refuse("a pass without tokens must ask for something")
    _check_count("requests", len(requests), MAX_REQUESTS)
    for index, request in enumerate(requests):
        if not LAST_TOKEN <= request.row < len(command.token_ids):
            tokens = f"one of the pass's {len(command.token_ids):,} tokens, or " if command.token_ids else ""
            _refuse(f"requests[{index}].row must be {tokens}the context's last token")
        if request.top < 0 or request.sample_index < 0:
            _refuse(f"requests[{index}] has a negative number")
        validation.check_token_ids(f"requests[{index}].token_ids", request.token_ids, info.vocabulary_size)
        if request.sampling is not None:
            validation.check_sampling(request.sampling, info.vocabulary_size)
    _check_count("log-probabilities", sum(each.top + len(each.token_ids) for each in requests), MAX_VALUES)
    _check_count("samples", sum(each.sampling is not None for each in requests), MAX_SAMPLES)
    _check_count("rows of raw logits", sum(each.logits for each in requests), MAX_LOGIT_ROWS)


def _check_count(name: str, count: int, allowed: int) -> None:
    if count > allowed:
        _refuse(f"{count:,} {name} are asked for; a pass gives {allowed:,}", "Ask for less, or in several passes.")


def _refuse(message: str, hint: str = "") -> None:
    raise CommandError(ErrorCode.INVALID_ARGUMENT, message, hint)
