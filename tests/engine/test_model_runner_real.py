"""The real model in float32, on both runners: the same tokens and logits as transformers, alone and in a crowd."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from tartlet_engine.kernels.build import KernelsUnavailableError, load_kernels
from tartlet_engine.tokenizer import ModelTokenizer

pytestmark = pytest.mark.model

NUM_TOKENS = 64

TEXTS = [
    "Once upon a time",
    "The capital of France is",
    "def fibonacci(n):",
    '{"name": "Ada", "born": 1815, "known for": [',
    "Q: What is 7 times 8?\nA:",
    "1, 2, 3, 4, 5,",
    "Dear Sir or Madam,\n\n",
    "In 1969, the first humans",
    "Zwei Äpfel und drei Birnen kosten",
    "日本の首都は",
    "SELECT name, age FROM users WHERE",
    "The quick brown fox jumps over the lazy dog. " * 8,
    "import numpy as np\n\nx = np.",
    "    \n\n\t",
    "A",
    "To be, or not to be, that is the question: " + "Whether 'tis nobler in the mind to suffer. " * 12,
]
QUESTIONS = [
    "Write a haiku about the sea.",
    "What is the boiling point of water?",
    "Give me three names for a cat.",
    "Write a catchy, on-brand email subject line for a 20% off Fall skincare sale.",
]


@pytest.fixture(params=["fused", "transformers"])
def real_engine(request: pytest.FixtureRequest, tiny_engine: Any, real_folder: Path) -> Callable[..., Any]:
    """Make a driver of an engine with the real model, on each runner."""
    if request.param == "fused":
        try:
            load_kernels()
        except KernelsUnavailableError as error:
            pytest.skip(str(error))
    return lambda **settings: tiny_engine(real_folder, runner=request.param, **settings)


@pytest.fixture(scope="module")
def prompts(real_folder: Path) -> list[list[int]]:
    """Twenty varied prompts: sixteen texts of 1 to 160 tokens, four chats."""
    text = ModelTokenizer(real_folder)
    chats = [text.chat_message([], "user", question) + text.chat_cue(["user"]) for question in QUESTIONS]
    return [text.encode(prompt) for prompt in TEXTS] + chats


@pytest.fixture(scope="module")
def plain_model(real_folder: Path) -> Any:
    """The model as transformers loads it."""
    return AutoModelForCausalLM.from_pretrained(real_folder, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def expected(prompts: list[list[int]], plain_model: Any) -> list[list[int]]:
    """transformers' own greedy continuations, of all prompts in one batch padded on the left."""
    longest = max(map(len, prompts))
    token_ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    output = plain_model.generate(
        token_ids, attention_mask=mask, max_new_tokens=NUM_TOKENS, do_sample=False, eos_token_id=None
    )
    continuations: list[list[int]] = output[:, longest:].tolist()
    return continuations


def check_alone(numbers: range, prompts: list[list[int]], expected: list[list[int]], driver: Any) -> None:
    run_id = driver.open_run()
    for number in numbers:
        generation = driver.generate(driver.create(run_id, prompts[number]), max_tokens=NUM_TOKENS)
        driver.settle()
        assert driver.tokens(generation) == expected[number]


def test_greedy_alone(prompts: list[list[int]], expected: list[list[int]], real_engine: Any) -> None:
    """Prompts by themselves give transformers' tokens: every fifth here."""
    check_alone(range(4, 20, 5), prompts, expected, real_engine(max_batch_tokens=512))


@pytest.mark.stress
def test_greedy_alone_all(prompts: list[list[int]], expected: list[list[int]], real_engine: Any) -> None:
    """The same for all twenty."""
    check_alone(range(20), prompts, expected, real_engine(max_batch_tokens=512))


def test_greedy_in_a_crowd_with_chunked_prefill(
    prompts: list[list[int]], expected: list[list[int]], real_engine: Any
) -> None:
    """All twenty together, at least sixteen of them at a time, their prompts computed in chunks beside decodes."""
    driver = real_engine(max_batch_tokens=48)
    run_id = driver.open_run()
    generations = []
    for prompt in prompts:
        generations.append(driver.generate(driver.create(run_id, prompt), max_tokens=NUM_TOKENS))
        driver.step()
    assert driver.core.stats().running >= 16
    driver.settle()

    assert [driver.tokens(generation) for generation in generations] == expected


@pytest.fixture(scope="module")
def exact_model(real_folder: Path) -> Any:
    """The model in float64: the rounding of float32, which depends on torch's threads, would count twice."""
    return AutoModelForCausalLM.from_pretrained(real_folder, dtype=torch.float64).eval()


def test_logits(prompts: list[list[int]], exact_model: Any, real_engine: Any) -> None:
    """The logits after each prompt, computed in chunks, are within 1e-4 of a dense forward pass."""
    driver = real_engine(max_batch_tokens=40)
    run_id = driver.open_run()
    contexts = [driver.create(run_id, prompt) for prompt in prompts]
    for context in contexts:
        driver.flush(context)
    driver.settle()

    for context, prompt in zip(contexts, prompts, strict=True):
        with torch.inference_mode():
            dense = exact_model(torch.tensor([prompt]), logits_to_keep=1).logits[0, -1]
        torch.testing.assert_close(driver.logits(context).double(), dense, atol=1e-4, rtol=0)


def test_forks_equal_fresh_contexts(prompts: list[list[int]], expected: list[list[int]], real_engine: Any) -> None:
    """Forks of one computed prompt each go on as a fresh context does."""
    driver = real_engine()
    prompt, tokens = prompts[-1], expected[-1]
    parent = driver.create(driver.open_run(), prompt)
    generations = [driver.generate(driver.fork(parent, len(prompt)), max_tokens=NUM_TOKENS) for _ in range(4)]
    driver.settle()

    assert all(driver.tokens(generation) == tokens for generation in generations)
    assert driver.core.stats().prefill_tokens == len(prompt)
