"""A text completion: the endpoint `/v1/completions` is a run of this program.

Its input is what the front has made of the request: `model`, `prompts` (texts, or lists of tokens), `echo` (whether
the choices begin with the prompt), `settings` (see `answering.py`), and the `adapter` of the model, if any. Each prompt
is computed once, and forked for each of its choices.
"""

from __future__ import annotations

from typing import Any

from answering import Settings, answer, refusal

from tartlet_sdk import Context, Model, TartletError, inferlet


@inferlet
async def main(
    model: str, prompts: list[str | list[int]], settings: dict[str, Any], echo: bool, adapter: str | None = None
) -> dict[str, Any]:
    """Generate what comes after each of the prompts."""
    try:
        opened = Model.open(model)
        contexts = [filled(opened.context(adapter=adapter), prompt) for prompt in prompts]
        echoes = [text_of(opened, prompt) for prompt in prompts] if echo else None
        return await answer(opened, contexts, Settings(settings, echoes=echoes))
    except TartletError as error:
        return refusal(error)


def filled(context: Context, prompt: str | list[int]) -> Context:
    """The context with a prompt."""
    if isinstance(prompt, str):
        context.fill(prompt)
    else:
        context.fill_tokens(prompt)
    return context


def text_of(model: Model, prompt: str | list[int]) -> str:
    """A prompt as text."""
    return prompt if isinstance(prompt, str) else model.detokenize(prompt)
