from __future__ import annotations

from typing import Any

ECHO = """
from tartlet_sdk import inferlet

@inferlet
def main(value: str) -> str:
    print(value)
    if value == "fail":
        raise ValueError("as asked")
    return value
"""


async def test_a_tenant_reads_its_own_usage(client_of: Any, client: Any, upload: Any) -> None:
    """By day; another tenant's runs are not in it, and a key that may not read runs is refused."""
    inferlet = await upload(ECHO)
    for value in ("hello", "fail"):
        assert (
            await client.post(f"/v1/inferlets/{inferlet}/runs", json={"input": {"value": value}})
        ).status_code == 200

    (day,) = (await client.get("/v1/usage")).json()["data"]
    assert (day["tenant"], day["runs"], day["failures"]) == ("acme", 2, 1)
    assert day["host_calls"] > 0
    assert day["page_seconds"] == 0.0
    assert (await client_of("key-of-globex").get("/v1/usage?days=400")).json() == {"object": "list", "data": []}
    assert (await client_of("key-of-nothing").get("/v1/usage")).status_code == 403
    assert (await client.get("/v1/usage?days=0")).status_code == 400
