"""What the program side asks about constraints, masks, and matchers: what follows a constraint without a generation."""

from __future__ import annotations

import msgspec

from tartlet_engine.api.values import Combination, ConstraintKind


class CompileConstraint(msgspec.Struct, frozen=True, tag=True):
    """Compiles a constraint for generations of the run. Answered by `Done` or `Failed` with the constraint's id."""

    constraint_id: int
    run_id: int
    kind: ConstraintKind
    text: str


class FreeConstraint(msgspec.Struct, frozen=True, tag=True):
    """Forgets a constraint of the run. Generations that follow it go on; no event follows."""

    constraint_id: int
    run_id: int


class CombineConstraints(msgspec.Struct, frozen=True, tag=True):
    """Makes a constraint of others of the run, which are compiled. Answered by `Done` or `Failed` with its id."""

    constraint_id: int
    run_id: int
    combination: Combination
    part_ids: tuple[int, ...]


class ConstrainToMask(msgspec.Struct, frozen=True, tag=True):
    """Makes a constraint of a mask: any number of its tokens. Answered by `Done` or `Failed` with its id."""

    constraint_id: int
    run_id: int
    mask_id: int


class MakeMask(msgspec.Struct, frozen=True, tag=True):
    """Keeps a set of tokens for the run. Answered by `Failed` with the mask's id if it cannot be."""

    mask_id: int
    run_id: int
    words: bytes  # 4 * ceil(V / 32), little-endian: bit `id % 8` of byte `id // 8`; none from V on


class FreeMask(msgspec.Struct, frozen=True, tag=True):
    """Forgets a mask of the run. What it is attached to goes on with it; no event follows."""

    mask_id: int
    run_id: int


class OpenMatcher(msgspec.Struct, frozen=True, tag=True):
    """Begins to follow a constraint of the run without a generation.

    This and what follows is answered by `MatcherMoved`, or by `Failed`, with the matcher's id. Of moves that follow
    each other at once, only the last may be answered.
    """

    matcher_id: int
    run_id: int
    constraint_id: int


class MoveMatcher(msgspec.Struct, frozen=True, tag=True):
    """Goes back over some tokens, then on by others. What is not allowed is a problem until it goes back over it."""

    matcher_id: int
    run_id: int
    num_back: int
    token_ids: tuple[int, ...]


class ForkMatcher(msgspec.Struct, frozen=True, tag=True):
    """Makes another matcher at the same place. Answered with the child's id."""

    matcher_id: int
    run_id: int
    child_id: int


class FreeMatcher(msgspec.Struct, frozen=True, tag=True):
    """Ends following. No event follows."""

    matcher_id: int
    run_id: int


ConstraintCommand = (
    CompileConstraint
    | CombineConstraints
    | ConstrainToMask
    | FreeConstraint
    | MakeMask
    | FreeMask
    | OpenMatcher
    | MoveMatcher
    | ForkMatcher
    | FreeMatcher
)
