"""Says that it has begun, then sleeps."""

import asyncio

from tartlet_sdk import inferlet


@inferlet
async def sleeper(seconds: float = 3600.0) -> None:
    """Sleep."""
    print("asleep")
    await asyncio.sleep(seconds)
