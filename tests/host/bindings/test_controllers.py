"""Controllers, attached by an inferlet or by the host, on the tiny model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.controller_fixture import controller
from tartlet import GuestError, LimitExceededError, Limits, Log, Output, Variable, sync

pytestmark = pytest.mark.runner

HEAD = "from tartlet_sdk import *\nimport random\n"


@pytest.fixture(scope="module")
def host() -> Iterator[sync.Host]:
    """A host with the tiny model."""
    with sync.Host("tiny", threads=1, kv_pages=256) as host:
        yield host
        assert host.stats().engine.pages_held == 0
        assert host.stats().runs.live == 0


class Outcomes:
    """What a controller of the tests prints, and what the run gives."""

    def __init__(
        self, host: sync.Host, source: str, config: Any = None, prompt: str = "hello there", **options: Any
    ) -> None:
        body = source if isinstance(source, bytes) else HEAD + source
        self.run = host.start_control(body, prompt, config, **options)
        self.events = list(self.run)
        self.text = "".join(event.text for event in self.events if isinstance(event, Output))
        self.lines = self.text.splitlines()

    @property
    def sequences(self) -> list[Any]:
        return self.run.result()["sequences"]

    @property
    def texts(self) -> list[str]:
        return [each["text"] for each in self.sequences]

    @property
    def reasons(self) -> list[str]:
        return [each["finish_reason"] for each in self.sequences]

    def error(self) -> GuestError:
        with pytest.raises(GuestError) as caught:
            self.run.result()
        return caught.value


def plain(host: sync.Host, prompt: str = "hello there", max_tokens: int = 6, extra: str = "") -> str:
    """What the model generates without a controller."""
    text: str = host.run(
        HEAD
        + f"""
@inferlet
async def main():
    context = Model.default().context()
    context.fill({prompt!r})
    {extra}
    return (await context.generate(max_tokens={max_tokens})).text
"""
    )
    return text


# ---- Going on, stopping, hearing what happened ----


def test_an_empty_controller_changes_nothing(host: sync.Host) -> None:
    """What is generated is what is generated without one: in text form as a component, and in Python."""
    expected = plain(host)

    assert Outcomes(host, "class Empty(Controller): pass", max_tokens=6).texts == [expected]
    assert Outcomes(host, controller(), 1, max_tokens=6).texts == [expected]  # type: ignore[arg-type]


def test_it_hears_of_every_step_and_of_the_end(host: sync.Host) -> None:
    """First nothing has happened; then each token, sampled; the end has its reason. Tokens add up to the sequence."""
    outcomes = Outcomes(
        host,
        """
class Listen(Controller):
    def start(self, config, prompt):
        self.prompt = prompt
    def step(self, sequence, info):
        print(info.backtrack, len(info.tokens), info.tokens == [info.sampled], info.finish_reason)
        assert sequence.tokens[:len(self.prompt)] == self.prompt
    def end(self, sequence, info):
        print(len(sequence.generated), info.finish_reason, info.refused, info.siblings)
""",
        max_tokens=3,
    )

    assert outcomes.lines == ["0 0 False None", *["0 1 True None"] * 2, "3 length None []"]
    assert outcomes.reasons == ["length"]


def test_it_can_stop_at_once_or_later(host: sync.Host) -> None:
    """B16: an empty decision ends the sequence with what it has; pages are given back."""
    source = """
class Stop(Controller):
    def start(self, config, prompt): self.n = config
    def step(self, sequence, info):
        return [] if len(sequence.generated) == self.n else None
    def end(self, sequence, info): print("not told")
"""
    for n in (0, 2):
        outcomes = Outcomes(host, source, n)
        assert outcomes.reasons == ["stopped"]
        assert outcomes.sequences[0]["tokens"] == n
        assert outcomes.lines == []


# ---- Masks, bias, temperature, splices ----


def test_only_allowed_tokens_are_sampled(host: sync.Host) -> None:
    """A list of tokens is a mask; a bias lets one of them win."""
    outcomes = Outcomes(
        host,
        """
class Choose(Controller):
    def step(self, sequence, info):
        if info.sampled is not None:
            print(info.sampled)
        return Branch(allow=[65, 66, 67], bias={66: 100.0} if len(sequence.generated) else {67: 100.0})
