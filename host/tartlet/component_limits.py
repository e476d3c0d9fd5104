"""How much may be in a component, so that compiling it costs no more than it is worth; and how much is in one."""

from __future__ import annotations

from dataclasses import dataclass, fields
from types import MappingProxyType

from tartlet.errors import ConfigError, InvalidComponentError

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentCounts:
    """What is in a component, all its core modules and nested components together. See `COUNTED` for what each is."""

    size_bytes: int = 0
    nesting: int = 0
    sections: int = 0
    custom_sections: int = 0
    definition_bytes: int = 0
    core_modules: int = 0
    instances: int = 0
    aliases: int = 0
    lowerings: int = 0
    types: int = 0
    imports: int = 0
    exports: int = 0
    functions: int = 0
    function_bytes: int = 0
    code_bytes: int = 0
    memories: int = 0
    initial_memory_bytes: int = 0
    tables: int = 0
    table_elements: int = 0
    element_segments: int = 0
    globals: int = 0
    data_segments: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentLimits:
    """The most of each count of `ComponentCounts`. The defaults are those for what tenants upload to a server.

    Raises `ConfigError` for a limit that is no integer of at least 0.
    """

    max_size_bytes: int = 16 * _MIB
    max_nesting: int = 16
    max_sections: int = 10_000
    max_custom_sections: int = 1_000
    max_definition_bytes: int = 2 * _MIB
    max_core_modules: int = 100
    max_instances: int = 1_000
    max_aliases: int = 50_000
    max_lowerings: int = 20_000
    max_types: int = 20_000
    max_imports: int = 20_000
    max_exports: int = 20_000
    max_functions: int = 50_000
    max_function_bytes: int = 512 * _KIB
    max_code_bytes: int = 8 * _MIB
    max_memories: int = 16
    max_initial_memory_bytes: int = 256 * _MIB
    max_tables: int = 100
    max_table_elements: int = 100_000
    max_element_segments: int = 10_000
    max_globals: int = 20_000
    max_data_segments: int = 50_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) is not int or value < 0:
                raise ConfigError(f"{field.name} must be a whole number of at least 0, got {value!r}")

    def of(self, count: str) -> int:
        """The limit of a count, named as its field in `ComponentCounts`."""
        limit: int = getattr(self, f"max_{count}")
        return limit


EMBEDDED = ComponentLimits(
    max_size_bytes=_GIB,
    max_nesting=100,
    max_sections=200_000,
    max_custom_sections=100_000,
    max_definition_bytes=64 * _MIB,
    max_core_modules=1_000,
    max_instances=10_000,
    max_aliases=1_000_000,
    max_lowerings=200_000,
    max_types=1_000_000,
    max_imports=200_000,
    max_exports=200_000,
    max_functions=500_000,
    max_function_bytes=8 * _MIB,
    max_code_bytes=256 * _MIB,
    max_memories=1_000,
    max_initial_memory_bytes=64 * _GIB,
    max_tables=1_000,
    max_table_elements=10_000_000,
    max_element_segments=100_000,
    max_globals=1_000_000,
    max_data_segments=100_000,
)
"""For programs that the host's own user loads: what no component that somebody has built comes near."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What a count is called."""

    text: str
    """In a table, and in errors after the number."""
    code: str
    """Of the error if there is too much of it."""


COUNTED = MappingProxyType(
    {
        "size_bytes": Counted("bytes", "component_too_large"),
        "nesting": Counted("components, each inside the other", "nested_too_deep"),
        "sections": Counted("sections", "too_many_sections"),
        "custom_sections": Counted("custom sections", "too_many_sections"),
        "definition_bytes": Counted("bytes of definitions", "too_many_definitions"),
        "core_modules": Counted("core modules", "too_many_core_modules"),
        "instances": Counted("instances that it may make of its parts", "too_many_instances"),
        "aliases": Counted("aliases", "too_many_aliases"),
        "lowerings": Counted("functions lifted or lowered", "too_many_lowerings"),
        "types": Counted("types", "too_many_types"),
        "imports": Counted("imports", "too_many_imports"),
        "exports": Counted("exports", "too_many_exports"),
        "functions": Counted("functions", "too_many_functions"),
        "function_bytes": Counted("bytes in its largest function", "function_too_large"),
        "code_bytes": Counted("bytes of code", "too_much_code"),
        "memories": Counted("memories", "too_many_memories"),
        "initial_memory_bytes": Counted("bytes of memory from the start", "too_much_memory"),
        "tables": Counted("tables", "too_many_tables"),
        "table_elements": Counted("elements in tables", "too_many_table_elements"),
        "element_segments": Counted("element segments", "too_many_element_segments"),
        "globals": Counted("globals", "too_many_globals"),
        "data_segments": Counted("data segments", "too_many_data_segments"),
    }
)
"""By the fields of `ComponentCounts`. Definitions are everything but code, data and custom sections."""

_SOURCE_HINT = "A Python program need not be built: its source is small, and runs the same."


def refusal(count: str, used: int, allowed: int) -> InvalidComponentError:
    """The error for a component with too much of something; `used` is at least so much."""
    hint = f"Build it with less, or let the operator allow more with max_{count}."
    return InvalidComponentError(
        f"the component has {used:,} {COUNTED[count].text}, allowed are {allowed:,}",
        hint=f"{hint} {_SOURCE_HINT}" if count == "size_bytes" else hint,
        code=COUNTED[count].code,
    )
