"""Checks every number that comes in with a command, before anything depends on it.

The host checks what programs pass; the engine checks again, because a wrong id or a NaN would otherwise fail a whole
step, or make it wrong for everybody in it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from tartlet_engine.api import (
    PLAIN_ANSWER,
    ErrorCode,
    Generate,
    ModelInfo,
    Sampling,
    SaveContext,
    Speculation,
    Splice,
    StepAnswer,
    Stop,
)
from tartlet_engine.command_error import CommandError
from tartlet_engine.prefix_index import OPERATOR

MAX_LOGPROBS = 20
MAX_STOP_STRINGS = 16
MAX_STOP_STRING_LEN = 1024  # characters
MAX_STOP_TOKENS = 1024
MAX_LOGIT_BIASES = 1024
MAX_PENALTY = 100.0
MIN_REPETITION_PENALTY = 0.001  # not allowed itself; what is divided by it stays finite
MAX_BIAS = 1000.0
MAX_TEMPERATURE = 100.0
MAX_DRAFT = 32  # tokens
MAX_NGRAM = 8
MAX_EXPECTED_TOKENS = 16_384
MAX_ALLOWED = 4096  # tokens of a list; masks have any number
MAX_SPLICES = 64
MAX_SPLICE_CONDITIONS = 4096  # tokens, of all splices of a step together
MAX_BOOSTS = 4
MAX_TTL_MS = 10 * 365 * 24 * 3600 * 1000
MAX_TENANT_LEN = 256  # characters
MAX_HOST_STATE = 1 << 20  # characters
SAVED_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}", re.ASCII)


def check_token_ids(field: str, token_ids: Sequence[int], vocabulary_size: int) -> None:
    """Raise CommandError unless all ids are in the vocabulary. Cost: one pass in C."""
    if token_ids and (min(token_ids) < 0 or max(token_ids) >= vocabulary_size):
        position = next(i for i, token_id in enumerate(token_ids) if not 0 <= token_id < vocabulary_size)
        _refuse(f"{field}[{position}]", token_ids[position], f"0 to {vocabulary_size - 1}")


def check_adapter(name: str | None, info: ModelInfo) -> None:
    """Raise CommandError `not-found`, with the names that there are, unless the model has the adapter; None is none."""
    if name is not None and name not in info.adapters:
        hint = f"There are: {', '.join(info.adapters)}." if info.adapters else "It was started without adapters."
        raise CommandError(ErrorCode.NOT_FOUND, f"{info.name} has no adapter {name[:200]!r}", hint)


def check_tenant(name: str) -> None:
    """Raise CommandError `invalid-argument` unless a tenant can have the name: encodable text, not the operator's."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        message = f"tenant must be Unicode text, got {name[:200]!r}"
        raise CommandError(ErrorCode.INVALID_ARGUMENT, message) from error
    if name == OPERATOR:
        raise CommandError(ErrorCode.INVALID_ARGUMENT, "tenant must not be empty")
    if len(name) > MAX_TENANT_LEN:
        _refuse("tenant", f"{len(name):,} characters", f"at most {MAX_TENANT_LEN} characters")


def check_saved_name(name: str) -> None:
    """Raise CommandError `invalid-argument` unless a saved context can have the name."""
    if SAVED_NAME.fullmatch(name) is None:
        message = f"a saved context cannot be named {name[:200]!r}"
        hint = "A name has 1 to 128 letters a-z A-Z, digits and . _ : / -, and begins with a letter or digit."
        raise CommandError(ErrorCode.INVALID_ARGUMENT, message, hint)


def check_save(command: SaveContext) -> None:
    """Raise CommandError `invalid-argument` unless name, time to live and the host's state can be kept."""
    check_saved_name(command.name)
    if command.ttl_ms is not None and not 1 <= command.ttl_ms <= MAX_TTL_MS:
        message = f"the time to live must be 1 to {MAX_TTL_MS:,} ms, got {command.ttl_ms:,}"
        raise CommandError(ErrorCode.INVALID_ARGUMENT, message)
    if len(command.host_state) > MAX_HOST_STATE:
        message = f"host_state has {len(command.host_state):,} characters; at most {MAX_HOST_STATE:,} can be kept"
        raise CommandError(ErrorCode.INVALID_ARGUMENT, message)


