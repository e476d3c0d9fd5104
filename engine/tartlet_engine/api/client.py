"""The way to an engine: the client that carries messages, and what an engine is started with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from tartlet_engine.api.commands import Command
from tartlet_engine.api.events import Event
from tartlet_engine.api.values import ModelInfo


class EngineStats(msgspec.Struct, frozen=True):
    """A snapshot of the engine's counters. `pages_free + pages_cached + pages_held == pages_total`."""

    pages_total: int
    pages_free: int
    pages_cached: int
    pages_held: int
    runs: int
    contexts: int
    running: int  # generations and flushes that take part in steps
    waiting: int  # those that wait for pages, or have been preempted
    steps: int
    prefill_tokens: int  # tokens computed of prompts, and of what was appended
    generated_tokens: int
    lookup_tokens: int  # tokens of prompts that the prefix cache was asked for, each once
    found_tokens: int  # of these, tokens whose pages it had
    recomputed_tokens: int  # computed again, because their pages had been dropped; in no other count
    preemptions: int  # how often a generation or flush had to stop for others
    pages_swapped: int  # in host memory now; none of `pages_total`
    swapped_bytes: int  # that these take
    draft_tokens: int = 0  # that generations have guessed; in no other count, unless they were accepted
    accepted_tokens: int = 0  # of these, tokens that they generated indeed


class ModelText(Protocol):
    """A model's text side: its tokenizer and chat template. Callable from any thread; errors are `ValueError`s."""

    def encode(self, text: str) -> list[int]:
        """Token ids of a text; special tokens written out in it become their ids."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of token ids, special tokens included; bytes that are not UTF-8 become U+FFFD."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of one token."""
        ...

    def chat_message(self, roles: Sequence[str], role: str, text: str) -> list[int]:
        """The tokens that append a message by `role` to a chat whose messages so far are by `roles`.

        Special tokens in the text stay text. Raises ValueError if the template cannot be continued message by message
        or refuses this order of roles.
        """
        ...

    def chat_cue(self, roles: Sequence[str]) -> list[int]:
        """The tokens that begin the assistant's turn."""
        ...

    def chat_close(self, roles: Sequence[str], last_token_id: int | None) -> list[int]:
        """The tokens that end an assistant's turn which a generation filled and ended with `last_token_id`."""
        ...


class EngineClient(Protocol):
    """The way to an engine. All methods can be called from any thread and return at once."""

    @property
    def models(self) -> Mapping[str, ModelInfo]:
        """The loaded models by name, the default first."""
        ...

    def text(self, model: str) -> ModelText:
        """The text side of a model. Raises KeyError for a name that is not loaded."""
        ...

    def new_id(self) -> int:
        """An id that this client has not given yet, and no other client of the same engine gives."""
        ...

    def submit(self, commands: Sequence[Command], run_id: int | None = None) -> None:
        """Queues commands of one run for the next step, in order; None: of no run in particular.

        Runs take turns, so that how much one submits does not hold up the others. All commands of a run must come with
        its id, or all of them without; those without come before those with one.
        """
        ...

    def listen(self, listener: Callable[[list[Event]], None] | None) -> None:
        """Sets who hears of events: called on the engine's thread, once per step, with everything the step produced.

        An engine has one listener; None gives the place back. Raises RuntimeError if it is taken.
        """
        ...

    def stats(self) -> EngineStats:
        """The counters as of the last step."""
        ...

    def check_integrity(self) -> None:
        """Raises AssertionError unless every page, context and reference count adds up. For tests and idle times."""
        ...

    def close(self) -> None:
        """Stops the engine and frees the model. Idempotent; waits for the step in progress and what is being saved."""
        ...


class EngineConfig(msgspec.Struct, frozen=True):
    """What an engine is started with."""

    model_name: str
    model_path: str  # a folder with safetensors, configuration and tokenizer
    dtype: str = "auto"  # "float32", "bfloat16" or "auto"
    threads: int | None = None  # CPU threads of a step; None: all cores
    kv_pages: int | None = None  # pages in the pool; None: by memory
    swap_bytes: int | None = None  # host memory for pages of what has to wait; None: by memory; 0: they are dropped
    page_size: int = 16  # tokens
    # Tokens of one step: the budget that prefill chunks and decodes share. None: 512 on CPUs, 4,096 on GPUs.
    max_batch_tokens: int | None = None
    device: str = "auto"  # "cpu", "cuda" or "auto"
    quantize: str = "none"  # weights in groups of 32: "int8", "int4" or "none"; on CPUs, for models of the Llama family
    prefix_cache: bool = True  # keep computed pages for whoever of the same tenant has the same tokens
    # "fused": C kernels; "triton": transformers' modules with kernels for GPUs; "transformers": with plain torch;
    # "auto": fused where it serves the model, triton on a GPU. What is asked for by name and cannot be had is an error.
    runner: str = "auto"
    cuda_graphs: bool = True  # on GPUs: decode steps as CUDA graphs; False: kernel by kernel
    saved_path: str | None = None  # a folder for saved contexts; None: they are kept in memory
    saved_bytes: int = 1 << 30  # that the saved contexts of one tenant may take
    adapters: tuple[tuple[str, str], ...] = ()  # LoRA adapters: a name, and a folder in the format of PEFT
    adapter_bytes: int = 1 << 30  # memory that all adapters together may take
