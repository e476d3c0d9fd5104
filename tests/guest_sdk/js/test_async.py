"""Promises, timers and cancellation in JavaScript programs."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.runner


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return await Promise.all([1, sleep(1).then(() => 2), Promise.resolve(3)]);", [1, 2, 3]),
        ("return await Promise.race([sleep(1000), sleep(1).then(() => 'fast')]);", "fast"),
        ("return await Promise.any([Promise.reject(1), sleep(1).then(() => 2)]);", 2),
        (
            "return await Promise.allSettled([Promise.reject(1), 2]);",
            [{"status": "rejected", "reason": 1}, {"status": "fulfilled", "value": 2}],
        ),
        (
            "try { await Promise.any([Promise.reject(1)]); } catch (e: any) { return [e.name, e.errors]; }",
            ["AggregateError", [1]],
        ),
        ("return await Promise.reject(1).catch((e) => e + 1).finally(() => 5);", 2),
        ("return await new Promise((resolve, reject) => { resolve(1); reject(2); resolve(3); });", 1),
        ("return await { then(resolve: any) { resolve('thenable'); } };", "thenable"),
        (
            "const p: any = Promise.resolve().then(() => p); try { await p; } catch (e: any) { return e.name; }",
            "TypeError",
        ),
        ("const { promise, resolve } = Promise.withResolvers(); setTimeout(resolve, 1, 7); return await promise;", 7),
        (
            """
            const order: string[] = [];
            setTimeout(() => order.push("timer"), 0);
            queueMicrotask(() => order.push("microtask"));
            Promise.resolve().then(() => order.push("then"));
            order.push("now");
            await sleep(1);
            return order;
            """,
            ["now", "microtask", "then", "timer"],
        ),
        (
            """
            const seen: number[] = [];
            const timer = setInterval(() => seen.push(seen.length), 1);
            while (seen.length < 3) await sleep(1);
            clearInterval(timer);
            const length = seen.length;
            await sleep(5);
            return seen.length === length;
            """,
            True,
        ),
        ("const timer = setTimeout(() => { throw 1; }, 1); clearTimeout(timer); await sleep(3); return 1;", 1),
        (
            """
            async function* numbers() { for (let k = 0; k < 3; k += 1) { await sleep(0); yield k; } }
            const seen: number[] = [];
            for await (const k of numbers()) seen.push(k);
            return [seen, await Array.fromAsync(numbers(), (k) => k * 2)];
            """,
            [[0, 1, 2], [0, 2, 4]],
        ),
        (
            """
            const controller = new AbortController();
            setTimeout(() => controller.abort(), 1);
            try { await sleep(60_000, { signal: controller.signal }); } catch (e: any) { return e.code; }
            """,
            "cancelled",
        ),
        (
            "try { await sleep(60_000, { signal: AbortSignal.timeout(1) }); } catch (e: any) { return e.code; }",
            "deadline-exceeded",
        ),
        (
            """
            const either = AbortSignal.any([new AbortController().signal, AbortSignal.abort("why")]);
            try { await sleep(1, { signal: either }); } catch (e) { return e; }
            """,
            "why",
        ),
        (
            """
            setTimeout(() => variables.set("x", "1"), 1);
            const both = await Promise.all([variables.wait("x"), variables.wait("x")]);
            return both.map((each) => each.value);
            """,
            ["1", "1"],
        ),
    ],
)
def test_what_waits_goes_on_when_it_can(js: Any, body: str, expected: Any) -> None:
    """As everywhere else in JavaScript."""
    assert js.main(body) == expected


def test_many_promises_are_no_recursion(js: Any) -> None:
    """A long chain of awaits needs no more stack than a short one."""
    assert js.main("let n = 0; for (let k = 0; k < 5000; k += 1) n += await Promise.resolve(1); return n;") == 5000


def test_a_promise_that_nobody_awaits_is_reported(js: Any) -> None:
    """When it is rejected; the run goes on. One that is awaited later in the same turn is not."""
    js.main(
        """
        Promise.reject(new Error("unheard"));
        const later = Promise.reject(new Error("heard"));
        await Promise.resolve();
        await later.catch(() => {});
        await sleep(1);
        """
    )

    ((level, message),) = js.logs
    assert level == "error"
    assert "nobody awaits it: Error: unheard\n    at main.ts:" in message


def test_waiting_for_what_nobody_can_do_is_a_deadlock(js: Any) -> None:
    """It is told at once."""
    program = "export default async () => { await new Promise(() => {}); };"
    assert "TartletError [deadlock]: deadlock: everything in the run waits" in js.error(program)


def test_variables_that_nobody_writes_are_a_deadlock(js: Any) -> None:
    """Which the program can catch."""
    assert js.main("try { await variables.wait('x'); } catch (e: any) { return e.code; }") == "deadlock"
