"""Two tenants who don't trust each other: of what one calls, says, uploads and computes, the other finds nothing."""

from __future__ import annotations

import asyncio
import json

import httpx2
import pytest

from tests.host.server.chaos.conftest import ROOMY, MakeServer
from tests.host.server.chaos.server_process import SOURCE, ServerProcess, events_of, settled

pytestmark = [pytest.mark.runner, pytest.mark.slow]

NAME, PROMPT, RESULT = "plan-zanzibar", "prompt-quagga", "result-okapi"
SAVED, VARIABLE, VALUE = "saved-ibex", "var_oryx", "val-kudu"
PRINTED, LOGGED, FAILED = "out-gnu", "log-eland", "err-bongo"
MARKERS = (NAME, PROMPT, RESULT, SAVED, VARIABLE, VALUE, PRINTED, LOGGED, FAILED, "request-nyala", "key-sitatunga")
"""Of the first tenant, in all places where it can choose a text."""

SECRET = f'''
"""Knows much of {NAME}."""
import logging
from tartlet_sdk import Model, inferlet, variables

@inferlet
async def main(word: str = "{PROMPT}", fail: bool = False) -> str:
    print("{PRINTED}", flush=True)
    logging.warning("{LOGGED}")
    variables.set("{VARIABLE}", "{VALUE}")
    context = Model.default().context()
    context.fill(f"The secret is {{word}}. " * 20)
    await context.generate(max_tokens=4)
    await context.save("{SAVED}", overwrite=True)
    if fail:
        raise ValueError("{FAILED}")
    return "{RESULT}"
'''
CURIOUS = f'''
from tartlet_sdk import Context, Model, NotFound, inferlet, variables

@inferlet
async def main(prompt: str) -> list:
    found = [each.name for each in Context.saved()]
    found.append(str(variables.get("{VARIABLE}")))
    try:
        context = await Context.open("{SAVED}")
        found.append("opened")
    except NotFound as error:
        found.append(str(error).replace("{SAVED}", "NAME"))
    context = Model.default().context()
    context.fill(prompt)
    draft = await context.generate(max_tokens=4)
    found.append(draft.usage.cached_tokens)
    return found
'''


async def make_tenant(server: ServerProcess, name: str) -> httpx2.AsyncClient:
    """A tenant, made by the operator's command while the server runs, and its client."""
    for command in (["tenant", "create", name], ["key", "create", "--tenant", name, "--json"]):
        said = await server.tartlet(*command)
    return server.client(json.loads(said)["key"])


async def live_as(client: httpx2.AsyncClient, *, name: str) -> list[str]:
    """Do everything that a tenant can; the ids that came of it."""
    uploaded = await client.post(f"/v1/inferlets?name={name}@1.0", content=SECRET, headers=SOURCE)
    assert uploaded.status_code == 201, uploaded.text
    ids = [uploaded.json()["id"], uploaded.json()["id"][:12]]
    for body in ({}, {"input": {"fail": True}}, {"input": {"strange": PROMPT}}, {"input": {"word": PROMPT * 3}}):
        headers = {"Idempotency-Key": f"key-sitatunga-{len(ids)}", "x-request-id": f"request-nyala-{len(ids)}"}
        run = (await client.post(f"/v1/inferlets/{name}/runs", json=body, headers=headers)).json()
        ids.append(run["id"])
    assert run["result"] == RESULT, run
    async for event in events_of(client, f"/v1/inferlets/{name}/runs", {"stream": True}):
        if event["type"] == "started":
            ids.append(event["run"]["id"])
    messages = [{"role": "user", "content": PROMPT}]
    for model in ("fake", name, f"{name}-missing"):
        await client.post("/v1/chat/completions", json={"model": model, "messages": messages, "max_tokens": 4})
    await client.post("/v1/completions", json={"model": "fake", "prompt": PROMPT, "max_tokens": 4, "strange": PROMPT})
    await client.post("/v1/responses", json={"model": "fake", "input": PROMPT, "text": {"format": PROMPT}})
    await client.post(f"/v1/serve/{name}/{PROMPT}?{PROMPT}={PROMPT}", content=PROMPT)
    await client.post("/v1/inferlets", content=f"def {PROMPT}(", headers=SOURCE)
    await client.post("/v1/inferlets", content=PROMPT, headers={"Content-Type": "application/wasm"})
    await client.get(f"/{PROMPT}?{PROMPT}", headers={PROMPT: PROMPT})
    return ids


