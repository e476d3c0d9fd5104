"""Imports the author's modules from memory."""

from __future__ import annotations

import base64
import importlib.abc
import importlib.machinery
import importlib.util
import marshal
import sys
from collections.abc import Mapping, Sequence
from types import CodeType, ModuleType
from typing import TypedDict

from tartlet_sdk.errors import ProgramError


class Compiled(TypedDict):
    """A file with its code object, marshalled and in base64."""

    text: str
    code: str


File = str | Compiled

RESERVED = frozenset({"componentize_py_runtime", "componentize_py_types", "tartlet_runner", "tartlet_sdk", "wit_world"})


class Importer(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds and loads modules among a program's files, which are named by their path in the program's folder."""

    def __init__(self) -> None:
        self.files: Mapping[str, File] = {}

    def take(self, files: Mapping[str, File]) -> None:
        """Import from these files from now on. As everywhere in Python, they go before the standard library.

        Raises:
            ProgramError: A module has the name of one of Tartlet's own.
        """
        self.files = files
        for name in files:
            module = name.removesuffix(".py").partition("/")[0]
            if module in RESERVED:
                raise ProgramError(f"{name}: {module} is a module of Tartlet's own", hint="Give the file another name.")
            if module in sys.modules:
                del sys.modules[module]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module `fullname`, if the program has it."""
        stem = fullname.replace(".", "/")
        for file, is_package in ((f"{stem}.py", False), (f"{stem}/__init__.py", True)):
            if file in self.files:
                return importlib.machinery.ModuleSpec(fullname, self, origin=file, is_package=is_package)
        if any(file.startswith(f"{stem}/") for file in self.files):  # a folder without __init__.py
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's file."""
        spec = module.__spec__
        if spec is not None and spec.origin is not None:
            module.__file__ = spec.origin
            exec(self.code(spec.origin), module.__dict__)

    def load_main(self, name: str) -> ModuleType:
        """Import the program's main module: what `import_module` does, without a third of its page faults.

        Raises:
            ProgramError: The program has no module of that name.
        """
        spec = self.find_spec(name)
        if spec is None or spec.origin is None:
            raise ProgramError(f"the program has no module {name!r}")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        self.exec_module(module)
        return module

    def code(self, file: str) -> CodeType:
        """The code of a file: the cached one if there is one, otherwise compiled now. Raises `SyntaxError`."""
        entry = self.files[file]
        if isinstance(entry, str):
            return compile(entry, file, "exec", dont_inherit=True)
        code: CodeType = marshal.loads(base64.b64decode(entry["code"]))
        return code

    def get_source(self, fullname: str) -> str | None:
        """The text of a module; tracebacks show its lines."""
        spec = self.find_spec(fullname)
        return None if spec is None or spec.origin is None else self.text(spec.origin)

    def get_data(self, path: str) -> bytes:
        """The content of any file of the program, for `pkgutil.get_data`."""
        if path not in self.files:
            raise FileNotFoundError(f"the program has no file {path!r}")
        return self.text(path).encode()

    def text(self, file: str) -> str:
        """The text of a file."""
        entry = self.files[file]
        return entry if isinstance(entry, str) else entry["text"]


def compile_files(files: Mapping[str, File]) -> dict[str, File]:
    """The same files, with the code of the modules. Raises `SyntaxError`."""
    compiled = dict(files)
    for file, entry in files.items():
        if isinstance(entry, str) and file.endswith(".py"):
            code = compile(entry, file, "exec", dont_inherit=True)
            compiled[file] = {"text": entry, "code": base64.b64encode(marshal.dumps(code)).decode("ascii")}
    return compiled
