from __future__ import annotations

import pytest

from tartlet.errors import ProgramError
from tartlet.languages.language import ProgramSource
from tartlet.server.program_facts import source_facts
from tartlet.server.requests import Parameter, ProgramFacts

INFERLET = '''"""Tells stories.

At length.
"""
import tartlet_sdk

@tartlet_sdk.inferlet
async def main(topic: str, n: int = 3, *, tone: str | None = None, length) -> str: ...
'''


def test_an_inferlet_s_parameters_stand_in_its_source() -> None:
    """By name, with what they are said to be; and what the program says of itself."""
    facts = source_facts(ProgramSource("python", "main", {"main.py": INFERLET}))

    assert facts == ProgramFacts(
        is_inferlet=True,
        is_controller=False,
        parameters=(
            Parameter("topic", True, "str"),
            Parameter("n", False, "int", "3"),
            Parameter("tone", False, "str | None", "None"),
            Parameter("length", True),
        ),
        description="Tells stories.",
    )


def test_a_controller_has_none() -> None:
    """And the class's docstring is not looked for."""
    facts = source_facts(
        ProgramSource("python", "c", {"c.py": "from tartlet_sdk import Controller\nclass C(Controller): ...\n"})
    )

    assert facts == ProgramFacts(is_inferlet=False, is_controller=True)


def test_an_inferlet_may_be_imported() -> None:
    """Then its parameters cannot be told."""
    files = {"main.py": "from other import inferlet_of_mine\n", "other.py": INFERLET}

    assert source_facts(ProgramSource("python", "main", files)).parameters is None


@pytest.mark.parametrize("default", ["- " * 500 + "1", "0x" + "f" * 60_000])
def test_a_default_that_cannot_be_written_down(default: str) -> None:
    """Nested too deeply or too long a number: the rest is told all the same."""
    facts = source_facts(ProgramSource("python", "main", {"main.py": f"@inferlet\ndef main(n={default}, m=1): pass\n"}))

    assert facts.parameters is not None
    assert [(each.name, each.default) for each in facts.parameters] == [("n", "..."), ("m", "1")]


def test_a_module_that_the_parser_gives_up_on() -> None:
    """It is the program's fault, and said so."""
    with pytest.raises(ProgramError, match="cannot be parsed") as error:
        source_facts(ProgramSource("python", "main", {"main.py": "x = " + "- " * 30_000 + "1\n"}))
    assert error.value.code == "invalid_source"


def test_syntax_that_only_the_runner_knows() -> None:
    """It is newer than this Python: the program is taken for an inferlet, of which no more is known."""
    facts = source_facts(ProgramSource("python", "main", {"main.py": "newer syntax\n"}))

    assert facts == ProgramFacts(is_inferlet=True, is_controller=False)


@pytest.mark.parametrize(
    ("files", "has_entry"),
    [
        ({"main.py": "def main(): pass\n"}, False),
        ({"main.py": "from tartlet_sdk import inferlet\ndef main(): pass\n"}, False),
        ({"main.py": "# @inferlet\nx = 'Controller'\n"}, False),
        ({"main.py": "import other\n", "other.py": "x = 1\n"}, False),
        ({"main.py": "import tartlet_sdk as t\nif True:\n    @t.inferlet()\n    def main(): pass\n"}, True),
        ({"main.py": "from tartlet_sdk import inferlet as mark\n@mark\ndef main(): pass\n"}, True),
        ({"main.py": "from tartlet_sdk import *\ndef f(): pass\nmain = inferlet(f)\n"}, True),
        ({"main.py": "from tartlet_sdk import Controller as Base\nclass C(Base): pass\n"}, True),
        ({"main.py": "from other import main\n", "other.py": "@inferlet\ndef main(): pass\n"}, True),
    ],
)
def test_source_with_nothing_to_run(files: dict[str, str], has_entry: bool) -> None:
    """It is refused, if that can be told: however something is marked, or if another file may have it, it is not."""
    source = ProgramSource("python", "main", files)
    if has_entry:
        assert source_facts(source).is_inferlet
        return
    with pytest.raises(ProgramError, match="no function that is marked with @inferlet") as error:
        source_facts(source)
    assert error.value.code == "no_inferlet"
