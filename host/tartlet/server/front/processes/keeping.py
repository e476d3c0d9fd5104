"""Keeps a child going: when one has ended, another is started, after a while."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from tartlet.server.front.processes.backoff import Backoff

logger = logging.getLogger(__name__)


async def keep_going(name: str, live: Callable[[], Awaitable[str]], backoff: Backoff) -> None:
    """Live one life after another, until this is cancelled.

    Args:
        name: Whose lives they are, for the log.
        live: One life, from start to end; gives how it ended, in words.
        backoff: How long to wait in between.
    """
    while True:
        began = time.monotonic()
        try:
            end = await live()
        except (
            Exception
        ) as error:  # such as no more processes, or a fault of ours: that, too, must not be the last life
            logger.debug("%s", name, exc_info=True)
            end = f"cannot be started: {type(error).__name__}: {error}"
        wait_s = backoff.wait_s(time.monotonic() - began)
        logger.error("%s %s\nThe next is started in %.1f s.", name, end, wait_s)
        await asyncio.sleep(wait_s)
