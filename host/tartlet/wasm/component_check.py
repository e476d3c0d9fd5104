"""Checks, before compiling, that a component imports nothing that is not offered, and exports what is required."""

from __future__ import annotations

from collections.abc import Collection

from tartlet.errors import InvalidComponentError
from tartlet.wasm.component_reader import Extern, read_externs

_MAX_NAMES, _MAX_NAME_CHARS, _MAX_DIGITS = 20, 100, 9

_WASI_PACKAGES = ("cli", "clocks", "filesystem", "io", "random", "sockets")
_WASI_VERSION = (0, 2)

# What components of other worlds export.
_OTHER_WORLDS = {
    "wasi:cli/run": "a command-line program",
    "wasi:http/incoming-handler": "an HTTP handler",
}


def check_component(data: bytes, offered: Collection[str], required_exports: Collection[str]) -> None:
    """Refuse a component that cannot run here, before it costs anything.

    Args:
        data: the component.
        offered: interfaces that it may import besides WASI, with their versions: `tartlet:inferlet/events@0.1.0`.
        required_exports: functions that it must export.

    Raises:
        InvalidComponentError: `not_a_component`, `truncated`, `unknown_import`, `wrong_version`, `wrong_world`,
            `missing_export`.
    """
    imports, exports = read_externs(data)
    for extern in imports:
        _check_import(extern, offered)
    _check_exports(exports, required_exports)


def _check_import(extern: Extern, offered: Collection[str]) -> None:
    if extern.name in offered or extern.kind == "type":
        return
    if extern.kind != "interface":
        raise _unknown_import(extern, offered)
    interface, _, version = extern.name.partition("@")
    package = interface.partition("/")[0]
    if package.startswith("wasi:"):
        _check_wasi_import(extern, package, version, offered)
        return
    for other in offered:
        other_interface, _, other_version = other.partition("@")
        if other_interface == interface:
            if not _is_served_by(version, other_version):
                raise InvalidComponentError(
                    f"built for {package}@{_shown(version) or '(no version)'}, "
                    f"this host offers {package}@{other_version}",
                    hint="Build it again with an SDK of the host's version.",
                    code="wrong_version",
                )
            return
    raise _unknown_import(extern, offered)


def _check_wasi_import(extern: Extern, package: str, version: str, offered: Collection[str]) -> None:
    if package.removeprefix("wasi:") not in _WASI_PACKAGES:
        raise _unknown_import(extern, offered)
    if _numbers(version)[:2] != _WASI_VERSION:
        raise InvalidComponentError(
            f"built for {package}@{_shown(version)}, this host offers 0.2", code="wrong_version"
        )


def _unknown_import(extern: Extern, offered: Collection[str]) -> InvalidComponentError:
    return InvalidComponentError(
        f"the component imports the {extern.kind} {_shown(extern.name)}, which this host does not offer",
        hint=f"Offered are: {', '.join(sorted(offered))}; and of WASI 0.2: {', '.join(_WASI_PACKAGES)}.",
        code="unknown_import",
    )


def _check_exports(exports: tuple[Extern, ...], required: Collection[str]) -> None:
    functions = {extern.name for extern in exports if extern.kind == "function"}
    missing = [name for name in required if name not in functions]
    if not missing:
        return
    for extern in exports:
        world = _OTHER_WORLDS.get(extern.name.partition("@")[0])
        if world is not None:
            raise InvalidComponentError(
                f"the component is {world} (it exports {_shown(extern.name)}), not an inferlet",
                hint=f"An inferlet exports the function {', '.join(missing)}.",
                code="wrong_world",
            )
    found = [f"the {extern.kind} {_shown(extern.name)}" for extern in exports[:_MAX_NAMES]]
    if len(exports) > _MAX_NAMES:
        found.append(f"{len(exports) - _MAX_NAMES:,} more")
    raise InvalidComponentError(
        f"the component does not export the function {', '.join(missing)}",
        hint=f"It exports {', '.join(found) or 'nothing'}.",
        code="missing_export",
    )


def _is_served_by(wanted: str, offered: str) -> bool:
    """Whether a host of version `offered` serves a component built for `wanted`: additions only, within 0.MINOR."""
    wanted_numbers, offered_numbers = _numbers(wanted), _numbers(offered)
    track = 2 if offered_numbers[0] == 0 else 1  # below 1.0 the minor version is the one that breaks
    return wanted_numbers[:track] == offered_numbers[:track] and wanted_numbers <= offered_numbers


def _numbers(version: str) -> tuple[int, ...]:
    """Read `0.1.0` as numbers; anything else is no version that anyone offers."""
    parts = version.split(".", 3)
    is_version = all(part.isdecimal() and len(part) <= _MAX_DIGITS for part in parts)
    return tuple(int(part) for part in parts) if is_version else (-1,)


def _shown(name: str) -> str:
    """A name that a component may have chosen to do harm, for an error: short, and nothing in it but what is seen."""
    short = name if len(name) <= _MAX_NAME_CHARS else f"{name[:_MAX_NAME_CHARS]}..."
    return short if short.isprintable() else ascii(short)[1:-1]
