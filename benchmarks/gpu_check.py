"""What is to be checked and measured on a machine with an NVIDIA GPU, in one script and at most six minutes.

    python benchmarks/gpu_check.py [--json FILE]
    python benchmarks/gpu_check.py --cpu-smoke      only see that it runs: tiny shapes, kernels in Triton's interpreter

Downloads nothing: the model has the shape of a Llama of 1B parameters, and random weights. Needs torch, transformers,
Triton and what else the engine imports; the host, if it can be imported, for the last part. Nothing has to be installed
of this repository. Exits with 1 if a check fails. Each part prints lines; parts for which no time is left say so.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "engine"), str(ROOT / "host"), str(ROOT / "guest-sdk" / "python"), str(ROOT)]

SECONDS = 330  # after that no part begins
PROMPT = "The three primary colours are"

LLAMA_1B = {
    "vocabulary_size": 128_256,
    "num_layers": 16,
    "hidden_size": 2048,
    "num_heads": 32,
    "num_kv_heads": 8,
    "context_len": 131_072,
    "intermediate_size": 8192,
    "tie_word_embeddings": True,
    "initializer_range": 0.05,
}


@dataclass(frozen=True)
class Sizes:
    """How large everything is."""

    model: dict[str, Any]
    parity_prompts: tuple[int, ...]
    parity_tokens: int
    decode_loads: tuple[tuple[int, int, int], ...]  # sequences, prompt, tokens
    prefill: tuple[int, int]  # prompts, tokens of each
    kernel: tuple[int, int, int, int, int]  # rows, context, heads, KV heads, dim
    kernel_rounds: int
    kv_pages: int
    tax_tokens: int


FULL = Sizes(
    LLAMA_1B, (1, 17, 300), 24, ((1, 128, 192), (32, 128, 128), (256, 128, 96)), (8, 2048), (64, 4096, 32, 8, 64), 20,
    8192, 192,
)  # fmt: skip
SMOKE = Sizes({}, (1, 5), 3, ((1, 4, 3), (2, 4, 3)), (1, 12), (2, 40, 4, 2, 16), 1, 64, 4)


@dataclass
class Report:
    """What has come out, printed as it comes."""

    began: float = field(default_factory=time.monotonic)
    figures: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def note(self, name: str, figure: Any, unit: str = "") -> None:
        """Take down a figure or a word."""
        self.figures[name] = figure
        shown = f"{figure:,.4g}" if isinstance(figure, float) else str(figure)
        print(f"{time.monotonic() - self.began:6.1f} s  {name}: {shown} {unit}".rstrip(), flush=True)

    def check(self, name: str, is_right: bool, detail: str = "") -> None:
        """Take down whether something is right."""
        self.note(name, "ok" if is_right else f"WRONG {detail}")
        if not is_right:
            self.failures.append(name)


class Caller:
    """Asks an engine for generations, and notes when their tokens come."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._ids = iter(range(1_000_000, 2_000_000))
        self._is_done = threading.Event()
        self._open = 0
        self._problem: Any = None
        self._tokens: dict[int, list[int]] = {}
        self._arrivals: list[tuple[float, int]] = []
        self.listen()

    def listen(self) -> None:
        """Begin to hear of the engine's events. An engine has one listener at a time."""
        self.client.listen(self._listen)

    def generate(self, prompts: Sequence[Sequence[int]], num_tokens: int, **sampling: Any) -> Generated:
        """Generate exactly so many tokens after each prompt, all at once. Raises RuntimeError if one fails."""
        from tartlet_engine import api

        began = time.monotonic()
        self._is_done.clear()
        self._open, self._problem, self._tokens, self._arrivals = len(prompts), None, {}, []
        run_id = next(self._ids)
        commands: list[Any] = [api.OpenRun(run_id)]
        stop = api.Stop(max_tokens=num_tokens, ignore_eos=True)
        for number, prompt in enumerate(prompts):
            context_id, generation_id = next(self._ids), next(self._ids)
            self._tokens[generation_id] = []
            chosen = api.Sampling(**{"seed": number, "temperature": 0.0, **sampling})
            commands += [
                api.CreateContext(context_id, run_id),
                api.AppendTokens(context_id, tuple(prompt)),
                api.Generate(generation_id, context_id, chosen, stop),
            ]
        self.client.submit(commands)
        self._is_done.wait()
        self.client.submit([api.CloseRun(run_id)])
        if self._problem is not None:
            raise RuntimeError(f"the generation failed: {self._problem}")
        return Generated(began, list(self._tokens.values()), self._arrivals)

    def _listen(self, events: list[Any]) -> None:
        from tartlet_engine import api

        now = time.monotonic()
        for event in events:
            if isinstance(event, api.Chunk):
                self._tokens[event.generation_id] += event.token_ids
                self._arrivals += [(now, event.generation_id)] * len(event.token_ids)
            elif isinstance(event, api.Finished):
                self._open -= 1
            elif isinstance(event, api.Failed | api.EngineStopped):
                self._problem, self._open = event, 0
        if self._open == 0:
            self._is_done.set()


