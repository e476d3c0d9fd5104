"""Which page holds the keys and values of which tokens: a tree of full pages, found by a chain of hashes. Pure Python.

The key of a page is SHA-256(key of the page before it, its token ids), so it stands for all tokens from the start of
the sequence on. The first page's predecessor is a root, which names all that keys and values depend on besides the
tokens, and the tenant: what has another root is never found.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

OPERATOR = ""  # in place of a tenant: what the operator has published


@dataclass(frozen=True, slots=True)
class PrefixRoot:
    """What pages must have in common, besides the tokens, to be shared."""

    model: str
    tenant: str  # or OPERATOR, whose pages all tenants find
    adapter: str | None = None  # LoRA weights that they are computed with

    def key(self) -> bytes:
        """Return the key that precedes the first page's. No two roots have the same."""
        digest = hashlib.sha256()
        for name in (self.model, self.tenant, self.adapter):
            encoded = b"" if name is None else name.encode("utf-8", "surrogatepass")
            digest.update(b"%d %d " % (name is not None, len(encoded)) + encoded)
        return digest.digest()


def page_key(previous_key: bytes, token_ids: Sequence[int]) -> bytes:
    """Return the key of a page that holds these tokens, after the pages that `previous_key` stands for."""
    return hashlib.sha256(previous_key + array("Q", token_ids).tobytes()).digest()


@dataclass(slots=True, eq=False)
class _Node:
    key: bytes
    page_id: int
    parent: _Node | None
    children: dict[int, _Node] = field(default_factory=dict)  # by page


class PrefixIndex:
    """Pages by key. A page has at most one key, a key at most one page. Not thread-safe."""

    def __init__(self) -> None:
        """Start with no page."""
        self._by_key: dict[bytes, _Node] = {}
        self._by_page: dict[int, _Node] = {}
        self.num_removed = 0  # pages ever taken out: what was found is still there as long as this stays

    def __len__(self) -> int:
        """How many pages are indexed."""
        return len(self._by_page)

    def __contains__(self, page_id: int) -> bool:
        """Whether the page is indexed."""
        return page_id in self._by_page

    @property
    def page_ids(self) -> Collection[int]:
        """The pages that are indexed."""
        return self._by_page.keys()

    def find(self, key: bytes) -> int | None:
        """Return the page with this key."""
        node = self._by_key.get(key)
        return None if node is None else node.page_id

    def insert(self, key: bytes, page_id: int, parent_page_id: int | None) -> None:
        """Add a page, below the one that holds the tokens before its own. Neither key nor page may be there yet."""
        assert key not in self._by_key, "a second page for the same tokens"
        assert page_id not in self._by_page, f"a second key for page {page_id}"
        parent = None if parent_page_id is None else self._by_page[parent_page_id]
        node = _Node(key, page_id, parent)
        if parent is not None:
            parent.children[page_id] = node
        self._by_key[key] = self._by_page[page_id] = node

    def remove(self, page_id: int) -> list[int]:
        """Take out a page and all below it, which cannot be found without it. Returns all of them."""
        node = self._by_page[page_id]
        if node.parent is not None:
            del node.parent.children[page_id]
        removed, left = [], [node]
        while left:
            node = left.pop()
            left.extend(node.children.values())
            removed.append(node.page_id)
            self.num_removed += 1
            del self._by_key[node.key], self._by_page[node.page_id]
        return removed

    def check_integrity(self) -> None:
        """Raise AssertionError unless both directions and the tree fit together."""
        assert {id(node) for node in self._by_key.values()} == {id(node) for node in self._by_page.values()}
        for key, node in self._by_key.items():
            assert node.key == key
            assert self._by_page[node.page_id] is node, f"page {node.page_id} is indexed twice"
            assert node.parent is None or self._by_page.get(node.parent.page_id) is node.parent, (
                f"page {node.page_id} is indexed below a page that is not"
            )
            assert node.parent is None or node.parent.children[node.page_id] is node
            assert all(child.parent is node for child in node.children.values())
