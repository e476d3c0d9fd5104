"""Shared fixtures and the Hypothesis profile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

# Triton asks for it when it is imported, which torch does by itself; without a GPU its kernels run in the interpreter.
if not os.path.exists("/dev/nvidiactl"):
    os.environ.setdefault("TRITON_INTERPRET", "1")

# No deadline: a busy machine must not fail a test. In CI the examples are the same every time.
hypothesis.settings.register_profile("tartlet", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("tartlet")


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A TARTLET_HOME that goes with the tests: nothing that they save, pack or publish mixes with what is the user's.

    What is expensive and the same for everybody is shared: kernels, fetched models, runners, Rust's standard library.
    Components that tests compile are kept from one time to the next, in a folder of their own.
    """
    from tartlet_engine.cache_folder import cache_folder

    home = tmp_path_factory.mktemp("home")
    for name in ("javascript", "kernels", "models", "runners", "rust"):
        (home / name).symlink_to(cache_folder(name))
    (home / "components").symlink_to(cache_folder("tests/components"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TARTLET_HOME", str(home))
        yield home


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny Llama: random weights, seed 0."""
    from tartlet_engine.tiny import make_tiny_model

    return make_tiny_model(tmp_path_factory.mktemp("tiny") / "llama")


@pytest.fixture(scope="session")
def real_folder() -> Path:
    """The folder of the small real model, for tests marked `model`."""
    from tartlet import models

    return models.local_path()