@dataclass(frozen=True)
class Generated:
    """The tokens of each generation, and when they came."""

    began: float
    tokens: list[list[int]]
    arrivals: list[tuple[float, int]]

    @property
    def decode_rate(self) -> float:
        """Tokens per second from the moment on at which every generation has its first."""
        firsts = {generation: at for at, generation in reversed(self.arrivals)}
        began, ended = max(firsts.values()), self.arrivals[-1][0]
        return sum(at > began for at, _ in self.arrivals) / (ended - began)

    @property
    def prefill_seconds(self) -> float:
        """Until every generation has its first token."""
        firsts = {generation: at for at, generation in reversed(self.arrivals)}
        return max(firsts.values()) - self.began


# ---- The parts ------------------------------------------------------------------------------------------------------


def check_kernels(report: Report, device: Any, sizes: Sizes) -> None:
    """The kernels against the reference in plain torch, in float32, for a few shapes and dtypes."""
    import torch

    from tartlet_engine.attention import PagedAttentionStep
    from tartlet_engine.cuda.device_step import to_device
    from tartlet_engine.cuda.paged_attention import TritonAttentionStep

    shapes = ((8, 2, 64, 16), (7, 1, 128, 24), (4, 4, 80, 64)) if sizes is FULL else ((4, 2, 16, 4),)
    tolerances = {torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}
    for num_heads, num_kv_heads, dim, page_size in shapes:
        for dtype, tolerance in tolerances.items():
            for window, softcap in ((None, None), (100, 20.0)):
                lengths, prefills = (
                    ([1, 2 * page_size, 700], [(0, 150), (333, 70)]) if sizes is FULL else ([9], [(3, 5)])
                )
                batch, cache = make_step(lengths, prefills, page_size, num_kv_heads, dim, dtype)
                num_rows = len(batch.positions)
                rows = [torch.randn(num_rows, heads, dim).to(dtype).transpose(0, 1)
                        for heads in (num_heads, num_kv_heads, num_kv_heads)]  # fmt: skip
                ours, wide = copy_cache(cache, dtype, device), copy_cache(cache, torch.float32, torch.device("cpu"))
                step = TritonAttentionStep(to_device(batch, device), ours)
                output = step.attend(0, *[row.to(device) for row in rows], dim**-0.5, window, softcap).float().cpu()
                expected = PagedAttentionStep(batch, wide).attend(
                    0, *[row.float() for row in rows], dim**-0.5, window, softcap
                )
                error = float((output - expected).abs().max())
                name = f"attention {str(dtype)[6:]} {num_heads}/{num_kv_heads}x{dim} page {page_size}"
                written = torch.equal(ours.keys[0].float().cpu(), wide.keys[0])
                report.check(f"{name} window {window}", error < tolerance and written, f"error {error:.2g}")


