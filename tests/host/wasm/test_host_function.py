"""What host functions return and raise."""

from __future__ import annotations

from tartlet.wasm.host_function import SUSPEND, Err


def test_err_carries_its_value() -> None:
    """`Err` has the value of the err case, by default none."""
    assert Err({"code": "x"}).value == {"code": "x"}
    assert Err().value is None


def test_suspend_has_a_name() -> None:
    """`SUSPEND` is recognised in a debugger."""
    assert repr(SUSPEND) == "SUSPEND"
