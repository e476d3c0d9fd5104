"""What the system refuses to the server for want of something: errors that are no fault, and go by themselves."""

from __future__ import annotations

import errno

from starlette.requests import Request
from starlette.responses import Response
from uvicorn.protocols.utils import ClientDisconnected

from tartlet.server.front.errors import ApiError, error_response, on_fault

_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})
_FILES = frozenset({errno.EMFILE, errno.ENFILE})
_OTHERS = frozenset({errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN})


def scarcity(error: OSError) -> ApiError | None:
    """The error to be told if it was a want of disk, open files, memory or processes; None if it was something else.

    How much there is, is the operator's business.
    """
    hint = "Tell the server's operator."
    if error.errno in _DISK:
        return ApiError(507, "storage_full", "the server's disk is full", hint=hint)
    if error.errno in _FILES:
        return ApiError(503, "unavailable", "the server has as many files and connections open as it may", hint=hint)
    if error.errno in _OTHERS:
        return ApiError(503, "unavailable", "the server has no memory or no process left for that", hint=hint)
    return None


async def on_os_error(request: Request, error: Exception) -> Response:
    """Answer a request that the system would not let us do; what is no want of anything is a fault.

    Raises the error itself if the client is gone: there is nobody to answer.
    """
    assert isinstance(error, OSError)
    if isinstance(error, ClientDisconnected):
        raise error
    found = scarcity(error)
    return await on_fault(request, error) if found is None else error_response(found)


def storage_error(error: OSError) -> ApiError:
    """The error for a file that could not be written or read: a want of something, or a disk that fails."""
    failed = ApiError(503, "storage_failed", "the server's disk fails", hint="Tell the server's operator.")
    return scarcity(error) or failed
