"""What an author reads when a program in the sandbox fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tartlet.errors import BuildError, LimitExceededError
from tartlet.limits import Limits

IMPORTS = "import asyncio, json\nfrom tartlet_sdk import *\n"

pytestmark = pytest.mark.runner


def test_a_traceback_has_the_authors_frames(sandbox: Any) -> None:
    """Frames of the runner and the event loop are left out; lines and marks are there."""
    program = """
def divide(a, b):
    return a / b

@inferlet
async def main():
    await asyncio.sleep(0)
    return divide(1, 0)
"""
    assert sandbox.failure(program) == (
        "Traceback (most recent call last):\n"
        '  File "main.py", line 10, in main\n'
        "    return divide(1, 0)\n"
        '  File "main.py", line 5, in divide\n'
        "    return a / b\n"
        "           ~~^~~\n"
        "ZeroDivisionError: division by zero"
    )


def test_an_error_of_the_sdk_ends_at_the_authors_line(sandbox: Any) -> None:
    """It names the call of the SDK and what to do; frames inside the SDK are left out."""
    message = sandbox.failure("@inferlet\ndef main():\n    Model.open('other')")
    lines = message.splitlines()

    assert [line for line in lines if line.startswith("  File")] == ['  File "main.py", line 5, in main']
    assert "tartlet_sdk.errors.NotFound: Model.open: " in message


def test_a_chain_of_errors_is_cut_alike(sandbox: Any) -> None:
    """The cause of an error is shown with the author's frames too."""
    program = """
@inferlet
def main():
    try:
        json.loads("{")
    except ValueError as error:
        raise RuntimeError("no input") from error
"""
    message = sandbox.failure(program)

    assert "JSONDecodeError" in message
    assert "The above exception was the direct cause" in message
    assert message.endswith("RuntimeError: no input")
    assert "tartlet_runner" not in message


def test_a_deadlock_says_who_waits_where(sandbox: Any) -> None:
    """Every task is listed with the author's line."""
    program = """
async def consumer(queue):
    await queue.get()

@inferlet
async def main():
    async with asyncio.TaskGroup() as group:
        group.create_task(consumer(asyncio.Queue()), name="consumer")
"""
    assert sandbox.failure(program) == (
        "tartlet_sdk.errors.Deadlock: deadlock: every task waits, and nothing is left that could wake one\n"
        "  consumer waits at main.py:5 in consumer\n"
        "  main waits at main.py:9 in main"
    )


@pytest.mark.parametrize(
    ("program", "input", "message"),
    [
        ("import sys\n@inferlet\ndef main(): sys.exit('\\ud800')", None, "\\ud800"),
        ("x = 1", None, "no function in main.py is marked with @inferlet"),
        (
            "@inferlet\ndef main(n: int): pass",
            {"n": "5"},
            "argument 'n': expected int, got '5' (str)\nmain takes: n (int)",
        ),
        ("@inferlet\ndef main(n: int = 1): pass", {"m": 5}, "main has no argument 'm'"),
        ("@inferlet\ndef main(): return b'x'", None, "cannot be written as JSON: the result is b'x' (bytes)"),
        ("import sys\n@inferlet\ndef main(): sys.exit('enough')", None, "enough"),
        ("import sys\n@inferlet\ndef main(): sys.exit(3)", None, "the program exited with status 3"),
    ],
)
def test_faults_of_use_are_told_without_a_traceback(sandbox: Any, program: str, input: Any, message: str) -> None:
    """What no line of the program is to blame for is told in a sentence."""
    assert sandbox.failure(program, input).startswith(message)


def test_exiting_with_success_is_a_result(sandbox: Any) -> None:
    """`sys.exit()` ends a run without a result, and without an error."""
    assert sandbox.run("import sys\n@inferlet\ndef main(): sys.exit()") is None


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("open('data.txt')", "The sandbox has no files."),
        ("import socket; socket.create_connection(('1.1.1.1', 80))", "The sandbox has no network."),
        ("import urllib.request; urllib.request.urlopen('http://1.1.1.1')", "The sandbox has no network."),
        ("import threading; threading.Thread(target=print).start()", "The sandbox has no threads. Use asyncio."),
        ("input()", "A run has no standard input."),
    ],
)
def test_what_the_sandbox_lacks_is_explained(sandbox: Any, statement: str, reason: str) -> None:
    """Python's own message tells of a fault, not that it can never work here."""
    assert reason in sandbox.failure(f"@inferlet\ndef main():\n    {statement}")


def test_an_error_of_the_programs_own_gets_no_note(sandbox: Any) -> None:
    """Raised by the author, it says all there is."""
    assert sandbox.failure("@inferlet\ndef main(): raise FileNotFoundError('my own')").endswith("Error: my own")


