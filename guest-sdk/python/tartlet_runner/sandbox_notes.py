"""What the sandbox lacks, told where a program runs into it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

NO_FILES = "The sandbox has no files. Give data as the run's input, or as a module in the program's folder."
NO_NETWORK = "The sandbox has no network. Fetch before the run, and give what is needed as its input."
NO_THREADS = "The sandbox has no threads. Use asyncio."
NO_STDIN = "A run has no standard input. Take what is needed as an argument of the inferlet."


def add(error: BaseException, files: Collection[str], unavailable: Mapping[str, str]) -> None:
    """Add a note to an error, and to each that it comes from, if it comes of what the sandbox lacks.

    Args:
        error: What the program raised.
        files: Names of the author's files.
        unavailable: Why a module of the standard library is not there, by name.
    """
    for each in origins(error, set()):
        note = explain(each, files, unavailable)
        if note:
            each.add_note(note)


def origins(error: BaseException | None, seen: set[int]) -> Iterator[BaseException]:
    """An error and those that it is shown with: its causes, and the members of a group."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    yield error
    yield from origins(error.__cause__ or (None if error.__suppress_context__ else error.__context__), seen)
    for member in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield from origins(member, seen)


def explain(error: BaseException, files: Collection[str], unavailable: Mapping[str, str]) -> str:
    """What the sandbox lacks; empty if that is not the reason. An OSError without a number is the program's own."""
    match error:
        case ModuleNotFoundError():
            return explain_missing(error.name or "", files, unavailable)
        case FileNotFoundError(errno=int()):
            return NO_FILES
        case PermissionError(errno=int(), filename=None):
            return NO_NETWORK
        case RuntimeError(args=("can't start new thread",)):
            return NO_THREADS
        case EOFError(args=("EOF when reading a line",)):
            return NO_STDIN
    return ""


def explain_missing(name: str, files: Collection[str], unavailable: Mapping[str, str]) -> str:
    """Why a module cannot be imported."""
    top = name.partition(".")[0]
    for known in (name, top):
        if known in unavailable:
            return f"{known} is part of the standard library, but not available in the sandbox: {unavailable[known]}."
    modules = ", ".join(sorted(file for file in files if file.endswith(".py")))
    return f"Modules are imported from the program's folder and the standard library. The program has: {modules}."
