"""Makes the interpreter ready when the component is built: the snapshot of its memory is what every run starts with."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from typing import Any

from tartlet_runner import controlling, memory, output, program, stub_host
from tartlet_sdk import wit

ROUNDS = 30

WARM_UP = """import asyncio, collections, json, re
from tartlet_sdk import Model, Sampler, inferlet, max_tokens, stop_strings, variables
import helper

async def one(context, k):
    await asyncio.sleep(0)
    draft = await context.fork().generate(Sampler.top_p(0.7, 0.95, seed=k), stop=max_tokens(4) | stop_strings("end"))
    variables.set(f"draft {k}", draft.text)
    return str(await variables.wait(f"draft {k}"))

@inferlet
async def warm_up(n: int = 4, names: list[str] | None = None):
    print("text", helper.X)
    model = Model.default()
    with model.context() as context:
        context.system("Be brief.")
        context.user(f"Some text of {n}.")
        await context.flush()
        drafts = await asyncio.gather(*(one(context, k) for k in range(n)))
        async with asyncio.TaskGroup() as group:
            group.create_task(one(context, 1))
        async for chunk in context.generate(max_tokens=3):
            print(chunk.text, end="")
    try:
        await asyncio.wait_for(asyncio.sleep(1), 0.001)
    except TimeoutError:
        pass
    re.compile(r"-?[0-9]+(?:[.][0-9]+)?|[a-z]*").findall("12 34")
    re.purge()
    return {"votes": collections.Counter(drafts), "tokens": model.tokenize("text")}
"""


WARM_UP_CONTROLLER = """from tartlet_sdk import Branch, Controller, Model, Splice, Wait, variables

class WarmUp(Controller):
    logprobs = 1

    def start(self, config, prompt):
        self.model = Model.default()
        self.texts = {t: self.model.token_bytes(t) for t in range(3)}
        return self.model.detokenize(prompt)

    def step(self, sequence, info):
        count = len(sequence.generated)
        if count == 1:
            return [Branch(), Branch.force([1, 2], backtrack=1)]
        if count == 2:
            return Wait(variable="x", seconds=1)
        if count == 3:
            return Branch(allow=[1], bias={1: 2.0}, temperature=0.5, splices=[Splice([3], 1, [1])])
        if count == 4:
            return []
"""


def prepare(*warm_ups: Callable[[], None]) -> None:
    """Set up, warm up, and put the memory in order: the last thing that a component does when it is built."""
    program.install()
    streams = sys.stdout, sys.stderr
    try:
        with stub_host.installed():
            output.install()
            for warm_up in warm_ups:
                warm_up()
        program.leave_seeding_to_run()
        memory.settle()
    except BaseException:
        sys.stdout, sys.stderr = streams  # the build's, so that it can say what happened
        raise


def warm_up_controller() -> None:
    """Let a sample controller steer two sequences some times, as `warm_up_inferlet` runs a program."""
    modules = set(sys.modules)
    for _ in range(ROUNDS):
        steered = controlling.Steered()
        steered.start("main", {"main.py": WARM_UP_CONTROLLER}, "{}", [1, 2])
        steered.step([_outcome(0)])
        steered.step([_outcome(0, 1)])
        steered.step([_outcome(0, 2), _outcome(1, 1, 2)])
        steered.step([_outcome(0, 3), _outcome(1, 4)])
        steered.step([_outcome(0, 5, finish_reason="eos")])
        linecache.clearcache()
        for name in set(sys.modules) - modules:
            del sys.modules[name]


def _outcome(sequence: int, *tokens: int, finish_reason: str | None = None) -> Any:
    sampled = tokens[0] if tokens else None
    return wit.steering.Outcome(sequence, 0, list(tokens), sampled, [], None, None, finish_reason)


def warm_up_inferlet() -> None:
    """Run a sample program some times.

    What CPython makes lazily (specialised bytecode, caches) is then in the snapshot. Otherwise every run would make
    it, and copy the pages that it lies in.
    """
    modules = set(sys.modules)
    for _ in range(ROUNDS):
        program.run("main", {"main.py": WARM_UP, "helper.py": "X = 1\n"}, {"n": 4})
        linecache.clearcache()
        for name in set(sys.modules) - modules:
            del sys.modules[name]
