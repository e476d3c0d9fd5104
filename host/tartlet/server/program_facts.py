"""What can be told of a program without running it."""

from __future__ import annotations

import ast

from tartlet.errors import ProgramError
from tartlet.languages import python
from tartlet.languages.language import ProgramSource
from tartlet.languages.registry import source_mode
from tartlet.server.requests import Parameter, ProgramFacts
from tartlet.wasm.component_reader import read_externs

_MARKS = ("inferlet", "Controller")


def component_facts(component: bytes, *, is_controller: bool) -> ProgramFacts:
    """The facts of a component that has been checked, and is an inferlet or a controller."""
    imports, _ = read_externs(component)
    names = tuple(sorted(extern.name for extern in imports if extern.kind == "interface"))
    return ProgramFacts(is_inferlet=not is_controller, is_controller=is_controller, imports=names)


def source_facts(source: ProgramSource) -> ProgramFacts:
    """The facts of source that compiles. Of Python, the parameters are those of the function marked with `@inferlet`.

    Parses it, which takes memory and time for source that means harm: call it where that hurts nobody.

    Raises ProgramError for source that has nothing to run, or that Python's own parser gives up on.
    """
    if source.language != python.NAME:
        mode = source_mode(source.language)
        return ProgramFacts(is_inferlet=mode.has_inferlet(source), is_controller=mode.has_controller(source))
    module = _parsed(source)
    if module is None:
        return ProgramFacts(is_inferlet=True, is_controller=False)
    if not _has_entry(source, module):
        raise ProgramError(
            f"{source.main}.py has no function that is marked with @inferlet, and no Controller",
            hint="Write `from tartlet_sdk import inferlet`, and @inferlet above the function to run.",
            code="no_inferlet",
        )
    function = _inferlet_of(module)
    return ProgramFacts(
        is_inferlet=python.has_inferlet(source),
        is_controller=python.has_controller(source),
        parameters=None if function is None else tuple(_parameters(function.args)),
        description=_description(module, function),
    )


def _parsed(source: ProgramSource) -> ast.Module | None:
    """The main module; None: its syntax is of a newer Python than this one, as the runner's is."""
    try:
        return ast.parse(source.files[f"{source.main}.py"])
    except SyntaxError:
        return None
    except (ValueError, RecursionError, MemoryError) as error:
        message = f"the main module cannot be parsed ({type(error).__name__})"
        raise ProgramError(message, hint="It may be nested too deeply.", code="invalid_source") from None


def _has_entry(source: ProgramSource, module: ast.Module) -> bool:
    """Whether the main module uses what marks something to run, or another file might, which it could import."""
    names = set(_MARKS)
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom | ast.Import):
            names |= {alias.asname for alias in node.names if alias.asname and alias.name in _MARKS}
    for node in ast.walk(module):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
        if name in names:
            return True
    others = [text for name, text in source.files.items() if name != f"{source.main}.py"]
    return any(mark in text for mark in _MARKS for text in others)


def _text(node: ast.expr) -> str:
    """An expression as text; if it is nested too deeply for that, or has too long a number, three dots."""
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError):
        return "..."


def _inferlet_of(module: ast.Module) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The inferlet, if the main module defines it; one that is imported is not looked for."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [_text(decorator).rpartition(".")[2] for decorator in node.decorator_list]
            if "inferlet" in names:
                return node
    return None


def _parameters(args: ast.arguments) -> list[Parameter]:
    positional = [*args.posonlyargs, *args.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults))
    pairs = [*zip(positional, [*defaults, *args.defaults], strict=True)]
    pairs += zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return [
        Parameter(
            arg.arg,
            is_required=default is None,
            annotation="" if arg.annotation is None else _text(arg.annotation),
            default="" if default is None else _text(default),
        )
        for arg, default in pairs
    ]


def _description(module: ast.Module, function: ast.FunctionDef | ast.AsyncFunctionDef | None) -> str:
    """The first line of the module's docstring, or else of the function's."""
    text = ast.get_docstring(module) or (ast.get_docstring(function) if function is not None else None) or ""
    return text.partition("\n")[0]
