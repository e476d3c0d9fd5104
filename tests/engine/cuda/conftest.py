"""Without a GPU, the kernels run in Triton's interpreter, on the CPU. Without Triton, nothing runs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

# Before any test imports a kernel: Triton asks when a kernel is defined.
if importlib.util.find_spec("triton") is not None and not torch.cuda.is_available():
    from tartlet_engine.cuda.interpreter import use_interpreter

    use_interpreter()


class RecordedGraph:
    """Operations of torch and launches of kernels, in order: stands in for a CUDA graph where there is no GPU.

    As a CUDA graph, it repeats exact operations over exact memory: no Python of the captured function runs again, so
    whatever that function decided by values is fixed. As a capture, a recording fails when the function waits for a
    value of the device.
    """

    def __init__(self) -> None:
        self.actions: list[Callable[[], object]] = []
        self.output = torch.empty(0)

    def replay(self) -> None:
        for action in self.actions:
            action()


class RecordedGraphs:
    """A `decode_graphs.GraphBackend`."""

    def __init__(self, bytes_per_graph: int = 1) -> None:
        self.bytes_per_graph = bytes_per_graph
        self.graphs: list[RecordedGraph] = []

    def capture(self, compute: Callable[[], torch.Tensor]) -> RecordedGraph:
        graph = RecordedGraph()
        from triton.runtime.interpreter import GridExecutor

        launch: Any = GridExecutor.__call__

        def launch_and_record(executor: Any, *args: Any, **kwargs: Any) -> None:
            def action() -> None:
                launch(executor, *args, **kwargs)

            with _disable_current_modes():
                action()
            graph.actions.append(action)

        GridExecutor.__call__ = launch_and_record
        try:
            with _Recorder(graph):
                graph.output = compute()
        finally:
            GridExecutor.__call__ = launch
        self.graphs.append(graph)
        return graph

    def held_bytes(self) -> int:
        return len(self.graphs) * self.bytes_per_graph


class _Recorder(TorchDispatchMode):
    """Notes every operation with the tensors that it got, and puts its results where they were put first."""

    def __init__(self, graph: RecordedGraph) -> None:
        super().__init__()
        self._graph = graph

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("operation not permitted when stream is capturing: a value of the device is waited for")
        kwargs = kwargs or {}
        results = func(*args, **kwargs)

        def action() -> None:
            again = func(*args, **kwargs)
            for old, new in zip(_tensors(results), _tensors(again), strict=True):
                if old.data_ptr() != new.data_ptr():
                    old.copy_(new)

        self._graph.actions.append(action)
        return results


def _tensors(results: Any) -> list[torch.Tensor]:
    parts = results if isinstance(results, (tuple, list)) else [results]
    return [part for part in parts if isinstance(part, torch.Tensor)]


@pytest.fixture(scope="session")
def device() -> torch.device:
    """Where kernels run."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture
def graph_backend(device: torch.device) -> Any:
    """What captures graphs: CUDA, or its stand-in."""
    from tartlet_engine.cuda.decode_graphs import CudaGraphs

    return CudaGraphs(device) if device.type == "cuda" else RecordedGraphs()


@pytest.fixture
def cuda_engine(tiny_engine: Any, device: torch.device) -> Callable[..., Any]:
    """Make a driver of an engine whose model runs through `CudaRunner`, with Triton's kernels."""

    def make(*args: Any, graph_backend: Any = None, **settings: Any) -> Any:
        driver = tiny_engine(*args, runner="triton", device=device.type, cuda_graphs=False, **settings)
        runner = driver.core._stepper._runner
        launch_ahead, driver.num_ahead = runner.forward_ahead, 0

        def count_and_launch(batch: Any, token_ids: torch.Tensor) -> torch.Tensor:
            driver.num_ahead += len(token_ids)
            return launch_ahead(batch, token_ids)

        runner.forward_ahead = count_and_launch
        if graph_backend is not None:
            from tartlet_engine.cuda.decode_graphs import DecodeGraphs

            page_size = driver.info.page_size
            runner.graphs = DecodeGraphs(runner._compute, graph_backend, device, driver.info.context_len, page_size)
        return driver

    return make
