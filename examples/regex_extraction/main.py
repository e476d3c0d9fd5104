"""Facts out of a text, each in the form of a regular expression, or a word that says that it is not there."""

import asyncio

from tartlet_sdk import Constraint, Context, Model, inferlet

NOTE = """Kick-off with the Hamburg office is on 3 March 2027, at half past nine. Call Grace under 040 555-0142 if the
train is late; the budget is 12500 euros."""

FACTS = {
    "the date, as year-month-day": r"20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
    "the time, with 24 hours": r"([01][0-9]|2[0-3]):[0-5][0-9]",
    "the phone number": r"[0-9]{3,5} [0-9]{3}-[0-9]{4}",
    "the e-mail address": r"[a-z]{1,20}@[a-z]{1,20}\.(com|de|org)",
}


async def find(context: Context, fact: str, pattern: str) -> str | None:
    """Ask for one fact, in a fork that shares the note."""
    constraint = Constraint.regex(pattern) | Constraint.choices("not given")
    with context.fork() as fork:
        fork.user(f"What is {fact}? If the note does not say it: not given")
        fork.cue()
        fork.fill(f"In the note, {fact} is: ")
        draft = await fork.generate(constraint=constraint, max_tokens=60)
    return None if draft.value == "not given" else draft.value


@inferlet
async def regex_extraction(note: str = NOTE) -> dict[str, str | None]:
    """Read the facts out of a note, all at once."""
    with Model.default().context() as context:
        context.system("You read facts out of notes.")
        context.user(note)
        context.assistant("I have read the note.")
        found = await asyncio.gather(*(find(context, fact, pattern) for fact, pattern in FACTS.items()))
    for fact, value in zip(FACTS, found, strict=True):
        print(f"{fact}: {value or '-'}")
    return dict(zip(FACTS, found, strict=True))
