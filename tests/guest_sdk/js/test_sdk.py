"""The JavaScript SDK's calls, over the fake engine: what the last message says is what comes back."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.runner

CHAT = "const context = getModel().context(); context.user('some words here');\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("const d = await context.generate(); return [d.text, d.finishReason];", ["some words here", "eos"]),
        ("const d = await context.generate({ maxTokens: 4 }); return [String(d), d.finishReason];", ["some", "length"]),
        (
            "const d = await context.generate({ stop: sdk.stopStrings('word').or(sdk.maxTokens(9)) });"
            "return [d.text, d.stopString];",
            ["some ", "word"],
        ),
        (
            "const texts: string[] = []; const stream = context.stream({ chunkIntervalMs: 0 });"
            "for await (const chunk of stream) texts.push(chunk.text);"
            "return [texts.length > 1, texts.join(''), stream.result.finishReason];",
            [True, "some words here", "eos"],
        ),
        (
            "for await (const chunk of context.stream({ chunkIntervalMs: 0 })) break;"
            "context.user('more'); return (await context.generate()).text;",
            "more",
        ),
        (
            "const fork = context.fork(); fork.fill('x');"
            "return [fork.length - context.length, context.tokens.length === context.length];",
            [1, True],
        ),
        ("context.truncate(3); return [context.length, context.room + context.positions];", [3, 4096]),
        ("await context.flush(); await context.evict(1, 3); return context.length - context.positions;", -2),
        (
            "await context.save('it', { ttlMs: 60_000 }); const opened = await sdk.openContext('it');"
            "const [saved] = sdk.savedContexts(); sdk.deleteContext('it');"
            "return [opened.length === context.length, saved!.name, saved!.expiresInMs! > 0, sdk.savedContexts()];",
            [True, "it", True, []],
        ),
        ("return (await context.generate({ regex: '.*' })).value;", "some words here"),
        (
            "using steps = await context.steps(); await steps.next(); await steps.force('XY');"
            "await steps.backtrack(1); return steps.text;",
            "sX",
        ),
        (
            "using steps = await context.steps(); await steps.next(); using child = steps.fork({ seed: 1 });"
            "const [a, b] = await Promise.all([steps.next(), child.next({ allow: [65] })]);"
            "return [a.text, b.text, steps.text, child.text];",
            ["o", "A", "so", "sA"],
        ),
        (
            "const found = await context.forward([65, 66], { logprobs: true, ask: [{ row: 1, top: 2 }] });"
            "found.commit([0]); return [found.logprobs.length, found.rows[0]!.top.length, context.tokens.at(-1)];",
            [2, 2, 65],
        ),
        ("const scores = await context.score(['a', 'ab']); return scores.map((each) => each < 0);", [True, True]),
        ("return (await context.logprobs('ab')).map((each) => each.token);", [97, 98]),
        ("return (await context.nextDistribution(3)).top.length;", 3),
        ("return (await context.verify([0, 120])).length;", 1),
        (
            "const mask = sdk.Mask.of([65, 66]); const both = mask.or(sdk.Mask.of([67]));"
            "return [both.size, mask.has(65), mask.not().has(65), both.minus(mask).size, both.restrict([67]).size];",
            [3, True, False, 1, 1],
        ),
        ("return sdk.Mask.where((bytes) => bytes.length === 1 && bytes[0]! < 10).size;", 10),
        (
            "const matcher = await sdk.Matcher.begin(sdk.Constraint.choices('ab', 'ac'));"
            "await matcher.advance([97]); return [matcher.mayEnd, matcher.mask.size, (await matcher.fork()).problem];",
            [True, 258, None],
        ),
        (
            "const m = getModel(); return [m.tokenize('ab'), m.detokenize([97]), Array.from(m.tokenBytes(98)), "
            "m.vocabulary.length === m.info.vocabularySize, m.name, sdk.availableModels().length];",
            [[97, 98], "a", [98], True, "fake", 1],
        ),
        (
            "const { written, now } = variables.compareAndSwap('v', 'a', 0); variables.append('v', 'b');"
            "return [written, now.version, variables.get('v'), variables.get('w'), variables.versions()];",
            [True, 1, {"version": 2, "value": "ab"}, None, {"v": 2}],
        ),
        ("return [sdk.run.info().tenant, sdk.run.limits().has('max_tokens')];", ["local", True]),
    ],
)
def test_a_call_does_what_it_says(js: Any, body: str, expected: Any) -> None:
    """And what it holds is given back."""
    assert js.main(CHAT + body) == expected
    js.engine.check_integrity()


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("context.fill(5 as any)", "invalid-argument", "text must be a string, not a number"),
        (
            "context.fill('a\\udc00b')",
            "invalid-argument",
            "text cannot be encoded as UTF-8: lone surrogate U+DC00 at character 1",
        ),
        ("context.fillTokens([-1])", "invalid-argument", "tokens must be token ids from 0 to 4294967295, not -1"),
        (
            "context.fillTokens('x' as any)",
            "invalid-argument",
            "tokens must be token ids from 0 to 4294967295, not a string",
        ),
        ("context.generate({ maxToken: 1 } as any)", "invalid-argument", 'there is no option "maxToken"'),
        ("context.generate({ regex: 'a', lark: 'b' })", "invalid-argument", "regex and lark are given at once"),
        ("Sampler.topP(1, 2)", "invalid-argument", "topP must be a finite number from 0 to 1, not 2"),
        (
            "Sampler.greedy({ seed: 2 ** 60 })",
            "invalid-argument",
            "seed must be from 0 to 9007199254740991",
        ),
        ("getModel('other')", "not-found", "there is no model 'other'"),
        ("await context.generate({ regex: '(' })", "invalid-argument", ""),
        ("await sdk.openContext('missing')", "not-found", "missing"),
        ("context.close(); context.fill('x')", "invalid-argument", "the context was closed"),
        ("const g = context.generate(); context.fill('x'); await g", "unavailable", ""),
        ("await context.generate({ signal: AbortSignal.abort() })", "cancelled", "it was aborted"),
    ],
)
def test_a_call_that_is_refused_says_why(js: Any, body: str, code: str, message: str) -> None:
    """With the argument, what was given, and what is allowed."""
    found = js.main(f"{CHAT} try {{ {body}; }} catch (e: any) {{ return [e.code, e.message]; }}")

    assert found[0] == code
    assert message in found[1]
    js.engine.check_integrity()


def test_a_generation_that_is_given_up_ends(js: Any) -> None:
    """Its context is free again."""
    body = """
    context.user('endless words '.repeat(100));
    const controller = new AbortController();
    const generation = context.generate({ signal: controller.signal });
    await sleep(1);
    controller.abort();
    try { await generation; } catch (e: any) { context.truncate(1); return [e.code, context.length]; }
    """
    assert js.main(CHAT + body) == ["cancelled", 1]


def test_a_generation_that_is_cancelled_keeps_what_it_has(js: Any) -> None:
    """Its finish reason says so."""
    body = """
    context.user('endless words '.repeat(100));
    const stream = context.stream({ chunkIntervalMs: 0 });
    for await (const _ of stream) stream.cancel();
    return [stream.result.finishReason, stream.result.text.length > 0];
    """
    assert js.main(CHAT + body) == ["cancelled", True]


CONTROLLED = """
import { Controller, force, getModel, inferlet, type Sequence } from "tartlet-sdk";

export class Shouting extends Controller {
  count = [0];

  step(sequence: Sequence) {
    this.count[0]! += 1;
    if (sequence.generated.length === 0) return [{}, force([33, 33])];
    if (sequence.id === 1) return this.count[0]! > 2 ? [] : {};
    return sequence.generated.length < 4 ? { allow: [65 + this.count[0]!] } : [];
  }
}

export default inferlet(async ({ name }) => {
  const context = getModel().context();
  context.user("some words");
  const draft = await context.generate({ controller: name, config: { a: 1 } });
  return draft.sequences.map((each) => [each.text, each.finishReason]);
});
"""


def test_a_program_may_bring_its_controller(js: Any) -> None:
    """A fork is a copy of it, which goes its own way."""
    assert js.run(CONTROLLED, {"name": "main"}) == [["sCDE", "stopped"], ["!!s", "stopped"]]