def check_sampling(report: Report, device: Any, sizes: Sizes) -> None:
    """Sampling on the device against the CPU's, with the same seeds."""
    import torch

    from tartlet_engine.api import Sampling
    from tartlet_engine.cuda.device_sampler import launch_sampling
    from tartlet_engine.sampler import Sampled, SamplingRow, sample

    num_rows, vocabulary_size = (256, 128_256) if sizes is FULL else (4, 2000)
    logits = torch.randn(num_rows, vocabulary_size) * 3
    kinds: list[dict[str, Any]] = [{"temperature": 0.0}, {"top_p": 0.95}, {"top_k": 40}, {"min_p": 0.05}, {}]
    rows = [SamplingRow(Sampling(seed=number, **kinds[number % len(kinds)]), number) for number in range(num_rows)]
    on_device = logits.to(device)
    pairs = zip(launch_sampling(on_device, rows).wait(), sample(logits, rows), strict=True)
    different = sum(not (isinstance(a, Sampled) and isinstance(b, Sampled) and a.token_id == b.token_id)
                    for a, b in pairs)  # fmt: skip
    # A random number within rounding of a border between two tokens may fall on either side.
    report.check("sampling equals the CPU's", different <= num_rows // 50, f"{different} of {num_rows} differ")
    for name, kind in (("greedy", kinds[0]), ("top-p 0.95", kinds[1]), ("top-k 40", kinds[2])):
        rows = [SamplingRow(Sampling(seed=number, **kind), number) for number in range(num_rows)]
        seconds = measure_seconds(lambda rows=rows: launch_sampling(on_device, rows), device, sizes.kernel_rounds)
        report.note(f"sampling {num_rows} rows, {name}", seconds * 1e3, "ms")


def measure_decode_kernel(report: Report, device: Any, sizes: Sizes) -> None:
    """How much of the memory's bandwidth decode attention uses."""
    import torch

    from tartlet_engine.cuda.device_step import to_device
    from tartlet_engine.cuda.paged_attention import TritonAttentionStep

    num_rows, context_len, num_heads, num_kv_heads, dim = sizes.kernel
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    for row_dim in {dim, 2 * dim}:
        batch, cache = make_step([context_len] * num_rows, [], 16, num_kv_heads, row_dim, dtype)
        ours, step = copy_cache(cache, dtype, device), to_device(batch, device)
        query = torch.randn(num_heads, num_rows, row_dim, device=device, dtype=dtype)
        key = torch.randn(num_kv_heads, num_rows, row_dim, device=device, dtype=dtype)
        attention = TritonAttentionStep(step, ours)
        seconds = measure_seconds(
            lambda q=query, k=key, a=attention: a.attend(0, q, k, k, 0.1, None, None), device, sizes.kernel_rounds
        )
        num_bytes = 2 * num_rows * context_len * num_kv_heads * row_dim * dtype.itemsize
        name = f"decode attention, {num_rows} rows of {context_len}, {num_heads}/{num_kv_heads}x{row_dim}"
        report.note(name, seconds * 1e6, "us")
        report.note(f"{name}, bandwidth", num_bytes / seconds / 1e9, "GB/s")
        if peak := peak_bandwidth(device):
            report.note(f"{name}, of the peak (goal: 80 %)", 100 * num_bytes / seconds / peak, "%")


def check_parity(report: Report, folder: Path, device: Any, sizes: Sizes) -> None:
    """Greedy tokens against transformers' own, in float32."""
    import torch
    from transformers import AutoModelForCausalLM

    from tartlet_engine.engine import start_engine

    prompts = [[3 + (7 * i + k) % 400 for i in range(n)] for k, n in enumerate(sizes.parity_prompts)]
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).to(device).eval()
    expected = []
    for prompt in prompts:
        ids = torch.tensor([prompt], device=device)
        output = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=sizes.parity_tokens, do_sample=False,
            eos_token_id=None,
        )  # fmt: skip
        expected.append(output[0, len(prompt) :].tolist())
    del model
    client = start_engine(engine_config(folder, device, sizes, dtype="float32"))
    try:
        ours = Caller(client).generate(prompts, sizes.parity_tokens).tokens
    finally:
        client.close()
    for prompt, tokens, wanted in zip(prompts, ours, expected, strict=True):
        report.check(f"greedy tokens after {len(prompt)}", tokens == wanted, f"{tokens} instead of {wanted}")


