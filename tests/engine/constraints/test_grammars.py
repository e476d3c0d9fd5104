"""Grammars: every kind of constraint, and what each of them refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tartlet_engine.api import ConstraintKind
from tartlet_engine.constraints.grammars import MAX_TEXT_BYTES, GrammarError, check_text, compile_grammar
from tartlet_engine.constraints.vocabulary import Vocabulary
from tartlet_engine.tokenizer import ModelTokenizer

Accepts = Callable[[ConstraintKind, str, str], bool]


@pytest.fixture(scope="module")
def accepts(tiny_folder: Path) -> Accepts:
    """Tell whether a constraint accepts a whole text."""
    text_side = ModelTokenizer(tiny_folder)
    tokenizer = Vocabulary.of(text_side, 512).make_tokenizer()

    def accept(kind: ConstraintKind, text: str, output: str) -> bool:
        matcher = compile_grammar(tokenizer, kind, text)
        token_ids = text_side.encode(output)
        return matcher.try_consume_tokens(token_ids) == len(token_ids) and matcher.is_accepting()

    return accept


@pytest.mark.parametrize(
    ("kind", "text", "yes", "no"),
    [
        ("json-schema", '{"type": "object", "required": ["a"]}', '{"a": 1, "b": [2]}', '{"b": 1}'),
        ("json-schema", '{"type": "array", "items": {"type": "integer"}}', "[1, 2]", "[1,2]"),
        ("json-schema", '{"x-guidance": {"item_separator": ","}, "type": "array"}', "[1,2]", "[1, 2]"),
        ("regex", "[a-c]+[0-9]?", "abcc7", "7"),
        ("lark", 'start: "x" start | "y"', "xxy", "xx"),
        ("choices", json.dumps(["a+", 'say "no"', "日本\n"]), 'say "no"', "a"),
        ("choices", json.dumps(["a+", 'say "no"', "日本\n"]), "日本\n", "aa"),
        ("substring", "the quick brown fox", "quick brown", "quick fox"),
    ],
)
def test_kinds(accepts: Accepts, kind: str, text: str, yes: str, no: str) -> None:
    """Each kind accepts what it describes and nothing else; JSON is written on one line, unless the schema says how."""
    assert accepts(ConstraintKind(kind), text, yes)
    assert not accepts(ConstraintKind(kind), text, no)


def test_tokens(tiny_folder: Path) -> None:
    """A set of tokens allows any number of them, and no other spelling of the same text."""
    tokenizer = Vocabulary.of(ModelTokenizer(tiny_folder), 512).make_tokenizer()
    matcher = compile_grammar(tokenizer, ConstraintKind.TOKENS, "[20, 30, 31]")

    assert matcher.try_consume_tokens([20, 31, 31, 20]) == 4
    assert matcher.is_accepting()
    assert matcher.try_consume_tokens([21]) == 0


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("json-schema", "{", "EOF|expected"),
        ("json-schema", '{"type": "strin"}', "strin"),
        ("json-schema", '{"type": "array", "contains": {"type": "null"}}', "contains"),
        ("json-schema", '{"a":' * 500 + "1" + "}" * 500, "recursion"),
        ("regex", "(ab", "unclosed"),
        ("regex", "(" * 20_000 + "a" + ")" * 20_000, "invalid regex"),
        ("lark", "start: missing", "missing"),
        ("lark", "start: " + "(" * 20_000 + '"a"' + ")" * 20_000, "nested"),
        ("choices", "[]", "0 choices"),
        ("choices", '["a", 1]', "1"),
        ("choices", '{"a": 1}', "no JSON list"),
        ("choices", "[" * 100_000, "no JSON list"),
        ("tokens", "[]", "no tokens"),
        ("tokens", "[1, 512]", "512"),
        ("tokens", "[true]", "True"),
    ],
)
def test_refusals_say_what_is_wrong(accepts: Accepts, kind: str, text: str, message: str) -> None:
    """A text that is no constraint of its kind is refused with the library's message, or with what was expected."""
    with pytest.raises(GrammarError) as caught:
        accepts(ConstraintKind(kind), text, "")

    assert re.search(message, str(caught.value)), str(caught.value)


def test_texts_have_a_greatest_size() -> None:
    """The size counts in bytes."""
    check_text(ConstraintKind.REGEX, "a" * MAX_TEXT_BYTES)
    with pytest.raises(GrammarError, match="262,146 bytes; 262,144 are allowed"):
        check_text(ConstraintKind.REGEX, "é" * (MAX_TEXT_BYTES // 2 + 1))
