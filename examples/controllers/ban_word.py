"""A controller that bans a word, however it is spelt in tokens: " butter", "but" + "ter", "b" + "utter"."""

from tartlet_sdk import Branch, Controller, Mask, Model, Sequence, StepInfo


class BanWord(Controller):
    """The config is the word. Small and capital letters count as the same."""

    def start(self, config: str, prompt: list[int]) -> None:
        """Find out once which tokens could complete the word, after each beginning of it."""
        word = config.lower().encode()
        self.model = Model.default()
        self.beginnings = {word[:size]: ends_with(word[size:]) for size in range(1, len(word))}
        self.always = Mask.where(lambda text: word not in text.lower())
        self.tail = b""  # the last bytes written: as many as can still matter

    def step(self, sequence: Sequence, info: StepInfo) -> Branch:
        """Allow every token but those that complete the word here."""
        written = b"".join(self.model.token_bytes(token) for token in info.tokens)
        self.tail = (self.tail + written.lower())[-len(self.beginnings) :]
        allowed = self.always
        for beginning, completing in self.beginnings.items():
            if self.tail.endswith(beginning):
                allowed = allowed - completing
        return Branch(mask=allowed)


def ends_with(rest: bytes) -> Mask:
    """The tokens that begin with the rest of the word."""
    return Mask.where(lambda text: text.lower().startswith(rest))
