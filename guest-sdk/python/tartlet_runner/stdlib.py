"""Imports the whole standard library when a component is built: a run has no files to import it from."""

from __future__ import annotations

import importlib
import sys

SKIPPED = """antigravity ensurepip idlelib lib2to3 pip pydoc_data site sitecustomize test this tkinter turtle turtledemo
    usercustomize venv"""
SUBMODULES = """asyncio.taskgroups asyncio.timeouts collections.abc concurrent.futures concurrent.futures.thread
    email.message email.mime.multipart email.mime.text email.parser encodings.ascii encodings.cp1252 encodings.idna
    encodings.latin_1 encodings.utf_16 encodings.utf_8_sig html.entities html.parser http.client http.cookies
    importlib.metadata importlib.resources json.decoder json.encoder logging.handlers os.path sqlite3.dbapi2
    string.templatelib unittest.mock urllib.error urllib.parse urllib.request wsgiref.util xml.dom.minidom
    xml.etree.ElementTree xml.sax zoneinfo"""
REASONS = {
    "ctypes": "it loads native code",
    "fcntl": "there are no files",
    "grp": "there are no users",
    "mmap": "there are no files",
    "pwd": "there are no users",
    "pty": "there are no terminals",
    "readline": "there are no terminals",
    "resource": "see tartlet_sdk.run.limits() for the run's limits",
    "ssl": "there are no sockets",
    "syslog": "use logging",
    "termios": "there are no terminals",
    "tty": "there are no terminals",
}


def import_all() -> dict[str, str]:
    """Import what there is; why each of the others is not available, by name."""
    unavailable = {}
    for name in [*sorted(sys.stdlib_module_names), *SUBMODULES.split()]:
        if name.startswith("_") or name in SKIPPED.split():
            continue
        try:
            importlib.import_module(name)
        except BaseException as error:
            unavailable[name] = REASONS.get(name) or f"{type(error).__name__}: {error}"
    return unavailable
