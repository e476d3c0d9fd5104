"""Writes texts of a wanted length, without asking for it: the end is made less likely before, and more likely after."""

from dataclasses import dataclass

from tartlet_sdk import Mask, Model, Sampler, inferlet

TASK = "Describe a walk by the sea."


@dataclass
class Text:
    """A text, and how long it is."""

    text: str
    words: int
    ends_well: bool
    """It ends with a sentence."""


@inferlet
async def length_steering(task: str = TASK, words: int = 30, strength: float = 8.0) -> Text:
    """Write a text of about so many words.

    Until then the end of the text is `strength` less likely than the model finds it (in logits). From then on the text
    may end after a sentence, and the ends of sentences become likelier with each token.
    """
    model = Model.default()
    context = model.context()
    context.user(task)
    sentence_ends = Mask.where(lambda token: token.rstrip().endswith((b".", b"!", b"?")))
    eos = list(model.eos_tokens)

    async with context.steps(Sampler.top_p(0.8, 0.95), max_tokens=4 * words) as steps:
        num_late = 0
        while steps.finish_reason is None:
            if len(steps.text.split()) < words:
                await steps.next(bias=dict.fromkeys(eos, -strength))
            elif steps.text.rstrip().endswith((".", "!", "?")):
                await steps.next(allow=eos)
            else:
                num_late += 1
                await steps.next(boost={sentence_ends: num_late * strength / 8})
        text = steps.text.strip()

    result = Text(text, len(text.split()), text.endswith((".", "!", "?")))
    print(f"{text}\n({result.words} words)")
    return result