""",
        max_tokens=4,
    )

    assert outcomes.lines == ["67", "66", "66"]


def test_forced_tokens_are_appended_as_they_are(host: sync.Host) -> None:
    """Any number at once, without sampling; what follows is what follows the same text in a fresh context."""
    outcomes = Outcomes(
        host,
        """
class Force(Controller):
    def step(self, sequence, info):
        if not sequence.generated:
            return Branch.force(Model.default().tokenize(" one two three"))
        print(info.tokens, info.sampled)
""",
        max_tokens=10,
    )
    forced = len(host.run(HEAD + "@inferlet\ndef main(): return Model.default().tokenize(' one two three')"))

    assert outcomes.texts[0].startswith(" one two three")
    assert outcomes.lines[0].endswith("None")
    extra = "context.fill_tokens(Model.default().tokenize(' one two three'))"
    assert outcomes.texts[0] == " one two three" + plain(host, max_tokens=10 - forced, extra=extra)


def test_backtracking_into_generated_and_prompt_text(host: sync.Host) -> None:
    """B3, B5: what was taken back is gone from the sequence, the text and the context, also where it was the prompt."""
    outcomes = Outcomes(
        host,
        """
class Replace(Controller):
    def step(self, sequence, info):
        if len(sequence.generated) == 2 and not hasattr(self, "done"):
            self.done = True
            return Branch.force([72, 73, 74], backtrack=4)
        if info.backtrack:
            print(info.backtrack, info.tokens, sequence.tokens[-3:], len(sequence.tokens))
            return []
""",
    )

    assert outcomes.lines == ["4 [72, 73, 74] [72, 73, 74] 7"]  # 6 of the prompt and 2, less 4, and 3
    assert outcomes.sequences[0]["tokens"] == 3


def test_a_sampled_token_can_be_replaced(host: sync.Host) -> None:
    """B6, B7: a splice whose condition holds replaces the token, which is still reported; another does nothing."""
    outcomes = Outcomes(
        host,
        """
class Replace(Controller):
    def step(self, sequence, info):
        if info.sampled is not None:
            print(info.sampled, info.tokens, info.backtrack)
            if len(sequence.generated) > 2:
                return []
        return Branch(allow=[65], splices=[Splice([1], 1, when_sampled=[66]), Splice([70, 71], 1, when_sampled=[65])]
                      if not sequence.generated else [Splice([9], 0, when_sampled=[10])])
""",
    )

    assert outcomes.lines == ["65 [70, 71] 0", "65 [65] 0"]


def test_log_probabilities_if_asked_for(host: sync.Host) -> None:
    """Of what was sampled and of the most likely; without asking there are none."""
    source = """
class Look(Controller):
    logprobs = {n}
    def step(self, sequence, info):
        if info.sampled is not None:
            print(info.logprobs and (info.logprobs.chosen.token == info.sampled, len(info.logprobs.top)))
"""

    assert Outcomes(host, source.format(n=3), max_tokens=2).lines == ["(True, 3)"]
    assert Outcomes(host, source.format(n=None), max_tokens=2).lines == ["None"]


def test_masks_are_kept_by_the_host(host: sync.Host) -> None:
    """A mask is made once, and allows what is in it; forks share it."""
    outcomes = Outcomes(
        host,
        """
class Masked(Controller):
    def start(self, config, prompt):
        self.mask = Mask.of([65, 66]) | Mask.of([67])
    def step(self, sequence, info):
        if info.sampled is not None:
            print(info.sampled)
        if info.siblings or sequence.generated:
            return []
        return [Branch(mask=self.mask, allow=[66, 70]), Branch(mask=self.mask - Mask.of([65, 66]))]
""",
    )

    assert outcomes.reasons == ["stopped", "stopped"]
    assert sorted(outcomes.lines) == ["66", "67"]


def test_a_decision_that_cannot_be_carried_out_is_refused(host: sync.Host) -> None:
    """The controller hears why, and can decide again; nothing has changed."""
    outcomes = Outcomes(
        host,
        """
class Wrong(Controller):
    def step(self, sequence, info):
        if info.refused:
            print(type(info.refused).__name__, len(sequence.generated))
            return []
        return Branch(allow=[1 << 31])