def check_generate(command: Generate, vocabulary_size: int) -> None:
    """Raise CommandError `invalid-argument`, with field, value and range, unless everything can be carried out."""
    check_sampling(command.sampling, vocabulary_size)
    _check_stop(command.stop, vocabulary_size)
    if command.num_logprobs is not None and not 0 <= command.num_logprobs <= MAX_LOGPROBS:
        _refuse("num_logprobs", command.num_logprobs, f"0 to {MAX_LOGPROBS}")
    if command.speculation is not None:
        if command.stepped:
            _refuse("speculation", "one", "left out of a stepped generation")
        _check_speculation(command.speculation, vocabulary_size)


def check_step_answer(answer: StepAnswer, info: ModelInfo) -> None:
    """Raise CommandError `invalid-argument`, with field, value and range, unless the model can carry it out.

    Whether there is as much to take back, and room for what is added, is not checked here.
    """
    if answer == PLAIN_ANSWER:
        return
    if answer.temperature is not None:
        _check_number("temperature", answer.temperature, 0.0, MAX_TEMPERATURE)
    if answer.allow is not None:
        if not 1 <= len(answer.allow) <= MAX_ALLOWED:
            hint = "Make a mask of more." if answer.allow else ""
            _refuse("allow", f"{len(answer.allow):,} ids", f"1 to {MAX_ALLOWED:,} ids", hint)
        check_token_ids("allow", answer.allow, info.vocabulary_size)
    _check_biases("bias", answer.bias, info.vocabulary_size)
    if len(answer.boosts) > MAX_BOOSTS:
        _refuse("boosts", f"{len(answer.boosts)} masks", f"at most {MAX_BOOSTS}")
    for position, (_, boost) in enumerate(answer.boosts):
        _check_number(f"boosts[{position}]", boost, -MAX_BIAS, MAX_BIAS)
    if len(answer.splices) > MAX_SPLICES:
        _refuse("splices", f"{len(answer.splices)} splices", f"at most {MAX_SPLICES}")
    if not answer.sample and (len(answer.splices) > 1 or any(splice.when_sampled for splice in answer.splices)):
        _refuse("splices", f"{len(answer.splices)} splices", "one without a condition, or none, if nothing is sampled")
    _check_total("when_sampled", [splice.when_sampled for splice in answer.splices], MAX_SPLICE_CONDITIONS)
    _check_total("token_ids", [splice.token_ids for splice in answer.splices], info.context_len)
    for position, splice in enumerate(answer.splices):
        _check_splice(f"splices[{position}]", splice, info)


def _check_total(field: str, lists: Sequence[Sequence[int]], allowed: int) -> None:
    """Raise CommandError unless the splices of a step have at most so many tokens together: an answer takes little."""
    if (total := sum(map(len, lists))) > allowed:
        _refuse(f"{field} of all splices", f"{total:,} ids", f"at most {allowed:,} ids together")


def _check_splice(field: str, splice: Splice, info: ModelInfo) -> None:
    if len(splice.when_sampled) > MAX_STOP_TOKENS:
        _refuse(f"{field}.when_sampled", f"{len(splice.when_sampled)} ids", f"at most {MAX_STOP_TOKENS} ids")
    check_token_ids(f"{field}.when_sampled", splice.when_sampled, info.vocabulary_size)
    if splice.backtrack < 0:
        _refuse(f"{field}.backtrack", splice.backtrack, "0 or greater")
    check_token_ids(f"{field}.token_ids", splice.token_ids, info.vocabulary_size)


