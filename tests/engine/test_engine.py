"""The in-process engine: its thread, its client, its end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tartlet_engine.api import (
    AppendTokens,
    CancelGeneration,
    Chunk,
    CloseRun,
    CreateContext,
    Done,
    EngineClient,
    EngineConfig,
    Event,
    Failed,
    Fence,
    Finished,
    FinishReason,
    ForkContext,
    FreeContext,
    Generate,
    OpenRun,
    PagesHeld,
    Sampling,
    Stop,
)
from tartlet_engine.engine import start_engine

PROMPT = tuple(range(10, 30))


@pytest.fixture
def client(tiny_folder: Path) -> Iterator[EngineClient]:
    """An engine on its thread; its books must balance at the end."""
    config = EngineConfig(model_name="tiny", model_path=str(tiny_folder), dtype="float32", kv_pages=128, threads=1)
    engine = start_engine(config)
    yield engine
    engine.check_integrity()
    engine.close()


def greedy(generation_id: int, context_id: int, **stop: Any) -> Generate:
    return Generate(generation_id, context_id, Sampling(0, temperature=0.0), Stop(ignore_eos=True, **stop))


def next_event(events: queue.Queue[Event], kind: type) -> Any:
    while not isinstance(event := events.get(timeout=60), kind):
        pass
    return event


def listen(client: EngineClient) -> queue.Queue[Event]:
    events: queue.Queue[Event] = queue.Queue()

    def listener(batch: list[Event]) -> None:
        for event in batch:
            if not isinstance(event, PagesHeld):
                events.put(event)

    client.listen(listener)
    return events


def test_a_generation_from_command_to_event(client: EngineClient, reference: Callable[..., list[int]]) -> None:
    """Commands go in from any thread, tokens come out on the engine's own, and statistics follow."""
    threads: set[str] = set()
    done = threading.Event()
    tokens: list[int] = []

    def listener(batch: list[Event]) -> None:
        threads.add(threading.current_thread().name)
        for event in batch:
            if isinstance(event, Chunk):
                tokens.extend(event.token_ids)
        if any(isinstance(event, Finished) for event in batch):
            done.set()

    client.listen(listener)
    client.submit([OpenRun(1), CreateContext(2, 1), AppendTokens(2, PROMPT), greedy(3, 2, max_tokens=10)])
    assert done.wait(60)
    client.check_integrity()
    stats = client.stats()

    assert tokens == reference(PROMPT, 10)
    assert threads == {"tartlet-engine"}
    assert (stats.generated_tokens, stats.prefill_tokens, stats.contexts, stats.runs) == (10, 20, 1, 1)
    assert stats.pages_free + stats.pages_cached + stats.pages_held == stats.pages_total == 128


def test_all_of_a_step_comes_in_one_call(client: EngineClient) -> None:
    """Eight generations that run side by side need no more calls of the listener than one does."""
    batches: queue.Queue[list[Event]] = queue.Queue()
    client.listen(batches.put)
    commands: list[Any] = [OpenRun(1)]
    for number in range(8):
        commands += [CreateContext(10 + number, 1), AppendTokens(10 + number, (number, *PROMPT))]
        commands.append(greedy(20 + number, 10 + number, max_tokens=6))
    client.submit(commands)
    sizes = []
    while sum(sizes) < 8 * 7:
        sizes.append(sum(not isinstance(event, PagesHeld) for event in batches.get(timeout=60)))

    assert sizes == [8] * 5 + [16]


def test_cancel_and_close_run(client: EngineClient) -> None:
    """A generation without an end is cancelled; closing the run gives everything back."""
    events = listen(client)
    client.submit([OpenRun(1), CreateContext(2, 1), AppendTokens(2, PROMPT), greedy(3, 2)])
    next_event(events, Chunk)
    client.submit([CancelGeneration(3)])
    assert next_event(events, Finished).reason == FinishReason.CANCELLED
    client.submit([CloseRun(1)])
    client.check_integrity()

    assert client.stats().pages_held == 0
    assert client.stats().contexts == 0