""",
    )

    assert outcomes.lines == ["InvalidArgument 0"]
    assert outcomes.reasons == ["stopped"]


def test_whoever_decides_wrongly_again_and_again_is_ended(host: sync.Host) -> None:
    """A controller that does not look at refusals does not go round for ever."""
    error = Outcomes(
        host, "class C(Controller):\n    def step(self, sequence, info): return Branch(allow=[1 << 31])"
    ).error()

    assert "16 of its decisions in a row were refused" in error.message


# ---- Forks ----


def test_a_fork_makes_sequences_that_know_each_other(host: sync.Host) -> None:
    """B10, B11: three branches, each with its own first text; state is copied; all are in one call."""
    outcomes = Outcomes(
        host,
        """
class Fork(Controller):
    def start(self, config, prompt): self.seen = []
    def step(self, sequence, info):
        self.seen.append(sequence.id)
        if len(sequence.generated) == 1 and sequence.id == 0 and not info.siblings:
            return [Branch.force([65 + k, 65 + k]) for k in range(3)]
        if info.siblings:
            print(sequence.id, info.siblings, info.siblings.index(sequence.id), self.seen)
        if len(sequence.generated) == 4:
            print(self.seen)
            return []
""",
    )

    births = ["0 [0, 1, 2] 0 [0, 0, 0]", "1 [0, 1, 2] 1 [0, 0, 1]", "2 [0, 1, 2] 2 [0, 0, 2]"]
    assert sorted(outcomes.lines) == sorted([*births, "[0, 0, 0, 0]", "[0, 0, 1, 1]", "[0, 0, 2, 2]"])
    texts = outcomes.texts
    assert len(set(texts)) == 3
    assert len({text[0] for text in texts}) == 1, "they have the first token in common"
    assert outcomes.run.usage.forks == 2


def test_forks_under_different_masks_share_one_forward_pass(host: sync.Host) -> None:
    """Each samples from the logits of the step that they have in common, under its own mask; AICI could not."""
    outcomes = Outcomes(
        host,
        """
class Fork(Controller):
    def step(self, sequence, info):
        if not sequence.generated:
            return [Branch(allow=[token]) for token in (65, 66, 67)]
        print(sequence.id, info.sampled)
        return []
""",
    )

    assert sorted(outcomes.lines) == ["0 65", "1 66", "2 67"]


def test_one_fork_stops_and_the_others_go_on(host: sync.Host) -> None:
    """B16: each ends for itself, and has its own text."""
    outcomes = Outcomes(
        host,
        """
class Fork(Controller):
    def step(self, sequence, info):
        if not sequence.generated and sequence.id == 0:
            return [Branch(), Branch()]
        if sequence.id == 0:
            return []
""",
        max_tokens=5,
    )

    assert outcomes.reasons == ["stopped", "length"]
    assert [each["tokens"] for each in outcomes.sequences] == [1, 5]


def test_many_forks_of_a_component(host: sync.Host) -> None:
    """Forty sequences in one call each step."""
    sequences = Outcomes(host, controller(), 40, max_tokens=5).sequences  # type: ignore[arg-type]

    assert [each["tokens"] for each in sequences] == [5] * 40


def test_a_fork_bomb_is_refused(host: sync.Host) -> None:
    """B14: more branches than allowed are an error that the controller hears; its numbers stay right afterwards."""
    outcomes = Outcomes(
        host,
        """
class Bomb(Controller):
    def step(self, sequence, info):
        if info.refused:
            print(info.refused.message)
            return [Branch(), Branch()]
        if not sequence.generated and sequence.id == 0:
            return [Branch()] * 20
        print(sequence.id, info.siblings)
        return []
""",
        limits=Limits(max_branches=16),
    )

    assert outcomes.lines[0] == "max_branches allows 16, this would make it 20"
    assert sorted(outcomes.lines[1:]) == ["0 [0, 20]", "20 [0, 20]"]


# ---- The prompt ----


def test_the_prompt_can_be_replaced(host: sync.Host) -> None:
    """B24: by a text or tokens; an empty one is an error of the generation, also if it was empty from the start."""
    source = """
class Rewrite(Controller):
    def start(self, config, prompt):
        print(len(prompt))
        return config
    def step(self, sequence, info):
        print(Model.default().detokenize(sequence.tokens))
        return []
