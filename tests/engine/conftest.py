"""Two ways to drive an engine step by step, without its thread.

`hash_engine` has a model that is a hash: the next token is a function of all tokens before it, which it reads out of
the pages. One wrong page, slot or copy changes everything after it. It runs thousands of steps a second.
`tiny_engine` has the tiny random Llama.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tartlet_engine import transfers
from tartlet_engine.api import (
    AnswerStep,
    AppendTokens,
    CancelGeneration,
    Chunk,
    CloseRun,
    Command,
    CommitForward,
    CompileConstraint,
    ConstraintKind,
    CreateContext,
    DeleteSaved,
    DiscardForward,
    Done,
    EngineConfig,
    EngineError,
    Event,
    EvictContext,
    Failed,
    Finished,
    FlushContext,
    ForkContext,
    ForkSteps,
    Forward,
    Forwarded,
    FreeConstraint,
    FreeContext,
    Generate,
    LimitReached,
    ListSaved,
    ModelInfo,
    Opened,
    OpenRun,
    OpenSaved,
    PagesHeld,
    PublishPrefix,
    RowRequest,
    Sampling,
    SaveContext,
    SavedContext,
    SavedList,
    Speculation,
    Splice,
    StepAnswer,
    Stepped,
    StepRefused,
    Stop,
    TruncateContext,
    UnpublishPrefix,
)
from tartlet_engine.batch import StepBatch
from tartlet_engine.constraints.compiler import ConstraintCompiler
from tartlet_engine.constraints.vocabulary import Vocabulary
from tartlet_engine.core import EngineCore
from tartlet_engine.costs import Costs
from tartlet_engine.loading import load_engine
from tartlet_engine.page_table import SlotMoves
from tartlet_engine.saved_contexts import SavedContexts
from tartlet_engine.tokenizer import ModelTokenizer

VOCABULARY_SIZE = 512
FIRST_PLAIN_TOKEN = 3  # below are the special tokens of the tiny tokenizer


HASH_ADAPTERS = ("red", "blue")
_MARK = 1024  # above every token id: slots hold it once for the first adapter, twice for the second


def next_token(token_ids: Sequence[int], adapter: str | None = None) -> int:
    """What the hash model generates after these tokens, with an adapter or without."""
    salt = (adapter or "").encode()
    digest = hashlib.blake2b(b",".join(b"%d" % token_id for token_id in token_ids), digest_size=8, salt=salt).digest()
    return FIRST_PLAIN_TOKEN + int.from_bytes(digest, "big") % (VOCABULARY_SIZE - FIRST_PLAIN_TOKEN)


class HashRunner:
    """A model runner whose pages hold token ids, and whose logits are a hash of the tokens that a row can see.

    A slot also knows which adapter its token was computed with, and no row may see a token of another one.
    """

    def __init__(self, num_pages: int, page_size: int, max_batch_tokens: int) -> None:
        self.device = self.logits_device = torch.device("cpu")
        self.is_batch_invariant = True
        self.failures = 0  # that many next steps fail
        self.num_computed_tokens = 0
        self.batch_sizes: list[int] = []
        self._max_batch_tokens = max_batch_tokens
        self._page_size = page_size
        self._slots: list[list[int | None]] = [[None] * page_size for _ in range(num_pages)]

    def forward(self, batch: StepBatch) -> torch.Tensor:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the model is out of order")
        num_tokens = len(batch.token_ids)
        assert 0 < num_tokens <= self._max_batch_tokens
        self.num_computed_tokens += num_tokens
        self.batch_sizes.append(num_tokens)
        copied = [list(self._slots[copy.source_page_id]) for copy in batch.page_copies]
        for copy, content in zip(batch.page_copies, copied, strict=True):
            self._slots[copy.target_page_id] = content
        written = list(zip(batch.page_ids.tolist(), batch.offsets.tolist(), strict=True))
        assert len(set(written)) == num_tokens, "two tokens of one step go into the same slot"
        adapters: list[str | None] = [None] * num_tokens
        for span in batch.adapter_spans:
            adapters[span.rows] = [span.adapter] * span.num_rows
        marks = [_MARK * (0 if adapter is None else 1 + HASH_ADAPTERS.index(adapter)) for adapter in adapters]
        for (page_id, offset), token_id, mark in zip(written, batch.token_ids.tolist(), marks, strict=True):
            self._slots[page_id][offset] = token_id + mark
        contexts = self._visible_tokens(batch)
        logits = torch.zeros(len(batch.logit_rows), VOCABULARY_SIZE)
        for row, wanted in enumerate(batch.logit_rows.tolist()):
            context = [token_id - marks[wanted] for token_id in contexts[wanted]]
            assert all(0 <= token_id < _MARK for token_id in context), "a row sees a token of another adapter"
            assert len(context) <= int(batch.slots[wanted]) + 1
            assert len(context) <= int(batch.positions[wanted]) + 1
            assert context[-1] == int(batch.token_ids[wanted])
            logits[row, next_token(context, adapters[wanted])] = 5.0
        return logits

    def read_pages(self, page_ids: Sequence[int]) -> torch.Tensor:
        """Each slot as an int16; -1: not written."""
        slots = [[-1 if token_id is None else token_id for token_id in self._slots[page_id]] for page_id in page_ids]
        return torch.tensor(slots, dtype=torch.int16).view(torch.uint8)

    def move_slots(self, moves: SlotMoves) -> None:
        sources = zip(moves.source_page_ids, moves.source_offsets, strict=True)
        moved = [self._slots[page_id][offset] for page_id, offset in sources]
        for page_id in set(moves.target_page_ids):
            self._slots[page_id] = [None] * self._page_size
        for page_id, offset, token_id in zip(moves.target_page_ids, moves.target_offsets, moved, strict=True):
            assert token_id is not None, "a slot is moved that nobody has written"
            self._slots[page_id][offset] = token_id

    def write_pages(self, page_ids: Sequence[int], contents: torch.Tensor) -> None:
        for page_id, slots in zip(page_ids, contents.view(torch.int16).tolist(), strict=True):
            self._slots[page_id] = [None if token_id < 0 else token_id for token_id in slots]

    def _visible_tokens(self, batch: StepBatch) -> dict[int, list[int]]:
        """The tokens that each row sees, read from the pages as attention does."""
        rows: dict[int, list[int]] = {}
        for group in batch.decode_groups:
            for index, length in enumerate(group.context_lens.tolist()):
                rows[group.first_row + index] = self._read(group.page_tables[index].tolist(), range(length))
        for segment in batch.prefill_segments:
            page_table = segment.page_table.tolist()
            for index in range(segment.num_rows):
                if segment.tree is None:
                    slots = list(range(segment.start + index + 1))
                else:
                    seen = segment.tree.visible[index].nonzero().flatten()
                    assert int(seen[-1]) + segment.tree.first_slot == segment.start + index, "a row sees itself last"
                    slots = [*range(segment.tree.first_slot), *(segment.tree.first_slot + seen).tolist()]
                rows[segment.first_row + index] = self._read(page_table, slots)
        assert sorted(rows) == list(range(len(batch.token_ids)))
        return rows

    def _read(self, page_table: list[int], slots: Sequence[int]) -> list[int]:
        tokens = [self._slots[page_table[i // self._page_size]][i % self._page_size] for i in slots]
        assert None not in tokens, "a row reads a slot that nobody has written"
        return [token for token in tokens if token is not None]


class AheadHashRunner(HashRunner):
    """The hash model on a device that would work beside the host: decodes can be launched ahead of their tokens."""

    def __init__(self, num_pages: int, page_size: int, max_batch_tokens: int) -> None:
        super().__init__(num_pages, page_size, max_batch_tokens)
        self.num_ahead = 0  # tokens computed ahead

    def forward_ahead(self, batch: StepBatch, token_ids: torch.Tensor) -> torch.Tensor:
        assert not batch.token_ids.any(), "the host has read a token before the next step was launched"
        assert not batch.page_copies
        self.num_ahead += len(token_ids)
        return self.forward(dataclasses.replace(batch, token_ids=token_ids))


class Driver:
    """Submits commands, carries out steps, and sorts events. Everything at once, on the test's thread."""

    def __init__(self, core: EngineCore, info: ModelInfo, runner: HashRunner | None = None) -> None:
        self.core = core
        self.info = info
        self.runner = runner
        self.events: list[Event] = []  # but for `PagesHeld`
        self.pages_held: dict[int, PagesHeld] = {}  # the last of each run
        self._ids = itertools.count(1)

    def do(self, *commands: Command) -> None:
        for command in commands:
            self.core.handle(command, time.monotonic_ns())
        self._take_events()

    def _take_events(self) -> None:
        for event in self.core.take_events():
            if isinstance(event, PagesHeld):
                self.pages_held[event.run_id] = event
            else:
                self.events.append(event)

    def open_run(self, **limits: Any) -> int:
        run_id = next(self._ids)
        self.do(OpenRun(run_id, **limits))
        return run_id

    def create(self, run_id: int, token_ids: Sequence[int] = (), adapter: str | None = None) -> int:
        context_id = next(self._ids)
        self.do(CreateContext(context_id, run_id, adapter))
        if token_ids:
            self.append(context_id, token_ids)
        return context_id

    def append(self, context_id: int, token_ids: Sequence[int]) -> None:
        self.do(AppendTokens(context_id, tuple(token_ids)))

    def fork(self, context_id: int, length: int) -> int:
        child_id = next(self._ids)
        self.do(ForkContext(context_id, child_id, length))
        return child_id

    def truncate(self, context_id: int, length: int) -> None:
        self.do(TruncateContext(context_id, length))

    def flush(self, context_id: int) -> int:
        operation_id = next(self._ids)
        self.do(FlushContext(context_id, operation_id))
        return operation_id

    def generate(
        self,
        context_id: int,
        num_logprobs: int | None = None,
        constraint_id: int | None = None,
        mask_id: int | None = None,
        speculation: Speculation | None = None,
        stepped: bool = False,
        **options: Any,
    ) -> int:
        """Greedy and past eos, unless told otherwise."""
        generation_id = next(self._ids)
        stop_names = set(Stop.__struct_fields__)
        stop = {"ignore_eos": True} | {name: value for name, value in options.items() if name in stop_names}
        sampling = {"seed": 0, "temperature": 0.0} | {n: v for n, v in options.items() if n not in stop_names}
        what = num_logprobs, constraint_id, mask_id, speculation, stepped
        self.do(Generate(generation_id, context_id, Sampling(**sampling), Stop(**stop), *what))
        return generation_id

    def steps(self, context_id: int, **options: Any) -> int:
        """Start a stepped generation: greedy and past eos, unless told otherwise."""
        return self.generate(context_id, stepped=True, **options)

    def answer(self, generation_id: int, *splices: Splice, **answer: Any) -> None:
        """Answer a step, without carrying one out."""
        self.do(AnswerStep(generation_id, StepAnswer(splices=splices, **answer)))

    def next(self, generation_id: int, *splices: Splice, **answer: Any) -> Stepped:
        """Answer a step, and wait for its outcome."""
        known = len(self.outcomes(generation_id))
        self.answer(generation_id, *splices, **answer)
        while len(self.outcomes(generation_id)) == known:
            assert self.core.has_work, "nobody brings the step nearer to its end"
            self.step()
        return self.outcomes(generation_id)[-1]

    def outcomes(self, generation_id: int) -> list[Stepped]:
        return [e for e in self.events if isinstance(e, Stepped) and e.generation_id == generation_id]

    def refusals(self, generation_id: int) -> list[EngineError]:
        return [e.error for e in self.events if isinstance(e, StepRefused) and e.generation_id == generation_id]

    def fork_steps(self, generation_id: int, seed: int | None = None) -> tuple[int, int]:
        """The child's context, and the generation on it."""
        context_id, child_id = next(self._ids), next(self._ids)
        self.do(ForkSteps(generation_id, context_id, child_id, seed))
        return context_id, child_id

    def held(self, context_id: int) -> list[int]:
        """The tokens of a context."""
        return list(self.core._contexts.get(context_id).token_ids)

    def compile(self, run_id: int, kind: ConstraintKind, text: str) -> int:
        """Compile a constraint, and wait until that is done or has failed."""
        constraint_id = next(self._ids)
        self.do(CompileConstraint(constraint_id, run_id, kind, text))
        while self.core.constraints.is_waiting:
            time.sleep(0.001)
            if self.core.has_work:
                self.step()
        return constraint_id

    def free_constraint(self, run_id: int, constraint_id: int) -> None:
        self.do(FreeConstraint(constraint_id, run_id))

    def cancel(self, generation_id: int) -> None:
        self.do(CancelGeneration(generation_id))

    def evict(self, context_id: int, start: int, end: int) -> int:
        operation_id = next(self._ids)
        self.do(EvictContext(context_id, operation_id, start, end))
        return operation_id

    def save(self, context_id: int, name: str = "saved", **options: Any) -> int:
        operation_id = next(self._ids)
        self.do(SaveContext(context_id, operation_id, name, **options))
        return operation_id

    def open_saved(self, run_id: int, name: str = "saved") -> tuple[int, int]:
        """The operation, and the context that comes of it."""
        operation_id, context_id = next(self._ids), next(self._ids)
        self.do(OpenSaved(operation_id, run_id, context_id, name))
        return operation_id, context_id

    def saved(self, run_id: int) -> list[SavedContext]:
        """The saved contexts of a run's tenant."""
        operation_id = next(self._ids)
        self.do(ListSaved(operation_id, run_id))
        self.settle()
        (event,) = [e for e in self.events if isinstance(e, SavedList) and e.operation_id == operation_id]
        return list(event.contexts)

    def delete_saved(self, run_id: int, name: str = "saved") -> int:
        operation_id = next(self._ids)
        self.do(DeleteSaved(operation_id, run_id, name))
        self.settle()
        return operation_id

    def opened(self, operation_id: int) -> Opened:
        (event,) = [e for e in self.events if isinstance(e, Opened) and e.operation_id == operation_id]
        return event

    def forward(self, context_id: int, token_ids: Sequence[int], *requests: RowRequest, **options: Any) -> int:
        operation_id = next(self._ids)
        self.do(Forward(operation_id, context_id, tuple(token_ids), requests=requests, **options))
        return operation_id

    def commit(self, context_id: int, path: Sequence[int]) -> None:
        self.do(CommitForward(context_id, tuple(path)))

    def discard(self, context_id: int) -> None:
        self.do(DiscardForward(context_id))

    def forwarded(self, operation_id: int) -> Forwarded:
        (event,) = [e for e in self.events if isinstance(e, Forwarded) and e.operation_id == operation_id]
        return event

    def free(self, context_id: int) -> None:
        self.do(FreeContext(context_id))

    def publish(self, token_ids: Sequence[int], adapter: str | None = None) -> int:
        prefix_id = next(self._ids)
        self.do(PublishPrefix(prefix_id, tuple(token_ids), adapter))
        return prefix_id

    def unpublish(self, prefix_id: int) -> None:
        self.do(UnpublishPrefix(prefix_id))

    def close_run(self, run_id: int) -> None:
        self.do(CloseRun(run_id))

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            self.core.step()
        self._take_events()

    def settle(self) -> None:
        """Step until nobody waits for anything."""
        num_steps = 0
        while num_steps < 20_000:
            if self.core.has_work:
                self.step()
                num_steps += 1
            elif self.core.saves.is_waiting or self.core.constraints.is_waiting or self.core.matchers.is_waiting:
                time.sleep(0.001)
            else:
                return
        raise AssertionError("the engine does not come to rest")

    def tokens(self, generation_id: int) -> list[int]:
        chunks = [e for e in self.events if isinstance(e, Chunk) and e.generation_id == generation_id]
        return [token_id for chunk in chunks for token_id in chunk.token_ids]

    def text(self, generation_id: int) -> str:
        return "".join(e.text for e in self.events if isinstance(e, Chunk) and e.generation_id == generation_id)

    def finished(self, generation_id: int) -> Finished:
        (event,) = [e for e in self.events if isinstance(e, Finished) and e.generation_id == generation_id]
        return event

    def is_done(self, operation_id: int) -> bool:
        return Done(operation_id) in self.events

    def failure(self, failed_id: int) -> EngineError:
        (event,) = [e for e in self.events if isinstance(e, Failed) and e.failed_id == failed_id]
        return event.error

    def logits(self, context_id: int) -> torch.Tensor | None:
        """The kept logits after a context's last token, which nothing outside the engine sees yet."""
        return self.core._contexts.get(context_id).logits

    @property
    def failures(self) -> list[Failed]:
        return [event for event in self.events if isinstance(event, Failed)]

    @property
    def limits_reached(self) -> list[LimitReached]:
        return [event for event in self.events if isinstance(event, LimitReached)]

    @property
    def num_held(self) -> int:
        return self.core.stats().pages_held


