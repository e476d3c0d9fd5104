"""Two writers at work at once, and a judge who compares what they wrote."""

import asyncio

from tartlet_sdk import Model, Sampler, inferlet, max_tokens, stop_strings


@inferlet
async def parallel_generation() -> str:
    """Write two email subject lines and return the judge's opinion of them."""
    model = Model.default()
    warm = model.context()
    urgent = model.context()
    judge = model.context()

    warm.user("Write a warm, seasonal email subject line for a 20% off Fall skincare sale.")
    urgent.user("Write a concise, urgency-driven email subject line for a 20% off Fall skincare sale.")

    # Both run at once: the engine computes the next tokens of the two in one batch.
    one_line = max_tokens(48) | stop_strings("\n")
    a, b = await asyncio.gather(
        warm.generate(Sampler.top_p(0.7, 0.95), stop=one_line),
        urgent.generate(Sampler.top_k(30), stop=one_line),
    )
    print(f"A: {a.text.strip()}")
    print(f"B: {b.text.strip()}")

    judge.user(f"A: {a.text.strip()} vs. B: {b.text.strip()}\nWhich will get more opens?")
    decision = await judge.generate(Sampler.greedy(), stop=max_tokens(80))
    return f"Judge decision: {decision.text.strip()}"