"""
    assert Outcomes(host, source, "something else").lines == ["6", "something else"]
    assert Outcomes(host, source, "from nothing", prompt="").lines == ["0", "from nothing"]
    assert "the context is empty" in Outcomes(host, source, []).error().message
    assert "the context is empty" in Outcomes(host, source, None, prompt="").error().message
    assert "prompt token 4000" in Outcomes(host, source, [4000]).error().message


# ---- Waiting ----


def test_a_branch_waits_for_the_others_variables(host: sync.Host) -> None:
    """B12: branch 0 waits for what 1 and 2 write, then goes on with it; the client hears of both."""
    outcomes = Outcomes(
        host,
        """
class Join(Controller):
    def step(self, sequence, info):
        if not sequence.generated and sequence.id == 0 and not info.siblings and not hasattr(self, "k"):
            self.k = 0
            return [Branch.force([65]), Branch.force([66]), Branch.force([67])]
        if info.siblings:
            self.k = info.siblings.index(sequence.id)
        if self.k:
            if len(sequence.generated) < 4:
                return None
            variables.set(f"part {self.k}", Model.default().detokenize(sequence.generated[:1]))
            return []
        for k in (1, 2):
            if not variables.get(f"part {k}"):
                return Wait(variable=f"part {k}")
        print(variables.get("part 1"), variables.get("part 2"), len(sequence.generated))
        return []
""",
    )

    assert outcomes.lines == [f"{outcomes.texts[1][0]} {outcomes.texts[2][0]} 1"]
    assert [event.name for event in outcomes.events if isinstance(event, Variable)] == ["part 1", "part 2"]


def test_all_waiting_is_a_deadlock_at_once(host: sync.Host) -> None:
    """B13: if every sequence waits for what only they could do, all end with that reason, not by running out."""
    outcomes = Outcomes(
        host,
        """
class Stuck(Controller):
    def step(self, sequence, info):
        if not sequence.generated and sequence.id == 0:
            return [Branch(), Branch()]
        return Wait(variable="never")
    def end(self, sequence, info):
        print(sequence.id, info.finish_reason)
""",
    )

    assert sorted(outcomes.lines) == ["0 deadlock", "1 deadlock"]
    assert outcomes.reasons == ["deadlock", "deadlock"]


def test_a_wait_for_a_time_is_none(host: sync.Host) -> None:
    """A timer is something outside of the run: the sequence goes on when it is over."""
    outcomes = Outcomes(
        host,
        """
class Pause(Controller):
    def step(self, sequence, info):
        if hasattr(self, "waited"):
            print("woken", info.tokens)
            return []
        self.waited = True
        return Wait(variable="never", seconds=0.01)
""",
    )

    assert outcomes.lines == ["woken []"]
    assert outcomes.reasons == ["stopped"]


INFERLET = """
class Waiter(Controller):
    def step(self, sequence, info):
        if variables.get("go"):
            variables.set("gone", "yes")
            return []
        return Wait(variable="go")

@inferlet
async def main(task: str):
    context = Model.default().context()
    context.fill("hello")
    async def tell():
        if task == "tell":
            await asyncio.sleep(0.01)
            variables.set("go", "1")
        if task == "ask":
            await variables.wait("also never")
    job = asyncio.create_task(tell())
    draft = await context.generate(controller="main")
    try:
        await job
    except Deadlock:
        return [draft.finish_reason, "deadlock"]
    return [draft.finish_reason, str(variables.get("gone"))]
"""


def test_inferlet_and_controller_share_the_variables(host: sync.Host) -> None:
    """A wait of the controller is ended by the inferlet. If both wait for each other, both hear of it."""
    program = host.load("import asyncio\n" + HEAD + INFERLET)

    assert host.run(program, {"task": "tell"}) == ["stopped", "yes"]
    assert host.run(program, {"task": "nothing"}) == ["deadlock", "None"]
    assert host.run(program, {"task": "ask"}) == ["deadlock", "deadlock"]


# ---- What goes wrong ----


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("class C(Controller):\n    def start(self, config, prompt): raise ValueError('no')", "ValueError: no"),
        ("class C(Controller):\n    def step(self, sequence, info): return 1 / 0", "ZeroDivisionError"),
        ("class C(Controller):\n    def step(self, sequence, info): return 3", "not iterable"),
        ("class C(Controller):\n    def step(self, sequence, info): return [3]", "a step must return a Branch"),
        ("class C(Controller):\n    def step(self, sequence, info): return Wait()", "a Wait must name"),
        (
            "class C(Controller):\n    def step(self, sequence, info): Model.default().context()",
            "cannot call what only",
        ),
        ("class C(Controller): pass\nclass D(Controller): pass", "defines several controllers: C, D"),
    ],
)
def test_a_failure_ends_the_generation_with_its_text(host: sync.Host, source: str, message: str) -> None:
    """Whoever awaits the generation gets the error, with the traceback and the log; the host goes on."""
    error = Outcomes(host, source).error()

    assert "ProgramFailed: Context.generate: the controller 'main' failed" in error.message
    assert message in error.message


def test_an_error_has_the_end_of_the_log(host: sync.Host) -> None:
    """B28: what it printed and logged last is in the error, and was told to the client."""
    outcomes = Outcomes(
        host,
        """
