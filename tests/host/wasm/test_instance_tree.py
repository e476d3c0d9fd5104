"""Bounds on the instances that nested components come to."""

from __future__ import annotations

from tartlet.wasm.instance_tree import InstanceTree


def test_a_component_s_own() -> None:
    """Core instances, and instances of components that have none themselves."""
    tree = InstanceTree()
    root = tree.add(None)
    root.num_core_instances = 5
    root.num_instances = 2
    assert (root.depth, tree.add(root.number).depth) == (0, 1)

    assert tree.most_instances() == 7


def test_levels_multiply() -> None:
    """Each level may take its largest part as often as it takes any."""
    tree = InstanceTree()
    root = tree.add(None)
    root.num_instances = 3
    for size in (2, 10):
        inside = tree.add(root.number)
        inside.num_core_instances = size

    assert tree.most_instances() == 3 + 3 * 10


def test_parts_side_by_side_do_not_multiply() -> None:
    """Unless a component is given others than those nested in it: then any may be in any."""
    tree = InstanceTree()
    root = tree.add(None)
    root.num_instances = 2
    children = [tree.add(root.number) for _ in range(3)]
    for child in children:
        child.num_core_instances = 1
        child.num_instances = 4
    assert tree.most_instances() == 2 + 2 * 5

    children[2].is_given_components = True
    assert tree.most_instances() == (2 + 3 * 5) * (2 * 4**3)


def test_numbers_stay_small() -> None:
    """However deep it goes, so that they can be counted and printed."""
    tree = InstanceTree()
    node = tree.add(None)
    for _ in range(3000):
        node.num_instances = 1000
        node = tree.add(node.number)

    assert tree.most_instances() == 10**15
    node.is_given_components = True
    assert tree.most_instances() == 10**15
