"""Continues a text, and prints it as the model writes it."""

from tartlet_sdk import Model, Sampler, inferlet


@inferlet
async def text_completion(
    prompt: str = "The three primary colours are", max_tokens: int = 32, temperature: float = 0.0
) -> str:
    """Continue `prompt` and return the continuation."""
    context = Model.default().context()
    context.fill(prompt)

    print(prompt, end="")
    generation = context.generate(Sampler.temperature(temperature), max_tokens=max_tokens)
    async for chunk in generation:
        print(chunk.text, end="")
    print()

    return generation.result.text
