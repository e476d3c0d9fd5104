"""wasi:filesystem and wasi:sockets: there are no files, and the network is not allowed."""

from __future__ import annotations

from typing import Any, NoReturn

from tartlet.wasm.fiber import Fiber
from tartlet.wasm.host_function import Err, Interfaces


def _no_directories(_fiber: Fiber) -> list[Any]:
    return []


def _access_denied(_fiber: Fiber, *_args: object) -> NoReturn:
    raise Err("access-denied")


def _drop(_fiber: Fiber, _number: int) -> None:
    """Do nothing: of these types only the one network is ever handed out, and it allows nothing."""


INTERFACES: Interfaces = {
    "wasi:filesystem/types": {"descriptor": _drop},
    "wasi:filesystem/preopens": {"get-directories": _no_directories},
    "wasi:sockets/network": {"network": _drop},
    "wasi:sockets/instance-network": {"instance-network": lambda _fiber: 0},
    "wasi:sockets/ip-name-lookup": {"resolve-address-stream": _drop, "resolve-addresses": _access_denied},
    "wasi:sockets/tcp": {"tcp-socket": _drop},
    "wasi:sockets/udp": {"udp-socket": _drop},
    "wasi:sockets/tcp-create-socket": {"create-tcp-socket": _access_denied},
    "wasi:sockets/udp-create-socket": {"create-udp-socket": _access_denied},
}
