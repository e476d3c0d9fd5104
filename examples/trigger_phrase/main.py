"""Writes freely, but after a certain phrase only certain words can follow."""

from tartlet_sdk import Model, Sampler, inferlet


@inferlet
async def trigger_phrase(
    prompt: str = "Describe your favourite paint.",
    phrase: str = "The colour is",
    words: list[str] = ["teal", "ochre", "maroon"],  # noqa: B006 - it is only read
    tokens: int = 40,
    temperature: float = 0.7,
) -> dict[str, object]:
    """Write about something. Whenever the text comes to `phrase`, one of `words` follows."""
    model = Model.default()
    context = model.context()
    context.user(f'{prompt} Use the words "{phrase}".')
    choices = [model.tokenize(f" {word}") for word in words]
    chosen: list[str] = []

    async with context.steps(Sampler.temperature(temperature), max_tokens=tokens) as steps:
        await steps.force(phrase)
        searched = 0
        while steps.finish_reason is None:
            if (found := steps.text.find(phrase, searched)) >= 0 and steps.text.endswith(phrase):
                searched = found + len(phrase)
                chosen.append(words[await choose(steps, choices)])
            else:
                await steps.next()
        text = steps.text

    print(text)
    return {"text": text, "chosen": chosen}


async def choose(steps, choices: list[list[int]]) -> int:
    """Let the model write one of several texts, a token at a time; the number of the one that it has written."""
    left, at = list(range(len(choices))), 0
    while True:
        allowed = {choices[number][at] for number in left}
        token = (await steps.next(allow=allowed)).sampled
        left = [number for number in left if choices[number][at] == token]
        at += 1
        if any(len(choices[number]) == at for number in left) or steps.finish_reason is not None:
            return next((number for number in left if len(choices[number]) == at), left[0])