def measure_engine(report: Report, folder: Path, device: Any, sizes: Sizes) -> None:
    """Tokens per second of the whole engine, with and without graphs, and the tax of a real program."""
    from tartlet_engine.engine import start_engine

    dtype = "bfloat16" if device.type == "cuda" else "float32"
    for has_graphs in (True, False) if device.type == "cuda" else (False,):
        client = start_engine(engine_config(folder, device, sizes, dtype=dtype, cuda_graphs=has_graphs))
        try:
            caller = Caller(client)
            way = "graphs" if has_graphs else "kernel by kernel"
            for num_sequences, prompt_len, num_tokens in sizes.decode_loads:
                prompts = [[(17 * i + k) % 500 + 3 for i in range(prompt_len)] for k in range(num_sequences)]
                caller.generate(prompts, min(num_tokens, 8))  # compiles, captures
                rate = max(caller.generate(prompts, num_tokens).decode_rate for _ in range(2))
                report.note(f"decode of {num_sequences}, {way}", rate, "tokens/s")
                sampled = caller.generate(prompts, num_tokens, temperature=0.8, top_p=0.95).decode_rate
                report.note(f"decode of {num_sequences}, {way}, top-p 0.95", sampled, "tokens/s")
            if has_graphs or device.type != "cuda":
                count, length = sizes.prefill
                for _ in range(2):  # the first compiles
                    prompts = [[(19 * i + k) % 500 + 3 for i in range(length)] for k in range(count)]
                    seconds = caller.generate(prompts, 1).prefill_seconds
                report.note(f"prefill of {count} x {length}", count * length / seconds, "tokens/s")
                measure_tax(report, client, caller, sizes)
        finally:
            client.close()


def measure_tax(report: Report, client: Any, caller: Caller, sizes: Sizes) -> None:
    """What a token costs more through an inferlet than asked of the engine directly."""
    try:
        from benchmarks.direct import DirectCaller, SharedEngine
        from benchmarks.hosting import open_host
        from tartlet.languages.python import runner_component

        runner_component()
    except Exception as error:
        report.note("programmability tax", f"not measured: {type(error).__name__}: {error}")
        return
    client.listen(None)
    engine = SharedEngine(client)
    direct = DirectCaller(engine)
    prompt = engine.text(next(iter(engine.models))).encode(PROMPT)
    with open_host(engine, spares=1) as host:
        program = host.load("completion.py")
        for way, interval in (("awaited whole", None), ("every chunk", 0.0)):
            given = {"prompt": PROMPT, "max_tokens": sizes.tax_tokens, "chunk_interval": interval}
            times: dict[str, list[float]] = {"direct": [], "inferlet": []}
            for _ in range(5 if sizes is FULL else 1):
                began = time.monotonic()
                direct.generate([prompt], sizes.tax_tokens)
                times["direct"].append(time.monotonic() - began)
                began = time.monotonic()
                assert host.run(program, given) == sizes.tax_tokens
                times["inferlet"].append(time.monotonic() - began)
            tax = (min(times["inferlet"]) - min(times["direct"])) * 1e3 / sizes.tax_tokens
            report.note(f"programmability tax, {way} (goal: 0.2)", tax, "ms/token")
    client.listen(None)
    caller.listen()


# ---- Helpers --------------------------------------------------------------------------------------------------------


def engine_config(folder: Path, device: Any, sizes: Sizes, **settings: Any) -> Any:
    """How the engine is started."""
    from tartlet_engine.api import EngineConfig

    return EngineConfig(
        model_name="random-1b", model_path=str(folder), device=device.type, runner="triton", kv_pages=sizes.kv_pages,
        max_batch_tokens=2048, prefix_cache=False, **settings,
    )  # fmt: skip