def test_an_error_can_hold_any_text(sandbox: Any) -> None:
    """What UTF-8 cannot express is escaped, and of what nobody could read, beginning and end are shown."""
    assert sandbox.failure("@inferlet\ndef main(): raise ValueError('\\ud800')").endswith("ValueError: \\ud800")

    message = sandbox.failure("@inferlet\ndef main(): raise ValueError('x' * 1_000_000 + 'end')")
    assert message.startswith("Traceback")
    assert "characters left out]" in message
    assert message.endswith("xend")
    assert len(message) < 20_000


def test_a_forgotten_await_ends_at_the_authors_line(sandbox: Any) -> None:
    """It says what to write."""
    program = """
@inferlet
def main():
    return Model.default().context().generate().text
"""
    last = sandbox.failure(program).splitlines()[-3:]

    assert last[0].strip().startswith("^^^")
    assert last[1].endswith("a Generation has no text, its Draft has")
    assert last[2] == "Write `draft = await generation`."


def test_a_timeout_ends_at_the_authors_line(sandbox: Any) -> None:
    """How asyncio gives up what it waited for is left out."""
    program = """
@inferlet
async def main():
    await asyncio.wait_for(asyncio.sleep(60), 0.01)
"""
    message = sandbox.failure(program)

    assert message.startswith('Traceback (most recent call last):\n  File "main.py", line 6, in main')
    assert message.endswith("TimeoutError")
    assert "Cancelled" not in message


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("ssl", "ssl is part of the standard library, but not available in the sandbox: there are no sockets."),
        ("numpy", "Modules are imported from the program's folder and the standard library. The program has: main.py."),
    ],
)
def test_a_missing_module_is_explained(sandbox: Any, module: str, reason: str) -> None:
    """Whether it is of the standard library or not, the error says why it is not there."""
    message = sandbox.failure(f"import {module}\n")

    assert message.endswith(f"ModuleNotFoundError: No module named {module!r}\n{reason}")


def test_a_syntax_error_is_shown_at_its_place(sandbox: Any) -> None:
    """The file does not load; the error marks the place."""
    with pytest.raises(BuildError) as caught:
        sandbox.run("def f(:\n")

    assert 'File "main.py", line 3' in caught.value.message
    assert "SyntaxError: invalid syntax" in caught.value.message


@pytest.mark.parametrize(
    "fault",
    [
        "def main(): return main()",
        "def main(): raise BaseException('base')",
        "def main(): raise KeyboardInterrupt",
        "class Odd(Exception):\n    def __str__(self): raise ValueError\n@inferlet\ndef main(): raise Odd",
    ],
)
def test_nothing_escapes_as_a_trap(sandbox: Any, fault: str) -> None:
    """Endless recursion and odd exceptions end as an error with text."""
    program = fault if "@inferlet" in fault else f"@inferlet\n{fault}"

    assert sandbox.failure(program)


def test_out_of_memory_is_told_with_a_traceback(sandbox: Any) -> None:
    """A MemoryError is Python's own: it can be caught, and uncaught it shows where it happened."""
    program = IMPORTS + "@inferlet\ndef main():\n    return [bytes(1 << 20) for _ in range(1000)]\n"
    with pytest.raises(LimitExceededError, match="MemoryError") as caught:
        sandbox.host.run(program, limits=Limits(max_memory_bytes=64 << 20))

    assert 'File "main.py", line 5, in main' in str(caught.value)


def test_modules_and_packages_are_imported_from_the_folder(sandbox: Any, tmp_path: Path) -> None:
    """Modules, packages, folders without __init__.py, and a name that shadows the standard library's."""
    (tmp_path / "package" / "inner").mkdir(parents=True)
    (tmp_path / "plain").mkdir()
    (tmp_path / "main.py").write_text(
        "import statistics\nfrom tartlet_sdk import inferlet\nfrom package.inner import leaf\nfrom plain import part\n"
        "@inferlet\ndef main():\n    return [statistics.OWN, leaf.NAME, part.NAME, leaf.__file__]\n"
    )
    (tmp_path / "statistics.py").write_text("OWN = True\n")
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "inner" / "__init__.py").write_text("")
    (tmp_path / "package" / "inner" / "leaf.py").write_text("from .. import inner\nNAME = __name__\n")
    (tmp_path / "plain" / "part.py").write_text("NAME = __name__\n")

    assert sandbox.run(tmp_path) == [True, "package.inner.leaf", "plain.part", "package/inner/leaf.py"]


def test_tartlets_own_modules_cannot_be_shadowed(sandbox: Any, tmp_path: Path) -> None:
    """A file with the name of the SDK is refused by name."""
    (tmp_path / "main.py").write_text("import tartlet_sdk\n")
    (tmp_path / "tartlet_sdk.py").write_text("")

    assert sandbox.failure(tmp_path).startswith("tartlet_sdk.py: tartlet_sdk is a module of Tartlet's own")
