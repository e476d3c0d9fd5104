from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tartlet.languages.javascript import runner_component
from tartlet.languages.node import node_tool, packages
from tartlet.progress import silent
from tartlet.server.front.services import Services

pytestmark = pytest.mark.runner

ECHO = "from tartlet_sdk import inferlet\n@inferlet\ndef main(n: int, *, word: str = 'a'): return n\n"


def files_of(services: Services) -> list[str]:
    folder = services.catalogue.blobs.path("acme", "x").parent.parent
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


async def test_source_is_taken_in(client: httpx2.AsyncClient, upload: Any) -> None:
    """And described, with its parameters."""
    digest = await upload(ECHO, "echo@1.0")
    found = (await client.get("/v1/inferlets/echo")).json()

    assert (found["id"], found["kind"], found["names"]) == (digest, "source", ["echo@1.0"])
    assert [(each["name"], each["is_required"]) for each in found["parameters"]] == [("n", True), ("word", False)]
    assert (await client.get(f"/v1/inferlets/{digest[:12]}")).json() == found


async def test_what_is_there_is_not_taken_in_again(client: httpx2.AsyncClient, upload: Any, services: Services) -> None:
    """The answer is the same, but for its status."""
    headers = {"Content-Type": "text/x-python; charset=utf-8"}
    first = await client.post("/v1/inferlets", content=ECHO, headers=headers)
    again = await client.post("/v1/inferlets", content=ECHO, headers=headers)

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert len(files_of(services)) == 1


async def test_several_files(client: httpx2.AsyncClient) -> None:
    """As JSON, whose digest does not depend on how it is written."""
    main = "from tartlet_sdk import inferlet\nfrom lib.part import VALUE\n@inferlet\ndef main(): return VALUE\n"
    files = {"main.py": main, "lib/__init__.py": "", "lib/part.py": "VALUE = 5\n"}
    first = await client.post("/v1/inferlets", json={"main": "main", "files": files})
    turned = {"files": dict(reversed(files.items())), "main": "main"}
    again = await client.post(
        "/v1/inferlets", content=json.dumps(turned, indent=2), headers={"Content-Type": "application/json"}
    )
    run = await client.post(f"/v1/inferlets/{first.json()['id']}/runs", json={})

    assert again.status_code == 200
    assert run.json()["result"] == 5


TYPESCRIPT = """import { inferlet } from "tartlet-sdk";
import { added } from "./lib/adding";
interface Given { n: number }
export default inferlet(async ({ n }: Given) => {
  if (n > 9) throw new Error("too much");
  return added(n);
});
"""
ADDING = "const ONE: number = 1;\nexport function added(n: number): number {\n  return n + ONE;\n}\n"


@pytest.fixture
def javascript() -> None:
    if node_tool().version is None:
        pytest.skip(f"Node.js is not installed: {node_tool().hint}")
    packages(silent)
    runner_component(silent)


async def test_typescript_is_taken_in_and_runs(client: httpx2.AsyncClient, javascript: None) -> None:
    """One file or several; an error has the author's own places."""
    files = {"main.ts": TYPESCRIPT, "lib/adding.ts": ADDING}
    several = await client.post("/v1/inferlets", json={"main": "main", "files": files})
    text = "import { inferlet } from 'tartlet-sdk';\nexport default inferlet(async () => 'one' as string);\n"
    one = await client.post("/v1/inferlets", content=text, headers={"Content-Type": "text/typescript"})
    url = f"/v1/inferlets/{several.json()['id']}/runs"
    ran = await client.post(url, json={"input": {"n": 4}})
    failed = await client.post(url, json={"input": {"n": 10}})
    other = await client.post(f"/v1/inferlets/{one.json()['id']}/runs", json={})

    assert (several.status_code, one.status_code) == (201, 201), (several.text, one.text)
    assert (ran.json()["result"], other.json()["result"]) == (5, "one"), (ran.text, other.text)
    assert "main.ts:5" in failed.text
    assert "too much" in failed.text


