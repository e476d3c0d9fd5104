"""Programs that are built before they run: the components are kept in `TARTLET_HOME`, never beside the source."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tartlet import paths
from tartlet.disk_cache import shrink
from tartlet.languages.language import Language
from tartlet.progress import Progress

MAX_BYTES = 150 * 10**6


def built_component(source: Path, language: Language, progress: Progress) -> Path:
    """Build the program at `source`, a file or a folder, and return where the component lies.

    It is built each time: the compilers know better than we do what has changed, and are quick if nothing has.

    Raises:
        BuildError: As `Language.build_component`.
    """
    place = source.resolve()
    digest = hashlib.sha256(bytes(place)).hexdigest()
    output = paths.built_folder() / digest[:16] / f"{place.stem}.wasm"
    output.parent.mkdir(exist_ok=True)
    language.build_component(source, output, progress)
    shrink(paths.built_folder(), "*/*.wasm", MAX_BYTES)
    return output
