"""For whom a worker may act at the engine's socket: for tenants whose runs the front has given to it.

The front and the engine share a key, which workers do not have. With a run the front gives a worker a grant for the
run's tenant, an HMAC over the tenant's name and weight, and the worker shows it to the engine. A worker that a program
has taken over can go on to act for the tenants whose runs it has had, and for no others.
"""

from __future__ import annotations

import hmac
import os

import msgspec

from tartlet_engine.api import Command, OpenRun, PublishPrefix

KEY_BYTES = 32


def new_key() -> bytes:
    """A key for one start of the server."""
    return os.urandom(KEY_BYTES)


def make_grant(key: bytes, tenant: str, weight: float) -> bytes:
    """The grant to act for a tenant, with that weight and no other."""
    return hmac.digest(key, msgspec.msgpack.encode((tenant, float(weight))), "sha256")


class Grants:
    """Those that were shown on one connection.

    Args:
        key: The front's; None: everything is allowed, as where nobody but the engine's owner can connect.
    """

    def __init__(self, key: bytes | None) -> None:
        self._key = key
        self._allowed: set[tuple[str, float]] = set()

    def show(self, tenant: str, weight: float, grant: bytes) -> None:
        """Take in a grant, if it is one."""
        if self._key is not None and hmac.compare_digest(grant, make_grant(self._key, tenant, weight)):
            self._allowed.add((tenant, weight))

    def refusal(self, command: Command) -> str | None:
        """Why a command is not allowed; None if it is."""
        if self._key is None:
            return None
        if isinstance(command, PublishPrefix):
            return "prefixes of all tenants are the operator's to publish"
        if isinstance(command, OpenRun) and (command.tenant, command.weight) not in self._allowed:
            return "there is no grant for the run's tenant, with that weight, on this connection"
        return None
