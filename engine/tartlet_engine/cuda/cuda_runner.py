"""Runs transformers' own modules on a GPU: `model_runner.ModelRunner` with Triton attention and CUDA graphs."""

from __future__ import annotations

from dataclasses import replace

import torch

from tartlet_engine.batch import StepBatch
from tartlet_engine.cuda.decode_graphs import DecodeGraphs, GraphBackend
from tartlet_engine.cuda.device_step import DeviceStep, to_device
from tartlet_engine.cuda.paged_attention import TritonAttentionStep
from tartlet_engine.kv_cache import KvCache
from tartlet_engine.model_runner import TransformersRunner, model_forward


class CudaRunner(TransformersRunner):
    """A causal language model of transformers on the device where its KV cache is."""

    def __init__(
        self, model: torch.nn.Module, kv_cache: KvCache, context_len: int, graph_backend: GraphBackend | None
    ) -> None:
        """Run `model` over the pages of `kv_cache`.

        Args:
            model: loaded with the attention implementation `attention.ATTENTION_NAME`, on the cache's device.
            kv_cache: with the layers that `model_runner.probe_layer_shapes` found.
            context_len: the model's.
            graph_backend: what captures decode steps as graphs; None: every step is launched kernel by kernel.
        """
        super().__init__(model, kv_cache)
        self._compute_device = self.logits_device
        self.device = torch.device("cpu")  # batches are made in the host's memory, and taken over in one copy
        self.graphs: DecodeGraphs | None = None
        if graph_backend is not None:
            page_size = kv_cache.page_size
            self.graphs = DecodeGraphs(self._compute, graph_backend, self._compute_device, context_len, page_size)

    @torch.inference_mode()
    def forward(self, batch: StepBatch) -> torch.Tensor:
        """Launch a step, without waiting for the device: `ModelRunner.forward`. The logits are on the device.

        Raises GraphCaptureError if a decode step cannot be captured.
        """
        return self._launch(batch, None)

    @torch.inference_mode()
    def forward_ahead(self, batch: StepBatch, token_ids: torch.Tensor) -> torch.Tensor:
        """Launch a step of decodes whose tokens are on the device only: `run_ahead.AheadRunner.forward_ahead`."""
        return self._launch(batch, token_ids)

    def _launch(self, batch: StepBatch, token_ids: torch.Tensor | None) -> torch.Tensor:
        # No page is cleared for its new owner: the kernels read no slot that the row's own sequence has not written.
        self._kv_cache.copy_pages(batch.page_copies)
        # Graphs are captured without adapters, whose rows differ from step to step.
        graphs = None if batch.adapter_spans else self.graphs
        logits = None if graphs is None else graphs.forward(batch, token_ids)
        if logits is not None:
            return logits
        step = to_device(batch, self._compute_device)
        with self._adapters.on(batch.adapter_spans):
            return self._compute(step if token_ids is None else replace(step, token_ids=token_ids))

    def _compute(self, step: DeviceStep) -> torch.Tensor:
        """Launch a step's kernels one by one. Returns float32[R, V]."""
        attention = TritonAttentionStep(step, self._kv_cache)
        return model_forward(self._model, step.token_ids, step.positions, step.logit_rows, attention)
