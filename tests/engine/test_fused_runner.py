"""The fused runner: transformers' logits in float32, and in every format the same bits however work is scheduled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForCausalLM

from tartlet_engine.accounts import RunAccount
from tartlet_engine.adapter_file import read_adapter
from tartlet_engine.batch import build_batch, order_chunks
from tartlet_engine.fused_runner import FusedRunner, fused_page_bytes
from tartlet_engine.kernels.build import INSTRUCTION_SETS, KernelsUnavailableError, load_kernels
from tartlet_engine.llama_shape import read_shape
from tartlet_engine.llama_weights import embedding_format
from tartlet_engine.packed_model import pack_model
from tartlet_engine.packing import WeightFormat, rounded
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Sequence
from tartlet_engine.step_plan import Chunk
from tartlet_engine.tiny import make_tiny_adapter, make_tiny_model

CPU = torch.device("cpu")
PAGE_SIZE = 16

VARIANTS: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama3-rope": {
        "rope_parameters": {
            "rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        }
    },
    "llama-linear-rope": {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}},
    "llama-odd-sizes": {
        "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "vocabulary_size": 301,
        "hidden_size": 60, "num_heads": 6, "num_kv_heads": 1, "head_dim": 18, "intermediate_size": 77,
    },
    "llama-many-heads": {"num_heads": 32, "num_kv_heads": 2, "head_dim": 8},
    "mistral": {"architecture": "mistral", "sliding_window": 19},
    "qwen2": {"architecture": "qwen2"},
    "qwen2-windows": {
        "architecture": "qwen2", "use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1,
        "num_heads": 7, "num_kv_heads": 1, "hidden_size": 70, "head_dim": 10,
    },
    "qwen3": {"architecture": "qwen3", "head_dim": 32},
}  # fmt: skip


def available_sets() -> list[str]:
    names = []
    for each in INSTRUCTION_SETS:
        try:
            names.append(load_kernels(each.name).instruction_set)
        except KernelsUnavailableError:
            continue
    return names


@pytest.fixture(params=[each.name for each in INSTRUCTION_SETS])
def instruction_set(request: pytest.FixtureRequest) -> str:
    """Each that this CPU has."""
    try:
        return load_kernels(request.param).instruction_set
    except KernelsUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=list(VARIANTS))
def variant(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The folder of a tiny random model, and the model as transformers loads it."""
    folder = make_tiny_model(tmp_path_factory.mktemp("variant"), **VARIANTS[request.param])
    return folder, AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def make_runner(
    folder: Path,
    weight_format: WeightFormat = WeightFormat.FLOAT32,
    num_pages: int = 64,
    num_threads: int = 1,
    instruction_set: str | None = None,
) -> FusedRunner:
    model = pack_model(folder, AutoConfig.from_pretrained(folder), weight_format)
    return FusedRunner(model, num_pages, num_threads, instruction_set)


class Schedule:
    """Sequences over one pool, stepped as a test says."""

    def __init__(self, runner: FusedRunner, num_pages: int = 64) -> None:
        self.runner = runner
        self.pool = PagePool(num_pages, PAGE_SIZE)
        self.account = RunAccount(1, "local", None, None)
        self.num_sequences = 0

    def start(self, token_ids: list[int], adapter: str | None = None) -> Sequence:
        self.num_sequences += 1
        page_table = PageTable(self.pool, self.account)
        return Sequence(self.num_sequences, self.account, page_table, list(token_ids), adapter=adapter)

    def fork(self, parent: Sequence, length: int) -> Sequence:
        """A sequence that shares the pages of the parent's first tokens."""
        child = self.start(parent.token_ids[:length], parent.adapter)
        child.page_table.share_prefix(parent.page_table, length)
        child.num_computed = length
        return child

    def step(self, work: list[tuple[Sequence, int]]) -> dict[int, torch.Tensor]:
        """Compute so many tokens of each. Returns the logits of those that are then complete, by context id."""
        chunks, copies = [], []
        for sequence, num_tokens in work:
            num_tokens = min(num_tokens, len(sequence.token_ids) - sequence.num_computed)
            if num_tokens:
                copy = sequence.page_table.reserve(sequence.num_computed, sequence.num_computed + num_tokens)
                copies += [] if copy is None else [copy]
                chunks.append(Chunk(sequence, sequence.num_computed, num_tokens))
        chunks = order_chunks(chunks)
        rows = iter(self.runner.forward(build_batch(chunks, copies, PAGE_SIZE, CPU)))
        logits = {}
        for chunk in chunks:
            chunk.sequence.num_computed = chunk.end
            if chunk.logit_slots:
                logits[chunk.sequence.context_id] = next(rows)
        return logits

    def compute(self, sequence: Sequence, chunk_len: int = 1000) -> torch.Tensor:
        """Compute one sequence to its end, alone. Returns its last logits."""
        logits: dict[int, torch.Tensor] = {}
        while sequence.num_computed < len(sequence.token_ids):
            logits = self.step([(sequence, chunk_len)])
        return logits[sequence.context_id]


