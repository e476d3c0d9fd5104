from hypothesis import given
from hypothesis import strategies as st

from tartlet.testing.byte_text import END_OF_TURN
from tartlet.testing.fake_generation import FakeGeneration
from tartlet.testing.fake_pages import FakeContext
from tartlet_engine.api import FinishReason, Generate, Sampling, Stop

ALPHABET = st.text("abé", max_size=20)


def play(reply: str, stop: Stop) -> tuple[str, list[int], FinishReason, FakeGeneration]:
    """Text, tokens and reason of a generation that is stepped to its end."""
    context = FakeContext(2, 1, token_ids=[1, 2, 3])
    generation = FakeGeneration(Generate(3, 2, Sampling(seed=0), stop), context, reply, 1000, 0)
    text, reason = "", None
    while reason is None:
        chunk, reason = generation.step()
        text += chunk.text
    return text, context.token_ids[3:], reason, generation


@given(ALPHABET, st.lists(st.text("abé", min_size=1, max_size=4), max_size=3))
def test_the_text_ends_before_the_first_stop_string(reply: str, strings: list[str]) -> None:
    """Whatever the stop strings, the text is the reply up to the earliest end of one of them, without it."""
    text, tokens, reason, generation = play(reply, Stop(strings=tuple(strings)))

    ends = [reply.find(string) + len(string) for string in strings if string in reply]
    if ends:
        assert reason is FinishReason.STOP_STRING
        assert generation.stop_string in strings
        assert reply.startswith(text + str(generation.stop_string))
        assert len(text + str(generation.stop_string)) == min(ends)
    else:
        assert (text, reason) == (reply, FinishReason.EOS)
        assert tokens == [*reply.encode(), END_OF_TURN]


@given(ALPHABET, st.integers(1, 30))
def test_the_length_is_kept(reply: str, max_tokens: int) -> None:
    """It never gives more tokens than allowed, and the text is whole characters of the reply."""
    text, tokens, reason, _ = play(reply, Stop(max_tokens=max_tokens))

    assert len(tokens) <= max_tokens
    assert reply.startswith(text.rstrip("\ufffd"))
    assert (reason is FinishReason.LENGTH) == (len(reply.encode()) >= max_tokens)
