"""From a text to an object: the schema decides what can be written, the model only what it says."""

from dataclasses import dataclass
from typing import Literal

from tartlet_sdk import Model, inferlet

MAIL = "Hi, this is Ada Byron. Please send two rye loaves and one lemon tart to the office by tomorrow, it is urgent!"


@dataclass
class Item:
    """One line of an order."""

    product: str
    quantity: Literal[1, 2, 3, 4, 5]


@dataclass
class Order:
    """What is to be found in a mail."""

    customer: str
    first_item: Item
    urgent: bool
    delivery: Literal["pick-up", "office", "home"]


@inferlet
async def json_extraction(mail: str = MAIL) -> Order | None:
    """Read an order out of a mail."""
    with Model.default().context() as context:
        context.system("You read orders out of mails and write them as JSON.")
        context.user(mail)
        draft = await context.generate(json_schema=Order, max_tokens=200)

        context.user("Is this customer friendly?")
        mood = await context.generate(choices=["yes", "no", "hard to say"])

    usage = draft.usage
    print(draft.text)
    print(f"{usage.generated_tokens} tokens, of which {usage.forced_tokens} had no alternative and cost no sampling")
    print(f"friendly: {mood.value}")
    return draft.value