import logging
class Talk(Controller):
    def step(self, sequence, info):
        print("x" * 5000)
        print("about to fail")
        logging.error("badly")
        raise ValueError("no")
""",
    )

    message = outcomes.error().message
    assert "Its log ends with:" in message
    assert "about to fail" in message
    assert "error badly" in message
    assert len(message) < 20_000
    assert "about to fail" in outcomes.text
    assert any(isinstance(event, Log) and event.message == "badly" for event in outcomes.events)


@pytest.mark.parametrize(
    ("step", "message"),
    [("unreachable", "unreachable"), ("(drop (i32.load (i32.const -4)))", "out of bounds")],
)
def test_a_trap_ends_the_generation(host: sync.Host, step: str, message: str) -> None:
    """B28: the run that attached it hears of it as an error that it can catch."""
    error = Outcomes(host, controller(step), 1).error()  # type: ignore[arg-type]

    assert "ProgramFailed" in error.message
    assert message in error.message


def test_a_late_controller_is_ended_by_name(host: sync.Host) -> None:
    """B27: for ever late is a clear error with the limit; meanwhile and afterwards others generate."""
    spinning = host.start_control(controller("(loop $l (br $l))"), "hello there", 1, limits=Limits(max_step_ms=200))
    expected = plain(host)
    with pytest.raises(GuestError, match=r"DeadlineExceeded.*has not answered for 200 ms; max_step_ms allows no more"):
        spinning.result()
    assert plain(host) == expected


def test_cpu_time_is_the_runs(host: sync.Host) -> None:
    """A controller that uses up the run's CPU time ends the run by that limit."""
    limits = Limits(max_step_ms=None, max_cpu_ms=300)
    run = host.start_control(controller("(loop $l (br $l))"), "hello there", 1, limits=limits)

    with pytest.raises(LimitExceededError) as caught:
        run.result()
    assert caught.value.limit == "max_cpu_ms"
    assert run.usage.cpu_ms < 500


def test_memory_is_limited_by_itself(host: sync.Host) -> None:
    """More memory than allowed ends the generation, not the host."""
    source = "class C(Controller):\n    def step(self, sequence, info): self.x = 'x' * (1 << 30)"

    with pytest.raises(LimitExceededError) as caught:
        Outcomes(host, source).run.result()
    assert caught.value.limit == "max_memory_bytes"


def test_the_number_of_controllers_is_limited(host: sync.Host) -> None:
    """One more at once is refused; after the end of one there is room again."""
    source = (
        "import asyncio\n"
        + HEAD
        + """
class Slow(Controller):
    def step(self, sequence, info):
        if hasattr(self, "waited"):
            return []
        self.waited = True
        return Wait(seconds=0.02)

@inferlet
async def main():
    context = Model.default().context()
    context.fill("hello")
    tasks = [context.fork().generate(controller="main") for _ in range(3)]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    again = await context.generate(controller="main")
    return [getattr(r, "code", "ok") for r in results] + [again.finish_reason]
"""
    )

    assert host.run(source, limits=Limits(max_controllers=2)) == ["ok", "ok", "quota-exceeded", "stopped"]


# ---- From an inferlet ----


