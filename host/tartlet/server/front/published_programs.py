"""What tenants have given a name, as models of OpenAI's interface."""

from __future__ import annotations

from collections.abc import Sequence

from tartlet.errors import ConfigError, ConflictError, NotFoundError
from tartlet.server.front.catalogue import Catalogue
from tartlet.server.front.openai.published import Published
from tartlet.server.front.storage import Storage

MOST_LISTED = 1000


class StoredPrograms:
    """Implements `PublishedPrograms`."""

    def __init__(self, storage: Storage, catalogue: Catalogue) -> None:
        self._storage = storage
        self._catalogue = catalogue

    async def all_of(self, tenant: str) -> Sequence[Published]:
        """All of a tenant's names, up to a thousand programs."""
        records = await self._storage.inferlets.list(tenant, limit=MOST_LISTED)
        known = {record.digest: record for record in records}
        return [
            Published(
                name.name,
                self._catalogue.ref_of(known[name.digest], name.name),
                known[name.digest].facts,
                name.tagged_ms / 1000,
            )
            for name in await self._storage.names.list(tenant)
            if name.digest in known
        ]

    async def find(self, tenant: str, name: str) -> Published | None:
        """What a tenant calls by a name, with or without a version; or a digest. Raises UnavailableError."""
        try:
            record = await self._catalogue.get(tenant, name)
        except (NotFoundError, ConflictError, ConfigError):  # none, several digests that begin so, or no possible name
            return None
        return Published(name, self._catalogue.ref_of(record, name), record.facts, record.created_ms / 1000)
