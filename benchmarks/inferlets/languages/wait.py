"""Says that it has begun, then waits."""

import asyncio

from tartlet_sdk import inferlet


@inferlet
async def main(seconds: float = 0.0) -> None:
    """Wait so long."""
    print("begun")
    await asyncio.sleep(seconds)