MakeDriver = Callable[..., Driver]


@pytest.fixture(scope="session", autouse=True)
def one_torch_thread() -> None:
    """Tiny models gain nothing from threads, and lose much on a busy machine."""
    torch.set_num_threads(1)


@pytest.fixture
def hash_engine(tiny_folder: Path) -> Iterator[MakeDriver]:
    """Make a driver of an engine with the hash model. Everything must add up when the test ends."""
    text = ModelTokenizer(tiny_folder)
    drivers: list[Driver] = []

    def make(
        num_pages: int = 64,
        page_size: int = 4,
        max_batch_tokens: int = 32,
        context_len: int = 1000,
        prefix_cache: bool = True,
        saved: SavedContexts | None = None,
        swap_pages: int = 0,
        costs: Costs | None = None,
        runs_ahead: bool = False,
    ) -> Driver:
        info = ModelInfo(
            name="hash",
            architecture="HashForCausalLM",
            context_len=context_len,
            vocabulary_size=VOCABULARY_SIZE,
            page_size=page_size,
            num_pages=num_pages,
            eos_token_ids=text.eos_token_ids,
            features=("evict",),
            dtype="float32",
            backend="cpu",
            adapters=HASH_ADAPTERS,
        )
        runner = (AheadHashRunner if runs_ahead else HashRunner)(num_pages, page_size, max_batch_tokens)
        swap_bytes = swap_pages * runner.read_pages([0]).nbytes
        digests = {name: f"digest of {name}" for name in HASH_ADAPTERS}
        compiler = ConstraintCompiler(Vocabulary.of(text, VOCABULARY_SIZE))
        core = EngineCore(
            info, text.table, runner, max_batch_tokens, prefix_cache, saved, swap_bytes, costs, digests, compiler
        )
        drivers.append(Driver(core, info, runner))
        return drivers[-1]

    yield make
    for driver in drivers:
        driver.core.check_integrity()
        driver.core.close()