async def test_javascript_without_its_tools_is_refused(
    client: httpx2.AsyncClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer says what to send instead."""
    monkeypatch.setattr("tartlet.languages.javascript.installed_esbuild", lambda: None)
    response = await client.post("/v1/inferlets", content=TYPESCRIPT, headers={"Content-Type": "text/javascript"})

    assert response.status_code == 415
    assert response.json()["error"]["code"] == "unsupported_language"
    assert "tartlet build" in response.json()["error"]["hint"]
    assert files_of(services) == []


@pytest.mark.parametrize(
    ("content", "media_type", "status", "code"),
    [
        (b"\x00asm\x0d\x00\x01\x00", "application/wasm", 400, None),
        (b"not a component", "application/wasm", 400, None),
        (b"", "application/wasm", 400, None),
        (b"def main(:", "text/x-python", 400, None),
        (b"\xff\xfe", "text/x-python", 400, "invalid_source"),
        (b"{}", "application/json", 400, "invalid_source"),
        (b"[" * 100_000, "application/json", 400, "invalid_source"),
        (b'{"main": "main", "files": {"../main.py": ""}}', "application/json", 400, "invalid_source"),
        (b'{"main": "main", "files": {"/main.py": ""}}', "application/json", 400, "invalid_source"),
        (b'{"main": "other", "files": {"main.py": ""}}', "application/json", 400, "invalid_source"),
        (b'{"main": "main", "files": {"main.py": "", "data.txt": ""}}', "application/json", 400, "invalid_source"),
        (b'{"main": "main", "files": {"main.py": "", "main.ts": ""}}', "application/json", 400, "invalid_source"),
        (b'{"main": "main", "files": {"main.c": ""}}', "application/json", 400, "invalid_source"),
        (b"x", "image/png", 415, "unsupported_media_type"),
    ],
)
async def test_what_is_no_program_leaves_nothing(
    client: httpx2.AsyncClient, services: Services, content: bytes, media_type: str, status: int, code: str | None
) -> None:
    """It is refused, with a reason."""
    response = await client.post("/v1/inferlets", content=content, headers={"Content-Type": media_type})

    assert response.status_code == status, response.text
    assert code in (None, response.json()["error"]["code"])
    assert files_of(services) == []
    assert (await client.get("/v1/inferlets")).json()["data"] == []


async def test_a_name_that_cannot_be_leaves_nothing(client: httpx2.AsyncClient, services: Services) -> None:
    """It is refused before the program is taken in."""
    source = "from tartlet_sdk import inferlet\n\n@inferlet\ndef main() -> None:\n    pass\n"
    headers = {"Content-Type": "text/x-python"}
    response = await client.post("/v1/inferlets", params={"name": "../No"}, content=source, headers=headers)

    assert (response.status_code, response.json()["error"]["code"]) == (400, "config")
    assert files_of(services) == []
    assert (await client.get("/v1/inferlets")).json()["data"] == []


async def test_names_are_moved_and_deleted(client: httpx2.AsyncClient, upload: Any) -> None:
    """A name stands for one thing at a time; without a version it is the newest."""
    one, two = await upload(ECHO, "echo@1"), await upload(ECHO + "# two\n")
    moved = await client.put("/v1/inferlets/names/echo@2", json={"inferlet": two[:12]})
    newest = (await client.get("/v1/inferlets/echo")).json()["id"]
    gone = await client.delete("/v1/inferlets/names/echo@2")

    assert moved.json()["names"] == ["echo@2"]
    assert newest == two
    assert gone.json() == {"id": "echo@2", "object": "name", "deleted": True}
    assert (await client.get("/v1/inferlets/echo")).json()["id"] == one
    assert (await client.put("/v1/inferlets/names/No Name", json={"inferlet": one})).status_code == 400
    assert (await client.put("/v1/inferlets/names/x", json={"inferlet": "y"})).status_code == 404


async def test_a_list_has_pages(client: httpx2.AsyncClient, upload: Any) -> None:
    """The newest first; each page begins after the last of the one before."""
    ids = [await upload(ECHO + f"# {index}\n") for index in range(3)]
    first = (await client.get("/v1/inferlets?limit=2")).json()
    second = (await client.get(f"/v1/inferlets?limit=2&after={first['data'][-1]['id']}")).json()

    assert sorted([each["id"] for each in first["data"] + second["data"]]) == sorted(ids)
    assert (first["has_more"], second["has_more"]) == (True, False)


async def test_a_deleted_inferlet_is_gone(client: httpx2.AsyncClient, upload: Any, services: Services) -> None:
    """With its names and its file."""
    digest = await upload(ECHO, "echo")
    assert (await client.delete("/v1/inferlets/echo")).json()["id"] == digest

    assert (await client.get("/v1/inferlets/echo")).status_code == 404
    assert (await client.delete("/v1/inferlets/echo")).status_code == 404
    assert files_of(services) == []


async def test_tenants_see_nothing_of_each_other(client_of: Any, upload: Any, services: Services) -> None:
    """Not even that both have uploaded the same, of which each has a file."""
    acme, globex = client_of("key-of-acme"), client_of("key-of-globex")
    digest = await upload(ECHO, "echo")
    for method, path in (
        ("GET", f"/v1/inferlets/{digest}"),
        ("GET", "/v1/inferlets/echo"),
        ("DELETE", f"/v1/inferlets/{digest}"),
        ("DELETE", "/v1/inferlets/names/echo"),
        ("POST", f"/v1/inferlets/{digest}/runs"),
        ("GET", "/v1/serve/echo"),
    ):
        response = await globex.request(method, path, json={} if method == "POST" else None)
        assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found"), path
    first = await globex.post("/v1/inferlets", content=ECHO, headers={"Content-Type": "text/x-python"})

    assert first.status_code == 201
    assert first.json()["names"] == []
    assert files_of(services) == [digest] * 2
    await acme.delete(f"/v1/inferlets/{digest}")
    assert (await globex.post(f"/v1/inferlets/{digest}/runs", json={"input": {"n": 3}})).json()["result"] == 3
    await globex.delete(f"/v1/inferlets/{digest}")
    assert files_of(services) == []


async def test_a_client_that_vanishes_while_it_uploads(exchange: Any, services: Services) -> None:
    """Nothing is left of it."""
    upload = exchange("POST", "/v1/inferlets")
    upload.vanish()
    await upload.hear()

    assert files_of(services) == []
