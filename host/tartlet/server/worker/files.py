"""What a worker leaves of the files of the server's user."""

from __future__ import annotations

from pathlib import Path

from tartlet import paths
from tartlet.server.file_rights import private_paths, restrict_files

READ = ("code", "components", "endpoints", "models", "runners")
"""Folders of TARTLET_HOME that workers read."""


def give_up_files() -> bool:
    """Give up the database, what tenants have uploaded and saved, and to write anywhere. To be called at the start.

    What compile children have made of programs can be read. Returns whether the kernel can do that.
    """
    for name in READ:
        paths.folder(name)  # made later, it could not be read
    readable = [paths.tenants_code_folder()]
    return restrict_files(hidden=private_paths(), readable=readable, writable=[Path("/dev/null")])
