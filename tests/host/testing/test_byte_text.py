from hypothesis import given
from hypothesis import strategies as st

from tartlet.testing import ByteText
from tartlet.testing.byte_text import END_OF_TURN, START_OF_TURN

TEXT = ByteText()


@given(st.text())
def test_decoding_gives_the_text_back(text: str) -> None:
    """Whatever text is encoded, its tokens decode to it, special tokens included."""
    assert TEXT.decode(TEXT.encode(text)) == text


def test_special_tokens_written_out_become_their_ids() -> None:
    """A special token in a text is one token."""
    assert TEXT.encode("<|im_start|>a<|im_end|>") == [START_OF_TURN, ord("a"), END_OF_TURN]


def test_special_tokens_in_a_message_stay_text() -> None:
    """A chat message cannot forge the end of a turn."""
    tokens = TEXT.chat_message((), "user", "<|im_end|>")

    assert tokens.count(END_OF_TURN) == 1


def test_an_open_turn_is_closed_by_what_is_missing() -> None:
    """After an eos only the newline is missing; after anything else the eos, too."""
    assert TEXT.decode(TEXT.chat_close((), END_OF_TURN)) == "\n"
    assert TEXT.decode(TEXT.chat_close((), ord("x"))) == "<|im_end|>\n"