def test_names_and_versions() -> None:
    """A name alone is the newest version; unknown names and inferlets are refused by name."""
    programs = {
        name: HEAD + f"class C(Controller):\n    def start(self, config, prompt): print('{name}', config)\n"
        for name in ("c@1.2", "c@1.10", "other@1")
    }
    programs["hello"] = "from tartlet_sdk import inferlet\n@inferlet\ndef main(): pass\n"
    inferlet = (
        HEAD
        + """
@inferlet
async def main(names: list[str]):
    failures = []
    for name in names:
        with Model.default().context() as context:
            context.fill("hello")
            try:
                await context.generate(controller=name, config={"k": [1]}, max_tokens=1)
            except TartletError as error:
                failures.append([type(error).__name__, error.message])
    return failures
"""
    )
    with sync.Host("tiny", threads=1, kv_pages=64, programs=programs) as host:
        run = host.start(inferlet, {"names": ["c", "c@1.2", "other", "nobody", "hello"]})
        text = "".join(event.text for event in run if isinstance(event, Output))
        failures = run.result()

    assert text.splitlines() == ["c@1.10 {'k': [1]}", "c@1.2 {'k': [1]}", "other@1 {'k': [1]}"]
    assert failures == [
        ["NotFound", "the host knows no program 'nobody'"],
        ["ProgramFailed", "the program 'hello' is an inferlet, not a controller"],
    ]


def test_the_context_goes_on_from_what_the_controller_made_of_it(host: sync.Host) -> None:
    """What was forced and taken back is in the inferlet's context, which equals a fresh one of those tokens."""
    source = (
        HEAD
        + """
class Edit(Controller):
    def step(self, sequence, info):
        if len(sequence.generated) == 2 and not info.backtrack:
            return Branch.force([80, 81], backtrack=3)
        if info.backtrack:
            return []

@inferlet
async def main():
    context = Model.default().context()
    context.fill("hello there")
    length = len(context)
    await context.generate(controller="main")
    tokens = context.tokens
    fresh = Model.default().context()
    fresh.fill_tokens(tokens)
    after = await context.generate(max_tokens=8)
    return [length, list(tokens)[-2:], len(tokens), after.tokens == (await fresh.generate(max_tokens=8)).tokens]
"""
    )

    assert host.run(source) == [6, [80, 81], 7, True]


def test_chunks_of_all_sequences_stream(host: sync.Host) -> None:
    """Put together, what is added and taken back is each sequence's text."""
    source = (
        HEAD
        + """
class Fork(Controller):
    def step(self, sequence, info):
        if len(sequence.generated) == 2 and sequence.id == 0 and not info.siblings:
            return [Branch(), Branch.force([72, 73], backtrack=1)]
        if len(sequence.generated) > 5:
            return []

@inferlet
async def main():
    context = Model.default().context()
    context.fill("hello there")
    generation = context.generate(controller="main", chunk_interval=0)
    texts = {}
    async for chunk in generation:
        text = texts.get(chunk.sequence, "")
        texts[chunk.sequence] = text[:len(text) - chunk.backtrack] + chunk.text
    draft = generation.result
    same = [texts[k] == each.text for k, each in enumerate(draft.sequences)]
    return same, len(same), draft.text == draft.sequences[0].text
"""
    )

    assert host.run(source) == [[True, True], 2, True]


def test_cancelling_and_dropping(host: sync.Host) -> None:
    """A cancelled one ends with what it has; one whose task is cancelled is given up with its controller."""
    source = (
        "import asyncio\n"
        + HEAD
        + """
class Go(Controller):
    def end(self, sequence, info):
        print("end", info.finish_reason)

@inferlet
async def main():
    context = Model.default().context()
    context.fill("hello there")
    generation = context.generate(controller="main", chunk_interval=0)
    async for chunk in generation:
        generation.cancel()
    try:
        await asyncio.wait_for(context.fork().generate(controller="main"), 0.01)
    except TimeoutError:
        pass
    return generation.result.finish_reason
"""
    )

    assert host.run(source, limits=Limits(max_tokens=5000)) == "cancelled"


def test_a_constraint_holds_under_a_controller(host: sync.Host) -> None:
    """The generation's constraint counts besides the controller's masks."""
    source = (
        HEAD
        + """
class Empty(Controller): pass

@inferlet
async def main():
    context = Model.default().context()
    context.fill("hello there")
    draft = await context.generate(controller="main", regex="[ab]{3}")
    return draft.text, draft.value
"""
    )
    text, value = host.run(source)

    assert len(text) == 3
    assert set(text) <= {"a", "b"}
    assert value == text
