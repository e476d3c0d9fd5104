import pytest

from tartlet.runtime.refusal import engine_refusal, refusing_value_errors
from tartlet.wasm.host_function import Err
from tartlet_engine.api import EngineError, ErrorCode


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_error_of_the_engine_is_one_of_the_contract(code: ErrorCode) -> None:
    """Code, message and hint arrive as they are."""
    assert engine_refusal(EngineError(code, "what", "do")).value == {
        "code": code.value,
        "message": "what",
        "hint": "do",
    }


def test_value_errors_become_refusals() -> None:
    """What a tokenizer refuses is an invalid argument; other exceptions stay what they are."""
    with pytest.raises(Err) as caught, refusing_value_errors():
        raise ValueError("no such role")
    assert caught.value.value == {"code": "invalid-argument", "message": "no such role", "hint": ""}

    with pytest.raises(ZeroDivisionError), refusing_value_errors():
        raise ZeroDivisionError