@pytest.fixture
def one_page_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of pages that are copied between steps, one is copied at a time."""
    for name in ("TRANSFER_S", "TRANSFER_SHARE", "PIECE_BYTES", "PIECE_BYTES_ALONE"):
        monkeypatch.setattr(transfers, name, 0)


@pytest.fixture
def hash_text(tiny_folder: Path) -> Callable[..., list[int]]:
    """What the hash model generates after some tokens, without any engine."""

    def generate(token_ids: Sequence[int], count: int, adapter: str | None = None) -> list[int]:
        all_ids = list(token_ids)
        for _ in range(count):
            all_ids.append(next_token(all_ids, adapter))
        return all_ids[len(token_ids) :]

    return generate


@pytest.fixture
def tiny_engine(tiny_folder: Path) -> Iterator[MakeDriver]:
    """Make a driver of an engine with the tiny model in float32. Everything must add up when the test ends."""
    drivers: list[Driver] = []

    def make(folder: Path = tiny_folder, **settings: Any) -> Driver:
        settings = {"dtype": "float32", "kv_pages": 256, "max_batch_tokens": 64} | settings
        loaded = load_engine(EngineConfig(model_name="tiny", model_path=str(folder), **settings), None)
        drivers.append(Driver(loaded.core, loaded.info))
        return drivers[-1]

    yield make
    for driver in drivers:
        driver.core.check_integrity()
        driver.core.close()


@pytest.fixture(scope="session")
def reference(tiny_folder: Path) -> Callable[..., list[int]]:
    """transformers' own greedy continuation, without stopping at eos."""
    from transformers import AutoModelForCausalLM

    models: dict[Path, Any] = {}

    def generate(token_ids: Sequence[int], count: int, folder: Path = tiny_folder) -> list[int]:
        if folder not in models:
            models[folder] = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        prompt = torch.tensor([list(token_ids)])
        output = models[folder].generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=count, do_sample=False, eos_token_id=None
        )
        continuation: list[int] = output[0, prompt.shape[1] :].tolist()
        return continuation

    return generate