async def look_around(client: httpx2.AsyncClient, ids: list[str]) -> list[str]:
    """All that another tenant hears when it asks for what it can, and for what it should not know of."""
    lists = ["/v1/inferlets", "/v1/runs?limit=100", "/v1/models", "/v1/usage", "/openapi.json", "/metrics"]
    answers = [await client.get(path) for path in lists]
    known = [f"/v1/inferlets/{NAME}", f"/v1/models/{NAME}@1.0", f"/v1/serve/{NAME}/x"]
    for each in ids:
        known += [f"/v1/runs/{each}", f"/v1/runs/{each}/events", f"/v1/inferlets/{each}", f"/v1/models/{each}"]
    asked_for = [await client.get(path) for path in known]
    assert {answer.status_code for answer in asked_for} <= {400, 404}
    texts = [answer.text + str(answer.headers) for answer in answers]
    for path, answer in zip(known, asked_for, strict=True):
        texts.append(answer.text.replace(path.split("/")[3], "NAME"))  # what it has said itself
    uploaded = await client.post("/v1/inferlets?name=curious", content=CURIOUS, headers=SOURCE)
    prompt = f"The secret is {PROMPT}. " * 20
    run = (await client.post("/v1/inferlets/curious/runs", json={"input": {"prompt": prompt}})).json()
    assert run["status"] == "succeeded", run
    assert run["result"][0] == "None"
    assert run["result"][-1] == 0, "tokens of another tenant's prompt were cached"
    return [*texts, uploaded.text, json.dumps(run)]


async def test_one_tenant_finds_nothing_of_another(make_server: MakeServer) -> None:
    """In no answer, header, list, error or figure; not by its ids, names or prompts; nor is any of it in the log."""
    server = make_server(fake=ROOMY, settings={"log_level": "debug"})
    await server.start()
    acme, globex = await make_tenant(server, "acme"), await make_tenant(server, "globex")
    before = await look_around(globex, [])
    ids = await live_as(acme, name=NAME)
    heard = await look_around(globex, ids)
    figures = (await server.client().get("/metrics")).text

    assert len(before) > 5
    for marker in (*MARKERS, *ids):
        assert not [text for text in heard if marker in text], marker
        assert marker not in figures, marker
    labels = {line.split("{")[0]: line for line in figures.splitlines() if "globex" in line or "acme" in line}
    assert all('tenant="' in line for line in labels.values())
    private = (PROMPT, RESULT, SAVED, VALUE, PRINTED, LOGGED, FAILED, "key-sitatunga", server.key[15:], NAME)
    for marker in private:
        assert marker not in server.log, [line for line in server.log.splitlines() if marker in line]
    assert server.log.count('"message": "run"') > 5
    await server.check_idle()
    await server.stop()


async def test_children_say_nothing_of_programs(make_server: MakeServer) -> None:
    """Not even when they are killed in the midst of them, or a program makes them complain."""
    server = make_server(settings={"log_level": "debug"})
    await server.start()
    client = server.client()
    await live_as(client, name=NAME)
    runs = [asyncio.create_task(client.post(f"/v1/inferlets/{NAME}/runs", json={})) for _ in range(8)]
    for module in ("worker", "engine"):
        server.signal_children(module, 9)
    await asyncio.gather(*runs)
    await settled(server.is_ready)

    for marker in MARKERS[1:9]:
        assert marker not in server.log, [line for line in server.log.splitlines() if marker in line]
    await server.check_idle()
    await server.stop()
