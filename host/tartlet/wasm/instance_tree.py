"""How many instances a component may come to, given how its components are nested.

Wasmtime writes all of them out when it compiles, and each level of nesting can multiply what is inside it: ten levels
of ten instances fit in a kilobyte, and would be ten thousand million.
"""

from __future__ import annotations

from dataclasses import dataclass

_COUNTLESS = 10**15


@dataclass(slots=True)
class InstanceNode:
    """A component, and what it instantiates."""

    number: int
    outer: InstanceNode | None
    depth: int
    num_core_instances: int = 0
    num_instances: int = 0  # of components
    is_given_components: bool = False
    """It also knows components that are not nested in it: imported ones, and those of outer components."""


class InstanceTree:
    """A component and all that are nested in it, outer ones first."""

    def __init__(self) -> None:
        self._nodes: list[InstanceNode] = []

    def add(self, outer: int | None) -> InstanceNode:
        """Add a component that is nested in another, given by its number, or in none."""
        outer_node = None if outer is None else self._nodes[outer]
        node = InstanceNode(len(self._nodes), outer_node, 0 if outer_node is None else outer_node.depth + 1)
        self._nodes.append(node)
        return node

    def most_instances(self) -> int:
        """A bound on the instances, core and other: exact if each component instantiates only its largest one."""
        if any(node.is_given_components for node in self._nodes):
            return self._most_in_any_order()
        largest_inside = [0] * len(self._nodes)
        most = 0
        for node in reversed(self._nodes):
            most = node.num_core_instances + node.num_instances * (1 + largest_inside[node.number])
            most = min(most, _COUNTLESS)
            if node.outer is not None:
                outer = node.outer.number
                largest_inside[outer] = max(largest_inside[outer], most)
        return most

    def _most_in_any_order(self) -> int:
        """The bound if any component may instantiate any other: none can instantiate itself."""
        times, total = 1, 0
        for node in self._nodes:
            total += node.num_core_instances + node.num_instances
            times = min(times * max(1, node.num_instances), _COUNTLESS)
        return min(total * times, _COUNTLESS)
