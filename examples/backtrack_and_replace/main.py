"""Lets the model do sums in a text, checks each as it is written, and takes wrong results back."""

import re

from tartlet_sdk import Model, inferlet

SUM = re.compile(r"(\d+) \+ (\d+) = (\d+)\D$")


@inferlet
async def backtrack_and_replace(
    start: str = "Some sums:\n17 + 25 = 42\n8 + 5 = 13\n38 + 46 = 84\n", sums: int = 4, tokens: int = 120
) -> dict[str, object]:
    """Continue a list of sums. Where a result is wrong, the model goes on as if it had written the right one."""
    model = Model.default()
    context = model.context()
    context.fill(start)
    corrected: list[str] = []
    checked = 0

    async with context.steps(max_tokens=tokens) as steps:
        while checked < sums and steps.finish_reason is None:
            await steps.next()
            found = SUM.search(steps.text)
            if found is None:
                continue
            checked += 1
            left, right, result = map(int, found.groups())
            if result != left + right:
                corrected.append(found.group().strip())
                wrong = f"{found[3]}{steps.text[-1]}"
                await steps.backtrack(tokens_at_end(model, steps.tokens, wrong), then=f"{left + right}{wrong[-1]}")
        text = steps.text

    print(start + text)
    return {"text": text, "checked": checked, "corrected": corrected}


def tokens_at_end(model: Model, tokens: list[int], text: str) -> int:
    """How many of the last tokens make up exactly this text."""
    count = 1
    while len(model.detokenize(tokens[-count:])) < len(text):
        count += 1
    return count
