"""LoRA adapters on transformers' own modules, for any number of adapters in one step.

Hooks on the linear modules add to the outputs of the rows that have an adapter; other rows are not touched. Which rows
these are is known while a step is computed, and only then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from tartlet_engine.adapter_file import Adapter
from tartlet_engine.batch import AdapterSpan


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """An adapter's matrices for one module, in the model's dtype and on its device."""

    down: torch.Tensor
    up: torch.Tensor

    def __call__(self, inputs: torch.Tensor) -> torch.Tensor:
        return F.linear(F.linear(inputs, self.down), self.up)


class ModuleAdapters:
    """The adapters of one model. One step at a time."""

    def __init__(self, model: torch.nn.Module) -> None:
        """Start with none."""
        self._model = model
        self._pairs: dict[str, dict[str, _Pair]] = {}  # by module, by adapter
        self._spans: Sequence[AdapterSpan] = ()

    def add(self, adapter: Adapter) -> int:
        """Hold an adapter, all of whose modules are linear and see all rows of a step. Returns the bytes it takes."""
        num_bytes = 0
        for name, matrices in adapter.modules.items():
            module = self._model.get_submodule(name)
            like: Any = module.weight
            pair = _Pair(matrices.down.to(like), matrices.up.to(like))
            num_bytes += pair.down.nbytes + pair.up.nbytes
            if name not in self._pairs:
                self._pairs[name] = {}
                module.register_forward_hook(self._hook(self._pairs[name]))
            self._pairs[name][adapter.name] = pair
        return num_bytes

    @contextmanager
    def on(self, spans: Sequence[AdapterSpan]) -> Iterator[None]:
        """Let the adapters be added to these rows of what is computed until the end of the block."""
        self._spans = spans
        try:
            yield
        finally:
            self._spans = ()

    def _hook(self, pairs: dict[str, _Pair]) -> Any:
        def add(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
            for span in self._spans:
                pair = pairs.get(span.adapter)
                if pair is not None:
                    output[0, span.rows] += pair(inputs[0][0, span.rows])

        return add
