"""Writes on and on in a context that stays small: the first tokens are kept, and a window of the latest."""

from tartlet_sdk import Model, Sampler, ignore_eos, inferlet


@inferlet
async def attention_sink(
    prompt: str = "The sea was calm, and the old man told his story.",
    tokens: int = 256,
    sink: int = 4,
    window: int = 64,
    temperature: float = 0.8,
) -> dict[str, int | str]:
    """Write `tokens` tokens, with never more than `sink + window` of those before in sight at the start of a part."""
    model = Model.default()
    if "evict" not in model.info.features:
        raise ValueError(f"nothing can be evicted from contexts of {model.name}")
    context = model.context()
    context.fill(prompt)

    print(prompt, end="")
    written, largest, text = 0, 0, ""
    while written < tokens and context.room > 0:
        part = context.generate(
            Sampler.temperature(temperature), max_tokens=min(window, tokens - written), stop=ignore_eos()
        )
        async for chunk in part:
            print(chunk.text, end="")
        written += len(part.result.tokens)
        text += part.result.text
        largest = max(largest, len(context))
        await context.keep(first=sink, last=window)
    print()

    return {
        "text": text,
        "written": written,
        "held": len(context),
        "most_held": largest,
        "positions": context.positions,
        "room": context.room,
    }
