"""The compiler: its cache, its turns between tenants, its errors."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tartlet_engine.api import ConstraintKind, EngineError, ErrorCode
from tartlet_engine.constraints import compiler as compiler_module
from tartlet_engine.constraints.compiler import ConstraintCompiler
from tartlet_engine.constraints.vocabulary import Vocabulary
from tartlet_engine.tokenizer import ModelTokenizer


@pytest.fixture
def make(tiny_folder: Path) -> Iterator[Callable[..., ConstraintCompiler]]:
    """Make compilers, which are closed."""
    vocabulary = Vocabulary.of(ModelTokenizer(tiny_folder), 512)
    made: list[ConstraintCompiler] = []

    def compiler(**limits: Any) -> ConstraintCompiler:
        made.append(ConstraintCompiler(vocabulary, **limits))
        return made[-1]

    yield compiler
    for each in made:
        each.close()


def compiled(compiler: ConstraintCompiler, tenant: str, kind: ConstraintKind, text: str) -> Any:
    results: queue.Queue[Any] = queue.Queue()
    compiler.submit(tenant, kind, text, results.put)
    return results.get(timeout=60)


def test_the_same_constraint_is_compiled_once_for_a_tenant(make: Callable[..., ConstraintCompiler]) -> None:
    """Kind and text make it the same; another tenant's is another one."""
    compiler = make()
    first = compiled(compiler, "one", ConstraintKind.REGEX, "a+")

    assert compiled(compiler, "one", ConstraintKind.REGEX, "a+") is first
    assert compiled(compiler, "two", ConstraintKind.REGEX, "a+") is not first
    assert isinstance(compiled(compiler, "one", ConstraintKind.LARK, "a+"), EngineError)
    assert compiler.num_compiled == 3


def test_the_cache_forgets_what_was_used_longest_ago(
    make: Callable[..., ConstraintCompiler], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each tenant has room for so many, and so many tenants have room."""
    monkeypatch.setattr(compiler_module, "MOST_CACHED", 2)
    monkeypatch.setattr(compiler_module, "MOST_TENANTS", 2)
    compiler = make()
    first, second = (compiled(compiler, "one", ConstraintKind.REGEX, text) for text in "ab")
    assert compiled(compiler, "one", ConstraintKind.REGEX, "a") is first
    compiled(compiler, "one", ConstraintKind.REGEX, "c")
    assert compiled(compiler, "one", ConstraintKind.REGEX, "a") is first
    assert compiled(compiler, "one", ConstraintKind.REGEX, "b") is not second

    compiled(compiler, "two", ConstraintKind.REGEX, "a")
    compiled(compiler, "three", ConstraintKind.REGEX, "a")
    assert compiled(compiler, "one", ConstraintKind.REGEX, "a") is not first


def test_what_takes_too_long_is_refused_and_remembered(make: Callable[..., ConstraintCompiler]) -> None:
    """A hostile text is a typed error within its time; the second time it is at once, and the next text is compiled."""
    compiler = make(time_limit_s=0.5)
    hostile = '{"type": "integer", "multipleOf": 999983}'
    error = compiled(compiler, "one", ConstraintKind.JSON_SCHEMA, hostile)

    assert error.code == ErrorCode.QUOTA_EXCEEDED
    assert "more than 0.5 s" in error.message
    assert compiled(compiler, "one", ConstraintKind.JSON_SCHEMA, hostile) is error
    assert not isinstance(compiled(compiler, "one", ConstraintKind.REGEX, "a"), EngineError)
    assert compiler.num_compiled == 2


def test_tenants_take_turns(make: Callable[..., ConstraintCompiler]) -> None:
    """Who submits many does not hold up who submits one."""
    compiler = make()
    order: queue.Queue[str] = queue.Queue()
    gate = threading.Event()
    compiler.submit("many", ConstraintKind.REGEX, "first", lambda result: (gate.wait(60), None)[1])
    for number in range(10):
        compiler.submit("many", ConstraintKind.REGEX, f"a{number}", lambda result: order.put("many"))
    compiler.submit("single", ConstraintKind.REGEX, "b", lambda result: order.put("single"))
    gate.set()

    assert "single" in [order.get(timeout=60) for _ in range(2)]


def test_a_tenant_cannot_submit_without_end(
    make: Callable[..., ConstraintCompiler], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits is bounded for each tenant; more is refused at once."""
    monkeypatch.setattr(compiler_module, "MOST_WAITING", 2)
    compiler = make()
    gate, begun = threading.Event(), threading.Event()
    compiler.submit("one", ConstraintKind.REGEX, "first", lambda result: (begun.set(), gate.wait(60), None)[2])
    assert begun.wait(60)
    results: queue.Queue[Any] = queue.Queue()
    for text in "abc":
        compiler.submit("one", ConstraintKind.REGEX, text, results.put)
    refused = results.get(timeout=60)
    compiler.submit("two", ConstraintKind.REGEX, "a", results.put)
    gate.set()

    assert refused.code == ErrorCode.QUOTA_EXCEEDED
    assert not any(isinstance(results.get(timeout=60), EngineError) for _ in range(3))


def test_errors_are_short_however_long_the_text(make: Callable[..., ConstraintCompiler]) -> None:
    """Beginning and end are there, where the kind and the reason are."""
    error = compiled(make(), "one", ConstraintKind.REGEX, "(" * 100_000)

    assert error.code == ErrorCode.INVALID_ARGUMENT
    assert len(error.message) < 1100
    assert error.message.startswith("the regex cannot be used: ")


def test_too_long_a_text_is_refused(make: Callable[..., ConstraintCompiler]) -> None:
    """It comes to no trial."""
    error = compiled(make(), "one", ConstraintKind.REGEX, "a" * 300_000)

    assert error.code == ErrorCode.INVALID_ARGUMENT
    assert "300,000 bytes" in error.message