def prompt(length: int, seed: int = 0) -> list[int]:
    return torch.randint(3, 300, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def test_float32_logits_equal_transformers(variant: tuple[Path, Any], instruction_set: str) -> None:
    """At prompts of one token, of one page and a little more or less, and of several."""
    folder, model = variant
    schedule = Schedule(make_runner(folder, instruction_set=instruction_set))
    for length in (1, 2, 15, 16, 17, 50):
        token_ids = prompt(length, seed=length)
        with torch.inference_mode():
            expected = model(torch.tensor([token_ids])).logits[0, -1]

        torch.testing.assert_close(schedule.compute(schedule.start(token_ids)), expected, atol=1e-4, rtol=0)


def test_pages_are_read_and_written_back(variant: tuple[Path, Any]) -> None:
    """A sequence whose pages moved goes on with the same bits; another shape is refused."""
    schedule = Schedule(make_runner(variant[0], WeightFormat.BFLOAT16))
    stayed, moved = schedule.start(prompt(37)), schedule.start(prompt(37))
    schedule.compute(stayed)
    schedule.compute(moved)
    contents = schedule.runner.read_pages(moved.page_table.page_ids)
    others = schedule.pool.allocate(3)
    schedule.runner.write_pages(moved.page_table.page_ids, torch.zeros_like(contents))
    schedule.runner.write_pages(others, contents)
    moved.page_table.page_ids[:] = others
    for sequence in (stayed, moved):
        sequence.token_ids.append(7)

    assert torch.equal(schedule.compute(stayed), schedule.compute(moved))
    with pytest.raises(ValueError, match="uint8"):
        schedule.runner.write_pages([0], contents)


def test_float32_greedy_tokens_equal_transformers(variant: tuple[Path, Any]) -> None:
    """Thirty tokens after a prompt, decoded one by one."""
    folder, model = variant
    schedule = Schedule(make_runner(folder, num_threads=2))
    token_ids = prompt(21)
    expected = model.generate(
        torch.tensor([token_ids]), attention_mask=torch.ones(1, 21), max_new_tokens=30, do_sample=False,
        eos_token_id=None,
    )  # fmt: skip
    sequence = schedule.start(token_ids)
    for _ in range(30):
        sequence.token_ids.append(int(schedule.compute(sequence).argmax()))

    assert expected[0].tolist() == sequence.token_ids


@pytest.fixture(scope="module", params=list(WeightFormat)[1:], ids=lambda each: each.name)
def exact_model(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Any, WeightFormat]:
    """A tiny model whose weights a format holds exactly: its folder, the model in float32, and the format."""
    folder = make_tiny_model(tmp_path_factory.mktemp("exact"), initializer_range=0.1)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 2:
                is_table = "embed_tokens" in name or "lm_head" in name
                weight.copy_(rounded(weight, embedding_format(request.param) if is_table else request.param))
    model.save_pretrained(folder)
    return folder, model, request.param


def test_other_formats_round_activations_alone(
    exact_model: tuple[Path, Any, WeightFormat], instruction_set: str
) -> None:
    """With weights that the format holds exactly, logits are those of float32 but for some parts in a thousand."""
    folder, model, weight_format = exact_model
    token_ids = prompt(60)
    with torch.inference_mode():
        expected = model(torch.tensor([token_ids])).logits[0, -1]
    schedule = Schedule(make_runner(folder, weight_format, instruction_set=instruction_set))
    error = schedule.compute(schedule.start(token_ids)) - expected

    assert error.square().mean().sqrt() < 0.01 * expected.std()


@pytest.fixture(scope="module", params=list(WeightFormat), ids=lambda each: each.name)
def runners(
    request: pytest.FixtureRequest, tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[FusedRunner]]:
    """The tiny model in one format, on one, two and three threads, with two adapters."""
    if not available_sets():
        pytest.skip("this CPU has no kernels")
    made = [make_runner(tiny_folder, request.param, num_threads=threads) for threads in (1, 2, 3)]
    for name, seed, rank in (("small", 1, 4), ("large", 2, 40)):
        folder = make_tiny_adapter(tmp_path_factory.mktemp(name), tiny_folder, seed=seed, rank=rank)
        for runner in made:
            runner.add_adapter(read_adapter(name, folder, max_bytes=1 << 20))
    yield made
    for runner in made:
        runner.close()


@given(data=st.data())
@settings(max_examples=30)
def test_the_bits_do_not_depend_on_the_schedule(runners: list[FusedRunner], data: st.DataObject) -> None:
    """Any chunks, company and adapters, forked or fresh, on any number of threads: the logits of a prompt alone."""
    schedule = Schedule(data.draw(st.sampled_from(runners), label="threads"))
    lengths = data.draw(st.lists(st.integers(1, 90), min_size=1, max_size=6), label="lengths")
    adapters = st.sampled_from([None, "small", "large"])
    sequences = [
        schedule.start(prompt(length, seed), data.draw(adapters, label="adapter"))
        for seed, length in enumerate(lengths)
    ]
    logits: dict[int, torch.Tensor] = {}
    while any(sequence.num_computed < len(sequence.token_ids) for sequence in sequences):
        takes = data.draw(st.lists(st.integers(0, 40), min_size=len(sequences), max_size=len(sequences)), label="step")
        if not any(takes):
            takes = [1] * len(takes)
        logits |= schedule.step(list(zip(sequences, takes, strict=True)))
        parent = data.draw(st.sampled_from(sequences), label="parent")
        if parent.num_computed and len(sequences) < 8 and data.draw(st.booleans(), label="fork"):
            length = data.draw(st.integers(1, parent.num_computed), label="fork length")
            child = schedule.fork(parent, length)
            child.token_ids += prompt(data.draw(st.integers(1, 20), label="added"), seed=99)
            sequences.append(child)

    for sequence in sequences:
        alone = Schedule(runners[0])
        expected = alone.compute(alone.start(sequence.token_ids, sequence.adapter))
        assert torch.equal(expected, logits[sequence.context_id])


def test_long_contexts_outgrow_the_workspace(tiny_folder: Path) -> None:
    """A runner that has seen short contexts takes long ones, and then short ones again, with the same bits."""
    schedule = Schedule(make_runner(tiny_folder, num_pages=256), num_pages=256)
    short = schedule.compute(schedule.start(prompt(5)))
    long = schedule.compute(schedule.start(prompt(1500)), chunk_len=700)

    assert torch.equal(short, schedule.compute(schedule.start(prompt(5))))
    assert torch.equal(long, schedule.compute(schedule.start(prompt(1500)), chunk_len=1500))


def test_a_position_beyond_the_context_is_refused(tiny_folder: Path) -> None:
    """The rotary tables end there."""
    config = AutoConfig.from_pretrained(tiny_folder)
    model = pack_model(tiny_folder, config, WeightFormat.FLOAT32, context_len=40)
    schedule = Schedule(FusedRunner(model, num_pages=64, num_threads=1))
    schedule.compute(schedule.start(prompt(40)))

    with pytest.raises(ValueError, match="a position is 40; this model has 40"):
        schedule.compute(schedule.start(prompt(41)))


def test_steps_without_logits_give_none(tiny_folder: Path) -> None:
    """A chunk that does not end its prompt."""
    schedule = Schedule(make_runner(tiny_folder))

    assert schedule.step([(schedule.start(prompt(20)), 10)]) == {}


def test_pages_have_the_size_that_was_told(tiny_folder: Path) -> None:
    """Keys and values of 16 tokens, in 2 layers with 2 heads of 16 dimensions."""
    shape = read_shape(AutoConfig.from_pretrained(tiny_folder))

    assert fused_page_bytes(shape, WeightFormat.FLOAT32) == 2 * 2 * 2 * 16 * 16 * 4
    assert fused_page_bytes(shape, WeightFormat.INT4) == 2 * 2 * 2 * 16 * 16 * 2


def test_closing_twice_is_no_error(tiny_folder: Path) -> None:
    """The threads are stopped once."""
    runner = make_runner(tiny_folder, num_threads=2)
    runner.close()
    runner.close()