def make_step(
    decode_lens: Sequence[int], prefills: Sequence[tuple[int, int]], page_size: int, num_kv_heads: int, dim: int,
    dtype: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """A step of decodes and of prefills (tokens before, tokens) over scattered pages with random contents."""
    import torch

    from tartlet_engine.batch import DecodeGroup, PrefillSegment, StepBatch
    from tartlet_engine.kv_cache import KvCache, LayerShape

    contexts = [(length - 1, 1) for length in decode_lens] + list(prefills)
    counts = [-(-(start + count) // page_size) for start, count in contexts]
    pages = torch.randperm(sum(counts))
    tables = list(pages.split(counts))
    cache = KvCache([LayerShape(num_kv_heads, dim, dim)], len(pages), page_size, dtype, torch.device("cpu"))
    for tensor in (*cache.keys, *cache.values):
        tensor.normal_()
    places = [(table, start + i) for table, (start, count) in zip(tables, contexts, strict=True) for i in range(count)]
    width = max(counts[: len(decode_lens)], default=0)
    padded = [torch.nn.functional.pad(table, (0, width - len(table))) for table in tables[: len(decode_lens)]]
    segments, first_row = [], len(decode_lens)
    for (start, count), table in zip(prefills, tables[len(decode_lens) :], strict=True):
        segments.append(PrefillSegment(first_row, count, start, table))
        first_row += count
    positions = torch.tensor([position for _, position in places])
    batch = StepBatch(
        token_ids=positions,
        positions=positions,
        page_ids=torch.stack([table[position // page_size] for table, position in places]),
        offsets=positions % page_size,
        logit_rows=positions[:0],
        decode_groups=(DecodeGroup(0, torch.stack(padded), torch.tensor(decode_lens)),),
        prefill_segments=tuple(segments),
    )
    return batch, cache


def copy_cache(cache: Any, dtype: Any, device: Any) -> Any:
    """The same pages in another dtype or on another device."""
    from tartlet_engine.kv_cache import KvCache, LayerShape

    _, num_kv_heads, page_size, dim = cache.keys[0].shape
    copy = KvCache([LayerShape(num_kv_heads, dim, dim)], cache.num_pages, page_size, dtype, device)
    copy.keys[0].copy_(cache.keys[0])
    copy.values[0].copy_(cache.values[0])
    return copy


def measure_seconds(launch: Callable[[], object], device: Any, rounds: int) -> float:
    """Median seconds of a launch, after one that compiles."""
    import torch

    launch()
    seconds = []
    for _ in range(rounds):
        if device.type == "cuda":
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize(device)
            first.record()
            launch()
            last.record()
            last.synchronize()
            seconds.append(first.elapsed_time(last) / 1e3)
        else:
            began = time.perf_counter()
            launch()
            seconds.append(time.perf_counter() - began)
    return sorted(seconds)[len(seconds) // 2]


def peak_bandwidth(device: Any) -> float | None:
    """Bytes per second that the device's memory can give by its clock and width, if torch tells."""
    import torch

    if device.type != "cuda":
        return None
    facts = torch.cuda.get_device_properties(device)
    clock_khz, width_bits = getattr(facts, "memory_clock_rate", 0), getattr(facts, "memory_bus_width", 0)
    return 2e3 * clock_khz * width_bits / 8 or None


def main() -> int:
    """Run all parts. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Check and measure Tartlet on an NVIDIA GPU.")
    parser.add_argument("--cpu-smoke", action="store_true", help="tiny shapes in Triton's interpreter, on the CPU")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    if options.cpu_smoke:
        os.environ["TRITON_INTERPRET"] = "1"
        from tartlet_engine.cuda.interpreter import use_interpreter

        use_interpreter()
    import torch
    import transformers
    import triton

    if not options.cpu_smoke and not torch.cuda.is_available():
        print("there is no GPU; --cpu-smoke runs tiny shapes on the CPU", file=sys.stderr)
        return 2
    device, sizes = (torch.device("cpu"), SMOKE) if options.cpu_smoke else (torch.device("cuda"), FULL)
    torch.manual_seed(0)
    report = Report()
    report.note("device", torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU, interpreter")
    report.note("versions", f"torch {torch.__version__}, transformers {transformers.__version__}, {triton.__version__}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts: list[Callable[[], None]] = [
            lambda: check_kernels(report, device, sizes),
            lambda: check_sampling(report, device, sizes),
            lambda: measure_decode_kernel(report, device, sizes),
            lambda: make_model(report, folder, device, sizes),
            lambda: measure_engine(report, folder, device, sizes),
            lambda: check_parity(report, folder, device, sizes),
        ]
        for number, part in enumerate(parts):
            if time.monotonic() - report.began > SECONDS:
                report.note(f"part {number + 1}", "skipped: no time left")
                continue
            try:
                part()
            except Exception as error:
                report.check(f"part {number + 1}", False, f"{type(error).__name__}: {error}")
    if options.json is not None:
        options.json.write_text(json.dumps({"figures": report.figures, "failures": report.failures}, indent=2) + "\n")
    print(
        f"{len(report.failures)} checks failed: {', '.join(report.failures)}"
        if report.failures
        else "all checks passed"
    )
    return 1 if report.failures else 0


def make_model(report: Report, folder: Path, device: Any, sizes: Sizes) -> None:
    """Write the model with random weights."""
    from tartlet_engine.tiny import make_tiny_model

    make_tiny_model(folder, **sizes.model)
    size = sum(file.stat().st_size for file in folder.iterdir())
    report.note("model of random weights", size / 1e9, "GB")


if __name__ == "__main__":
    sys.exit(main())
