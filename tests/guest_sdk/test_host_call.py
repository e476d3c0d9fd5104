"""Errors of the host become exceptions."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_sdk import errors
from tartlet_sdk.host_call import call, kebab


def test_every_code_of_the_contract_has_its_class(stub: Any) -> None:
    """An error of the host is raised as the class of its code, and names the SDK's call."""
    assert {kebab(code.name) for code in stub.types.ErrorCode} == set(errors.BY_CODE)

    for code in stub.types.ErrorCode:

        def refuse(code: Any = code) -> None:
            raise stub.Err(stub.types.Error(code, "no", "later"))

        with pytest.raises(errors.BY_CODE[kebab(code.name)]) as caught:
            call("Context.fill", refuse)
        assert str(caught.value) == "Context.fill: no\nlater"


def test_other_exceptions_pass(stub: Any) -> None:
    """Only errors of the contract are translated."""
    with pytest.raises(ZeroDivisionError):
        call("f", lambda: 1 // 0)