def check_sampling(sampling: Sampling, vocabulary_size: int) -> None:
    """Raise CommandError `invalid-argument`, with field, value and range, unless a token can be sampled so."""
    _check_number("sampling.temperature", sampling.temperature, 0.0, MAX_TEMPERATURE)
    _check_number("sampling.min_p", sampling.min_p, 0.0, 1.0)
    _check_number("sampling.presence_penalty", sampling.presence_penalty, -MAX_PENALTY, MAX_PENALTY)
    _check_number("sampling.frequency_penalty", sampling.frequency_penalty, -MAX_PENALTY, MAX_PENALTY)
    if not 0.0 < sampling.top_p <= 1.0:
        _refuse("sampling.top_p", sampling.top_p, "greater than 0, up to 1")
    if not MIN_REPETITION_PENALTY < sampling.repetition_penalty <= MAX_PENALTY:
        allowed = f"greater than {MIN_REPETITION_PENALTY:g}, up to {MAX_PENALTY:g}"
        _refuse("sampling.repetition_penalty", sampling.repetition_penalty, allowed)
    if sampling.top_k < 0:
        _refuse("sampling.top_k", sampling.top_k, "0 or greater")
    if not 0 <= sampling.seed < 2**64:
        _refuse("sampling.seed", sampling.seed, "0 to 2**64 - 1")
    _check_biases("sampling.logit_bias", sampling.logit_bias, vocabulary_size)


def _check_stop(stop: Stop, vocabulary_size: int) -> None:
    if stop.max_tokens is not None and stop.max_tokens < 1:
        _refuse("stop.max_tokens", stop.max_tokens, "1 or greater")
    if len(stop.token_ids) > MAX_STOP_TOKENS:
        _refuse("stop.token_ids", f"{len(stop.token_ids)} ids", f"at most {MAX_STOP_TOKENS} ids")
    check_token_ids("stop.token_ids", stop.token_ids, vocabulary_size)
    if len(stop.strings) > MAX_STOP_STRINGS:
        _refuse("stop.strings", f"{len(stop.strings)} strings", f"at most {MAX_STOP_STRINGS} strings")
    for position, string in enumerate(stop.strings):
        if not 1 <= len(string) <= MAX_STOP_STRING_LEN:
            allowed = f"1 to {MAX_STOP_STRING_LEN} characters"
            _refuse(f"stop.strings[{position}]", f"{len(string)} characters", allowed)


def _check_speculation(speculation: Speculation, vocabulary_size: int) -> None:
    if not 1 <= speculation.max_draft <= MAX_DRAFT:
        _refuse("speculation.max_draft", speculation.max_draft, f"1 to {MAX_DRAFT}")
    if not 1 <= speculation.ngram <= MAX_NGRAM:
        _refuse("speculation.ngram", speculation.ngram, f"1 to {MAX_NGRAM}")
    expected = speculation.expected_token_ids
    if len(expected) > MAX_EXPECTED_TOKENS:
        _refuse("speculation.expected_token_ids", f"{len(expected):,} ids", f"at most {MAX_EXPECTED_TOKENS:,} ids")
    check_token_ids("speculation.expected_token_ids", expected, vocabulary_size)


def _check_biases(field: str, biases: Sequence[tuple[int, float]], vocabulary_size: int) -> None:
    if len(biases) > MAX_LOGIT_BIASES:
        _refuse(field, f"{len(biases)} entries", f"at most {MAX_LOGIT_BIASES} entries")
    check_token_ids(field, [token_id for token_id, _ in biases], vocabulary_size)
    for position, (_, bias) in enumerate(biases):
        _check_number(f"{field}[{position}]", bias, -MAX_BIAS, MAX_BIAS)


def _check_number(field: str, value: float, least: float, greatest: float) -> None:
    if not (math.isfinite(value) and least <= value <= greatest):
        _refuse(field, value, f"{least:g} to {greatest:g}")


def _refuse(field: str, value: object, allowed: str, hint: str = "") -> None:
    raise CommandError(ErrorCode.INVALID_ARGUMENT, f"{field} must be {allowed}, got {value}", hint)
