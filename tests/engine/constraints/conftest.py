"""Followers of constraints over the tiny model's vocabulary, without an engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tartlet_engine.api import ConstraintKind
from tartlet_engine.constraints.follower import Follower, GrammarFollower
from tartlet_engine.constraints.grammars import compile_grammar
from tartlet_engine.constraints.vocabulary import TokenIndex, Vocabulary, Words
from tartlet_engine.tokenizer import ModelTokenizer

VOCABULARY_SIZE = 512


@pytest.fixture(scope="session")
def text(tiny_folder: Path) -> ModelTokenizer:
    """The tiny model's tokenizer."""
    return ModelTokenizer(tiny_folder)


@pytest.fixture(scope="session")
def index(text: ModelTokenizer) -> TokenIndex:
    """The tokens of its vocabulary."""
    return TokenIndex(Vocabulary.of(text, VOCABULARY_SIZE))


@pytest.fixture(scope="session")
def follow(text: ModelTokenizer, index: TokenIndex) -> Callable[..., GrammarFollower]:
    """Begin to follow a constraint, by default a regex."""
    tokenizer = Vocabulary.of(text, VOCABULARY_SIZE).make_tokenizer()

    def make(source: str, kind: ConstraintKind = ConstraintKind.REGEX) -> GrammarFollower:
        return GrammarFollower(compile_grammar(tokenizer, kind, source), index)

    return make


def mask_of(follower: Follower, *, all_spellings: bool = False) -> set[int]:
    """The ids that a follower allows next."""
    words = np.full(VOCABULARY_SIZE // 32, 0xFFFFFFFF, dtype=np.uint32)
    follower.fill_mask(words, all_spellings=all_spellings)
    return ids_of(words)


def ids_of(words: Words) -> set[int]:
    """The ids in a set."""
    return set(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist())


def state_of(follower: Follower) -> tuple[object, ...]:
    """All that a follower tells."""
    return (
        mask_of(follower),
        follower.forced(),
        follower.may_end,
        follower.is_complete,
        follower.problem is None,
    )