def test_a_failing_listener_does_not_stop_the_engine(client: EngineClient) -> None:
    """What the listener raises is logged, and later events are delivered."""
    failed = threading.Event()

    def listener(batch: list[Event]) -> None:
        failed.set()
        raise RuntimeError("the listener is broken")

    client.listen(listener)
    client.submit([OpenRun(1), CreateContext(2, 1), AppendTokens(2, PROMPT), greedy(3, 2, max_tokens=1)])
    assert failed.wait(60)
    client.listen(None)
    events = listen(client)
    client.submit([greedy(4, 2, max_tokens=1)])

    assert next_event(events, Finished).generation_id == 4


def test_an_engine_has_one_listener(client: EngineClient) -> None:
    """A second one is refused, and the first goes on hearing; when it has given the place back, another may have it."""
    events = listen(client)
    with pytest.raises(RuntimeError, match="already"):
        client.listen(lambda batch: None)
    client.submit([OpenRun(1), CreateContext(2, 1), AppendTokens(2, PROMPT), greedy(3, 2, max_tokens=1)])
    assert next_event(events, Finished).generation_id == 3

    client.listen(None)
    others = listen(client)
    client.submit([greedy(4, 2, max_tokens=1)])
    assert next_event(others, Finished).generation_id == 4
    assert events.empty()


