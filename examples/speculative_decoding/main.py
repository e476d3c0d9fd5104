"""Guessing what comes next: a text is edited with and without guesses from the text itself, and comes out the same."""

import time

from tartlet_sdk import Context, Draft, Model, Speculation, inferlet

LETTER = (
    "Dear Mr Brown, thank you for your order of two rye loaves and one lemon tart. We will deliver them to your office "
    "on Friday morning. Please let us know if anything changes. Kind regards, the bakery"
)


async def timed(context: Context, max_tokens: int, speculation: Speculation | None) -> tuple[Draft, float]:
    """Generate in a fork, and tell how long it took after its prompt."""
    with context.fork() as fork:
        began = time.monotonic()
        draft = await fork.generate(max_tokens=max_tokens, speculation=speculation)
        return draft, time.monotonic() - began


@inferlet
async def speculative_decoding(text: str = LETTER, max_tokens: int = 64) -> dict:
    """Repeat a text without guesses, with guesses from the prompt, and with the text as what is expected."""
    with Model.default().context() as context:
        context.user(f"Repeat this letter word for word: {text}")
        context.cue()
        await context.flush()
        plain, plain_seconds = await timed(context, max_tokens, None)
        report = {}
        for name, speculation in {
            "from the prompt": Speculation(),
            "expected": Speculation(expected=text, max_draft=16),
        }.items():
            draft, seconds = await timed(context, max_tokens, speculation)
            usage = draft.usage
            steps = usage.generated_tokens - usage.accepted_tokens
            print(
                f"{name}: {usage.draft_tokens} tokens guessed, {usage.accepted_tokens} right; "
                f"{usage.generated_tokens} tokens in {steps} steps, {plain_seconds / seconds:.1f} times as fast"
            )
            report[name] = {
                "same": draft.tokens == plain.tokens,
                "drafted": usage.draft_tokens,
                "accepted": usage.accepted_tokens,
                "steps": steps,
            }
    print(plain.text)
    return {"text": plain.text, "tokens": len(plain.tokens), **report}
