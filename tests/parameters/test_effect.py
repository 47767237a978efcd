"""Parameters that cannot act in a launch."""

from __future__ import annotations

import pytest

from autotune.parameters.effect import idle_reason
from tests.case_table import case_table
from tests.parameters.catalogues import catalogue


@case_table(
    ("transport", "is_idle"),
    [
        ("ob1: tcp", True),
        ("ob1: sm", False),
        ("ob1: tcp, sm", False),
        ("ob1: vader", False),
        ("ob1", False),
        ("", False),
        ("ucx: tcp", True),
    ],
)
def test_a_component_that_carries_no_messages(transport: str, is_idle: bool) -> None:
    own = catalogue()
    eager = own.find("btl_sm_eager_limit")
    assert eager is not None
    assert (idle_reason(eager, {}, own, transport) is not None) == is_idle


@pytest.mark.parametrize("name", ["btl", "mpi_yield_when_idle"])
def test_what_belongs_to_no_component_of_transport_acts(name: str) -> None:
    own = catalogue()
    parameter = own.find(name)
    assert parameter is not None
    assert idle_reason(parameter, {}, own, "ob1: tcp") is None
