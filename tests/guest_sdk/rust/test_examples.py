"""The examples in Rust: built from source where Rust is there, and two of them as components that are kept.

Whoever changes the SDK or these two examples builds them anew: `tartlet build examples/languages/rust/NAME -o
tests/guest_sdk/rust/fixtures/NAME.wasm`. A test says so if what is kept does something else than what is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tartlet import sync
from tartlet.events import Log, Output
from tartlet.languages.rust import build_component
from tartlet.languages.rust_toolchain import INSTALL, find_toolchain
from tartlet.testing import FakeEngine

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "languages" / "rust"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/Cargo.toml"))
FIXTURES = Path(__file__).parent / "fixtures"
CONTROLLER = "no_digits"
needs_rust = pytest.mark.skipif(find_toolchain() is None, reason=f"Rust for WebAssembly is not installed. {INSTALL}")


def reply(prompt: str) -> str:
    """Play the model."""
    if "Say as JSON" in prompt:
        return '{"stars": 5, "verdict": "great"}'
    if "Which of these" in prompt:
        return "Number 2."
    if "Which will get more opens?" in prompt:
        return " B, as it is urgent. \n"
    if "urgency" in prompt:
        return " Now or never! "
    if "Tell me of tarts" in prompt:
        return "They are flat. They are sweet. They are gone."
    return "One is the 1st of 22 lemon tarts" if "tart" in prompt else "A warm line"


@pytest.fixture(scope="module")
def host() -> Iterator[sync.Host]:
    """A host whose engine plays the model."""
    engine = FakeEngine(reply)
    with sync.Host(engine=engine) as host:
        yield host
    engine.check_integrity()
    assert engine.stats().contexts == 0
    engine.close()


@pytest.fixture(scope="module")
def tiny() -> Iterator[sync.Host]:
    """A host with the tiny model, whose texts mean nothing, but which knows what masks are."""
    with sync.Host("tiny", threads=1, kv_pages=256) as host:
        yield host


def told(host: sync.Host, program: Any, input: Any = None) -> tuple[Any, str, list[str]]:
    """The result of a run, what it prints, and what it logs."""
    run = host.start(program, input, seed=7)
    events = list(run)
    text = "".join(event.text for event in events if isinstance(event, Output))
    return run.result(), text, [event.message for event in events if isinstance(event, Log)]


def steered(host: sync.Host, controller: Path) -> Any:
    """What is generated under the controller."""
    sequence = host.control(controller, "1, 2, 3,", 12, temperature=1.5, seed=7)["sequences"][0]
    return sequence["text"], sequence["tokens"], sequence["finish_reason"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All examples, built."""
    folder = tmp_path_factory.mktemp("rust")
    for name in NAMES:
        build_component(EXAMPLES / name, folder / f"{name}.wasm")
    return {name: folder / f"{name}.wasm" for name in NAMES}


def test_the_kept_component_runs(host: sync.Host) -> None:
    """Two generations side by side, and a third that judges them; its own `println!` is the run's output."""
    result, text, logged = told(host, FIXTURES / "parallel_generation.wasm")

    assert (result, text, logged) == (None, "Judge decision: B, as it is urgent.\n", [])
    assert all(path.stat().st_size < 110_000 for path in FIXTURES.glob("*.wasm"))


def test_the_kept_controller_steers(tiny: sync.Host) -> None:
    """No digit is written, and it stops where its config says."""
    text, num_tokens, reason = steered(tiny, FIXTURES / f"{CONTROLLER}.wasm")

    assert not any(character.isdigit() for character in text)
    assert (num_tokens, reason) == (12, "stopped")


@needs_rust
@pytest.mark.slow
def test_every_example_runs(host: sync.Host, built: dict[str, Path]) -> None:
    """With what they say they do."""
    inputs = {"fork_tree": {"branches": 2, "depth": 2}}
    results = {name: told(host, path, inputs.get(name)) for name, path in built.items() if name != CONTROLLER}

    assert results["parallel_generation"][1] == "Judge decision: B, as it is urgent.\n"
    best, printed, _ = results["best_of_n"]
    assert printed == f"The best of 5: {best}\n"
    assert results["typed_answer"][0] == {"stars": 5, "verdict": "great"}
    assert results["watched_stream"][1].count(".") in (2, 3)
    one, other = results["steered_steps"][0]
    assert one.startswith("One is the")
    assert other.startswith("One is the")


@needs_rust
@pytest.mark.slow
def test_what_is_kept_does_what_is_built(host: sync.Host, tiny: sync.Host, built: dict[str, Path]) -> None:
    """Whoever changes the one builds the other anew."""
    assert steered(tiny, FIXTURES / f"{CONTROLLER}.wasm") == steered(tiny, built[CONTROLLER])
    for kept in FIXTURES.glob("*.wasm"):
        if kept.stem != CONTROLLER:
            assert told(host, kept) == told(host, built[kept.stem]), f"build {kept.stem} anew"
