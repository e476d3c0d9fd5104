"""A controller that has a form filled in: what is between the answers is forced, and costs no sampled token."""

from tartlet_sdk import Branch, Controller, Mask, Model, Sequence, Splice, StepInfo

MOST_TOKENS = 16  # of one answer


class Form(Controller):
    """The config names the fields and what they are: {"name": "text", "age": "number"}. The text is a JSON object."""

    def start(self, config: dict[str, str], prompt: list[int]) -> None:
        """Prepare the texts between the answers, and the tokens that an answer may have and may end with."""
        self.model = Model.default()
        self.fields = list(config.items())
        self.number = -1  # of the field that is filled in
        self.answer_begins = 0  # in the sequence
        texts = self.model.vocabulary
        endings = {"text": (b'"', b'",', b'"}'), "number": (b",", b"}", b" ", b"\n")}
        self.endings = {
            kind: [token for token, text in enumerate(texts) if text in spellings]
            for kind, spellings in endings.items()
        }
        self.allowed = {
            "text": Mask.of(token for token, text in enumerate(texts) if is_text(text)),
            "number": Mask.of(token for token, text in enumerate(texts) if is_number(text)),
        }

    def step(self, sequence: Sequence, info: StepInfo) -> Branch | list[Branch]:
        """Force what comes before the next answer, or let the model write the one that it is at."""
        if info.sampled is not None and info.sampled in self.endings[self.fields[self.number][1]]:
            # The model has ended its answer, and what follows was written instead.
            self.number += 1
            self.answer_begins = len(sequence.tokens)
        if self.number == len(self.fields):
            return []
        if self.number < 0 or len(sequence.tokens) - self.answer_begins >= MOST_TOKENS:
            return self.go_to_next(sequence)
        _, kind = self.fields[self.number]
        first = len(sequence.tokens) == self.answer_begins
        if kind == "number" and first:
            return Branch(mask=self.allowed[kind])
        # If the model ends the answer, its token is replaced by all that comes before the next one.
        ending = Splice(self.model.tokenize(self.text_after(self.number)), 1, when_sampled=self.endings[kind])
        return Branch(mask=self.allowed[kind] | Mask.of(self.endings[kind]), splices=[ending])

    def go_to_next(self, sequence: Sequence) -> Branch:
        """Write what stands between this answer and the next one."""
        tokens = self.model.tokenize(self.text_after(self.number))
        self.number += 1
        self.answer_begins = len(sequence.tokens) + len(tokens)
        return Branch.force(tokens)

    def text_after(self, number: int) -> str:
        """What follows the answer of that number, up to the next one; -1 is the beginning."""
        closing = '"' if number >= 0 and self.fields[number][1] == "text" else ""
        if number + 1 == len(self.fields):
            return closing + "}"
        name, kind = self.fields[number + 1]
        return closing + ("{" if number < 0 else ", ") + f'"{name}": ' + ('"' if kind == "text" else "")


def is_text(text: bytes) -> bool:
    """Whether a token can stand inside a JSON string as it is."""
    return text.isascii() and bool(text) and not any(byte < 32 or byte in b'"\\<|' for byte in text)


def is_number(text: bytes) -> bool:
    """Whether a token is digits."""
    return text.isdigit()
