"""wasi:filesystem and wasi:sockets: nothing is allowed."""

from __future__ import annotations

import pytest

from tartlet.wasm.fiber import Fiber
from tartlet.wasm.host_function import Err
from tartlet.wasm.wasi import wasi_interfaces

WASI = wasi_interfaces()


def test_no_directories(fiber: Fiber) -> None:
    """No directory is open."""
    assert WASI["wasi:filesystem/preopens"]["get-directories"](fiber) == []


@pytest.mark.parametrize(
    ("interface", "function", "args"),
    [
        ("wasi:sockets/tcp-create-socket", "create-tcp-socket", ("ipv4",)),
        ("wasi:sockets/udp-create-socket", "create-udp-socket", ("ipv6",)),
        ("wasi:sockets/ip-name-lookup", "resolve-addresses", (0, "example.org")),
    ],
)
def test_no_network(fiber: Fiber, interface: str, function: str, args: tuple[object, ...]) -> None:
    """Sockets and names are refused with an error that the language understands."""
    with pytest.raises(Err) as caught:
        WASI[interface][function](fiber, *args)
    assert caught.value.value == "access-denied"