def test_a_flood_of_commands_does_not_hold_up_tokens(client: EngineClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that come faster than they are done are done between steps, some at a time, and in order."""
    monkeypatch.setattr("tartlet_engine.engine.COMMANDS_S", 0.0)
    events = listen(client)
    flood: list[Any] = [FreeContext(10_000 + number) for number in range(500)]
    client.submit([OpenRun(1), CreateContext(2, 1), AppendTokens(2, PROMPT), greedy(3, 2, max_tokens=20)])
    client.submit([*flood, CreateContext(4, 1), AppendTokens(4, PROMPT), greedy(5, 4, max_tokens=1)])

    finished = [next_event(events, Finished).generation_id for _ in range(2)]
    client.check_integrity()  # comes after all that was submitted before it

    assert finished == [3, 5]
    assert client.stats().contexts == 2


def test_a_neighbours_commands_do_not_wait_behind_a_storm(
    client: EngineClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one run has submitted hundreds of commands, another one's take turns with them, one for one."""
    monkeypatch.setattr("tartlet_engine.engine.COMMANDS_S", 0.0)
    events = listen(client)
    # A generation that runs: then one command is carried out between two steps, each of which gives it a token.
    client.submit([OpenRun(1, "storm"), CreateContext(2, 1), AppendTokens(2, PROMPT), greedy(3, 2)], 1)
    next_event(events, Chunk)
    storm = [FreeContext(10_000 + number) for number in range(1000)]
    client.submit([*storm, CancelGeneration(3)], 1)
    client.submit([OpenRun(4, "calm"), CreateContext(5, 4), AppendTokens(5, PROMPT), greedy(6, 5, max_tokens=1)], 4)
    num_tokens = 0
    while not isinstance(event := events.get(timeout=60), Finished):
        num_tokens += isinstance(event, Chunk) and event.generation_id == 3

    assert event.generation_id == 6
    assert num_tokens < 50
    assert next_event(events, Finished).generation_id == 3
    client.check_integrity()


def test_a_run_that_is_closed_needs_no_time_for_what_it_asked(
    client: EngineClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands that wait are dropped with their run, and what it held is given back."""
    monkeypatch.setattr("tartlet_engine.engine.COMMANDS_S", 0.0)
    events = listen(client)
    client.submit([OpenRun(1), CreateContext(2, 1), AppendTokens(2, PROMPT), greedy(3, 2)], 1)
    next_event(events, Chunk)
    num_steps = client.stats().steps
    client.submit([CreateContext(10_000 + number, 1) for number in range(1000)], 1)
    client.submit([CloseRun(1)], 1)
    client.check_integrity()  # comes after all that was submitted before it

    assert client.stats().steps < num_steps + 100
    assert (client.stats().contexts, client.stats().pages_held, client.stats().runs) == (0, 0, 0)


def test_closing_a_run_of_many_contexts_takes_turns(client: EngineClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its contexts are freed some at a time, while a neighbour has its tokens; nothing of it is left at last."""
    events = listen(client)
    contexts = [CreateContext(1000, 1), AppendTokens(1000, PROMPT), greedy(4, 1000)]
    contexts += [ForkContext(1000, 1001 + number, 20) for number in range(300)]
    client.submit([OpenRun(1, "big"), *contexts, Fence(5, 1)], 1)
    assert next_event(events, Done).operation_id == 5
    client.submit([OpenRun(2, "calm"), CreateContext(3, 2), AppendTokens(3, PROMPT), greedy(6, 3)], 2)
    while next_event(events, Chunk).generation_id != 6:
        pass
    monkeypatch.setattr("tartlet_engine.engine.COMMANDS_S", 0.0)
    client.submit([CloseRun(1)], 1)
    client.submit([Fence(7, 2)], 2)
    while not isinstance(event := events.get(timeout=60), Done):
        pass
    assert client.stats().contexts > 100  # the neighbour's command did not wait for all of them
    num_tokens = 0
    while client.stats().runs == 2:
        num_tokens += isinstance(event := events.get(timeout=60), Chunk) and event.generation_id == 6

    assert num_tokens > 100
    assert client.stats().contexts == 1


def test_a_fence_comes_after_what_was_submitted_before(client: EngineClient) -> None:
    """It is answered when the run's commands have been carried out; of an unknown run it fails."""
    events = listen(client)
    client.submit([OpenRun(1), CreateContext(2, 1), AppendTokens(2, PROMPT), Fence(3, 1)], 1)
    assert next_event(events, Done).operation_id == 3
    assert client.stats().contexts == 1

    client.submit([Fence(4, 9)])
    assert next_event(events, Failed).failed_id == 4


def test_models_and_text(client: EngineClient) -> None:
    """The client tells about its one model; another name is a KeyError."""
    info = client.models["tiny"]

    assert (info.architecture, info.vocabulary_size, info.context_len) == ("LlamaForCausalLM", 512, 2048)
    assert (info.num_pages, info.page_size, info.dtype) == (128, 16, "float32")
    assert info.backend.startswith("cpu")
    assert info.features == ("chat", "evict", "constraints")
    assert client.text("tiny").decode(client.text("tiny").encode("fork")) == "fork"
    with pytest.raises(KeyError):
        client.text("other")


def test_no_id_is_given_twice(client: EngineClient) -> None:
    """Ids are new, whichever thread asks for them."""
    ids: list[int] = []

    def take() -> None:
        ids.extend(client.new_id() for _ in range(1000))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(ids)) == 4000
    assert min(ids) > 0


def num_engine_threads() -> int:
    """How many engines run; fixtures of other tests may have some, too."""
    return sum(thread.name == "tartlet-engine" for thread in threading.enumerate())


def test_close_in_the_middle_of_a_generation(client: EngineClient) -> None:
    """Closing ends the thread though a generation runs; later calls do nothing, and closing again is allowed."""
    num_before = num_engine_threads()
    events = listen(client)
    client.submit([OpenRun(1), CreateContext(2, 1), AppendTokens(2, PROMPT), greedy(3, 2)])
    next_event(events, Chunk)
    client.close()
    client.close()
    client.submit([CloseRun(1)])
    client.check_integrity()

    assert num_engine_threads() == num_before - 1


def test_an_idle_engine_does_nothing(client: EngineClient) -> None:
    """Without demands there are no steps, whatever else is submitted."""
    client.submit([OpenRun(1), CreateContext(2, 1), AppendTokens(2, PROMPT)])
    client.check_integrity()
    client.check_integrity()

    assert client.stats().steps == 0
