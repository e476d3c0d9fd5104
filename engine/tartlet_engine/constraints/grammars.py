"""From a constraint's kind and text to a grammar of llguidance, within limits. Used by the engine and by its trials."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tartlet_engine.api import ConstraintKind

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer
    from llguidance._lib import JsonCompileOptions

MAX_TEXT_BYTES = 256 << 10
MAX_CHOICES = 4096

# One line, as models and Python's json write it. A schema may say otherwise in its own "x-guidance" object.
_JSON_STYLE: JsonCompileOptions = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}

# The library's limits. Fuel and items bound a single mask to some 20 ms; states bound the memory of a generation.
_MAX_LEXER_STATES = 25_000
_MAX_GRAMMAR_SIZE = 200_000


class GrammarError(Exception):
    """A constraint that cannot be: the library's message, or a limit."""


def compile_grammar(tokenizer: LLTokenizer, kind: ConstraintKind, text: str) -> LLMatcher:
    """Compile a constraint. Raises GrammarError with the library's message.

    Cost: usually 1 ms, but some texts take minutes or gigabytes: `trials` finds out which.
    """
    from llguidance import LLMatcher, LLParserLimits  # only when a constraint is asked for

    limits = LLParserLimits(
        max_lexer_states=_MAX_LEXER_STATES, max_grammar_size=_MAX_GRAMMAR_SIZE, verbose_errors=False
    )
    matcher = LLMatcher(tokenizer, _grammar(kind, text, tokenizer.vocab_size), log_level=0, limits=limits)
    if matcher.is_error():
        raise GrammarError(message_of(matcher))
    return matcher


def message_of(matcher: LLMatcher) -> str:
    """Return the library's message of a matcher that is in error, or why it has stopped."""
    message = matcher.get_error().replace("<non-verbose/>", "").strip()
    return message or str(matcher.stop_reason())


def check_text(kind: ConstraintKind, text: str) -> None:
    """Raise GrammarError for a text that is longer than allowed."""
    num_bytes = len(text.encode())
    if num_bytes > MAX_TEXT_BYTES:
        raise GrammarError(f"the {kind.value} has {num_bytes:,} bytes; {MAX_TEXT_BYTES:,} are allowed")


def _grammar(kind: ConstraintKind, text: str, vocabulary_size: int) -> str:
    from llguidance import LLMatcher

    match kind:
        case ConstraintKind.JSON_SCHEMA:
            try:
                return LLMatcher.grammar_from_json_schema(text, defaults=_JSON_STYLE)
            except ValueError as error:
                raise GrammarError(str(error)) from error
        case ConstraintKind.REGEX:
            return LLMatcher.grammar_from_regex(text)
        case ConstraintKind.LARK:
            return LLMatcher.grammar_from_lark(text)
        case ConstraintKind.CHOICES:
            # One terminal, which becomes one automaton: of rules, 2,000 alternatives are the library's limit.
            return LLMatcher.grammar_from_lark("start: CHOICE\nCHOICE: " + " | ".join(map(json.dumps, _choices(text))))
        case ConstraintKind.SUBSTRING:
            words = json.dumps({"substring_words": text})
            return LLMatcher.grammar_from_lark(f"start: part\npart: %regex {words}")
        case ConstraintKind.TOKENS:
            ids = ",".join(map(str, _token_ids(text, vocabulary_size)))
            return LLMatcher.grammar_from_lark(f"start: each*\neach: <[{ids}]>")


def _choices(text: str) -> list[str]:
    choices = _list(text)
    if not choices or len(choices) > MAX_CHOICES:
        raise GrammarError(f"there are {len(choices):,} choices; there must be 1 to {MAX_CHOICES:,}")
    return [_choice(choice) for choice in choices]


def _choice(choice: object) -> str:
    if not (isinstance(choice, str) and choice):
        raise GrammarError(f"a choice must be a text that is not empty, got {choice!r}")
    return choice


def _token_ids(text: str, vocabulary_size: int) -> list[int]:
    token_ids = _list(text)
    if not token_ids:
        raise GrammarError("there are no tokens to choose from")
    return sorted({_token_id(token_id, vocabulary_size) for token_id in token_ids})


def _token_id(token_id: object, vocabulary_size: int) -> int:
    if not isinstance(token_id, int) or isinstance(token_id, bool) or not 0 <= token_id < vocabulary_size:
        raise GrammarError(f"a token must be a whole number from 0 to {vocabulary_size - 1}, got {token_id!r}")
    return token_id


def _list(text: str) -> list[object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"it is no JSON list: {error}") from error
    if not isinstance(value, list):
        raise GrammarError("it is no JSON list")
    return value
