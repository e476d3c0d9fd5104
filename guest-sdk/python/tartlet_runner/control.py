"""The inferlet of `Host.control` and `tartlet run --controller`: a generation with a controller, and nothing else."""

from __future__ import annotations

import json
from typing import Any

from tartlet_sdk import Model, Sampler, inferlet


@inferlet
async def control(
    controller: str, config: str, prompt: str, chat: bool, max_tokens: int | None, temperature: float
) -> dict[str, Any]:
    """Let the controller steer a generation from a prompt; what each of its sequences has generated."""
    context = Model.default().context()
    if chat:
        context.user(prompt)
    elif prompt:
        context.fill(prompt)
    draft = await context.generate(
        Sampler.temperature(temperature) if temperature else Sampler.greedy(),
        max_tokens=max_tokens,
        controller=controller,
        config=json.loads(config),
    )
    sequences = [
        {"text": each.text, "tokens": len(each.tokens), "finish_reason": each.finish_reason} for each in draft.sequences
    ]
    return {"sequences": sequences}
