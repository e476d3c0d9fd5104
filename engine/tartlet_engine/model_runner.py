"""Runs the model: from a step's batch to the logits of the rows asked for.

`ModelRunner` is what the engine needs of a model; `TransformersRunner` is transformers' own modules with paged
attention, which covers every architecture that goes through transformers' attention interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from tartlet_engine.adapter_file import Adapter
from tartlet_engine.attention import AttentionStep, PagedAttentionStep, ShapeProbe
from tartlet_engine.batch import StepBatch
from tartlet_engine.kv_cache import KvCache, LayerShape
from tartlet_engine.module_adapters import ModuleAdapters
from tartlet_engine.page_table import SlotMoves

_PROBE_LEN = 3


class ModelRunner(Protocol):
    """A loaded model with its KV cache."""

    @property
    def device(self) -> torch.device:
        """Where batches must be."""
        ...

    @property
    def logits_device(self) -> torch.device:
        """Where the logits that `forward` returns are."""
        ...

    @property
    def is_batch_invariant(self) -> bool:
        """Whether a token's keys, values and logits are the same bits, whatever it is computed with."""
        ...

    def forward(self, batch: StepBatch) -> torch.Tensor:
        """Compute a step: keys and values go into the pages, the logits float32[R, V] are returned."""
        ...

    def add_adapter(self, adapter: Adapter) -> int:
        """Hold a LoRA adapter, for rows whose `StepBatch.adapter_spans` name it. Returns the bytes that it takes.

        Raises ModelLoadError if it does not fit the model.
        """
        ...

    def move_slots(self, moves: SlotMoves) -> None:
        """Move keys and values of tokens from one page to another, in all layers."""
        ...

    def read_pages(self, page_ids: Sequence[int]) -> torch.Tensor:
        """Return the contents of pages, all layers: uint8[len(page_ids), page_bytes] in the host's memory."""
        ...

    def write_pages(self, page_ids: Sequence[int], contents: torch.Tensor) -> None:
        """Put back what `read_pages` returned, into the same or other pages. Raises ValueError for another shape."""
        ...


class TransformersRunner:
    """A causal language model of transformers, loaded with the attention implementation `attention.ATTENTION_NAME`."""

    is_batch_invariant = False

    def __init__(self, model: torch.nn.Module, kv_cache: KvCache) -> None:
        """Run `model` over the pages of `kv_cache`, which must have the layers that `probe_layer_shapes` found."""
        self._model = model
        self._kv_cache = kv_cache
        self._adapters = ModuleAdapters(model)
        self.device = self.logits_device = kv_cache.keys[0].device

    @torch.inference_mode()
    def forward(self, batch: StepBatch) -> torch.Tensor:
        """Compute a step: `ModelRunner.forward`. On the thread whose torch settings apply."""
        self._kv_cache.copy_pages(batch.page_copies)
        # A page has a new owner when its first slot is written: what is kept of a page always begins with that slot.
        self._kv_cache.clear_pages(batch.page_ids[batch.offsets == 0])
        step = PagedAttentionStep(batch, self._kv_cache)
        with self._adapters.on(batch.adapter_spans):
            return model_forward(self._model, batch.token_ids, batch.positions, batch.logit_rows, step)

    def add_adapter(self, adapter: Adapter) -> int:
        """Hold a LoRA adapter, in the model's dtype: `ModelRunner.add_adapter`. Cost: a step of three tokens."""
        adapter.require_modules(probe_linear_sizes(self._model))
        return self._adapters.add(adapter)

    @torch.inference_mode()
    def move_slots(self, moves: SlotMoves) -> None:
        """Move keys and values of tokens: `ModelRunner.move_slots`."""
        self._kv_cache.move_slots(moves)

    def read_pages(self, page_ids: Sequence[int]) -> torch.Tensor:
        """Return the contents of pages: `ModelRunner.read_pages`."""
        return self._kv_cache.read_pages(page_ids)

    def write_pages(self, page_ids: Sequence[int], contents: torch.Tensor) -> None:
        """Put contents back into pages: `ModelRunner.write_pages`."""
        self._kv_cache.write_pages(page_ids, contents)


def probe_layer_shapes(model: torch.nn.Module, device: torch.device) -> list[LayerShape]:
    """Run one token through the model to see which keys and values each layer has.

    Raises NotImplementedError, naming the architecture, if it cannot be served: its attention does not come through
    transformers' attention interface, or asks for something that paged attention does not know.
    """
    probe = ShapeProbe()
    name = type(model).__name__
    config: Any = model.config
    num_layers = config.get_text_config().num_hidden_layers
    zero = torch.zeros(1, dtype=torch.int64, device=device)
    try:
        with torch.inference_mode():
            model_forward(model, zero, zero, zero, probe)
    except (NotImplementedError, TypeError) as error:
        raise NotImplementedError(f"{name} cannot be served: {error}") from error
    if sorted(probe.layer_shapes) != list(range(num_layers)):
        seen = len(probe.layer_shapes)
        raise NotImplementedError(
            f"{name} cannot be served: {seen} of its {num_layers} layers go through transformers' attention interface"
        )
    return [probe.layer_shapes[index] for index in range(num_layers)]


def probe_linear_sizes(model: torch.nn.Module) -> dict[str, tuple[int, int]]:
    """Run some tokens through the model to see which linear modules get all rows of a step: outputs and inputs by name.

    The head is none of them, which gets only the rows whose logits are wanted, nor are experts, which get some each.
    """
    from transformers.pytorch_utils import Conv1D

    sizes: dict[str, tuple[int, int]] = {}

    def hook(name: str, size: tuple[int, int]) -> Any:
        def note(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
            if inputs[0].shape == (1, _PROBE_LEN, size[1]):
                sizes[name] = size

        return note

    hooks = []
    for name, module in model.named_modules():
        weight: Any = getattr(module, "weight", None)
        if isinstance(module, torch.nn.Linear):
            hooks.append(module.register_forward_pre_hook(hook(name, (weight.shape[0], weight.shape[1]))))
        elif isinstance(module, Conv1D):  # of GPT-2, with the weight transposed
            hooks.append(module.register_forward_pre_hook(hook(name, (weight.shape[1], weight.shape[0]))))
    positions = torch.arange(_PROBE_LEN, device=next(model.parameters()).device)
    try:
        with torch.inference_mode():
            model_forward(model, torch.zeros_like(positions), positions, positions[-1:], ShapeProbe())
    finally:
        for each in hooks:
            each.remove()
    return sizes


def model_forward(
    model: torch.nn.Module,
    token_ids: torch.Tensor,  # int64[T]
    positions: torch.Tensor,  # int64[T]
    logit_rows: torch.Tensor,  # int64[R]
    attention_step: AttentionStep,
) -> torch.Tensor:
    """Call a transformers model with one flat row of tokens. Returns float32[R, V]."""
    output = model(
        input_ids=token_ids.unsqueeze(0),
        position_ids=positions.unsqueeze(0),
        use_cache=False,
        logits_to_keep=logit_rows,
        attention_step=attention_step,
    )
    logits: torch.Tensor = output.logits[0]
    return logits.float()
