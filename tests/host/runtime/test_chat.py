import pytest

from tartlet.runtime.chat import ChatHistory, ChatState


def chat_of_two_turns() -> ChatHistory:
    """User (10 tokens), assistant (cue at 13, closed at 22), user (to 30)."""
    history = ChatHistory()
    history.add_message(10, "user")
    history.open_turn(13)
    history.close_turn(22)
    history.add_message(30, "user")
    return history


def test_a_message_of_another_role_needs_a_cue() -> None:
    """After a user's message the assistant's turn has to be begun; after the assistant's own it has not."""
    history = ChatHistory()
    history.add_message(10, "user")
    assert history.state == ChatState(("user",), needs_cue=True)

    history.add_message(20, "assistant")
    assert history.state == ChatState(("user", "assistant"))


def test_plain_text_after_a_message_needs_no_cue() -> None:
    """Who fills text after a message goes on by hand."""
    history = ChatHistory()
    history.add_message(10, "user")

    history.add_text(12)

    assert history.state == ChatState(("user",))


def test_truncating_restores_the_state_at_that_length() -> None:
    """Each cut goes back to the last state reached by then."""
    expected = {
        30: ChatState(("user", "assistant", "user"), needs_cue=True),
        29: ChatState(("user", "assistant")),
        21: ChatState(("user",), is_turn_open=True),
        12: ChatState(("user",), needs_cue=True),
        9: ChatState(),
        0: ChatState(),
    }
    for length, state in expected.items():
        history = chat_of_two_turns()
        history.truncate(length)
        assert history.state == state, length


def test_a_copy_is_independent() -> None:
    """What happens to a fork's chat does not concern its parent."""
    history = chat_of_two_turns()

    fork = history.copy(22)
    fork.open_turn(25)

    assert fork.state == ChatState(("user", "assistant"), is_turn_open=True)
    assert history.state.roles == ("user", "assistant", "user")


def test_a_history_as_text() -> None:
    """What is read is what was written, at every length; the text of another version is refused."""
    history = chat_of_two_turns()
    again = ChatHistory.from_json(history.to_json())
    for length in (30, 25, 22, 15, 10, 0):
        history.truncate(length)
        again.truncate(length)
        assert again.state == history.state

    for text in ("", "{}", "[0,[],[]]", "[1,[],[1]]", "[1,2]"):
        with pytest.raises(ValueError, match="cannot be read"):
            ChatHistory.from_json(text)


@pytest.mark.parametrize(
    ("start", "end", "cut", "expected"),
    [
        (0, 12, 30 - 12, ChatState(("user", "assistant", "user"), needs_cue=True)),
        (5, 15, 6, ChatState(("user",), is_turn_open=True)),
        (5, 15, 5, ChatState()),
        (12, 25, 12, ChatState(("user",), needs_cue=True)),
        (12, 25, 13, ChatState(("user", "assistant"))),
        (12, 25, 17, ChatState(("user", "assistant", "user"), needs_cue=True)),
    ],
)
def test_evicted_messages_have_been(start: int, end: int, cut: int, expected: ChatState) -> None:
    """After an eviction the chat goes on where it was; a cut at the gap goes back to before it."""
    history = chat_of_two_turns()
    history.evict(start, end)
    assert history.state == ChatState(("user", "assistant", "user"), needs_cue=True)

    history.truncate(cut)
    assert history.state == expected
