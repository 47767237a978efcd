from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runner.mpi.library import ParamInfo, normalise, same_value
from tests.case_table import case_table

ENUM = ParamInfo("coll_tuned_bcast_algorithm", "int", "ignore", enum={0: "ignore", 2: "chain"})
FLAG = ParamInfo("mpi_yield_when_idle", "bool", "false", enum={0: "false", 1: "true"})
SIZE = ParamInfo("btl_sm_eager_limit", "size_t", "4096")
TEXT = ParamInfo("btl", "string", "")


@case_table(
    ("first", "second", "info"),
    [
        ("64k", "65536", SIZE),
        ("0x1000", "4096", SIZE),
        ("1", "true", FLAG),
        ("0", "false", FLAG),
        ("chain", "2", ENUM),
        ("^ofi", "^ofi", TEXT),
        ("1", "true", None),
    ],
)
def test_spellings_of_one_value(first: str, second: str, info: ParamInfo | None) -> None:
    assert same_value(first, second, info)
    assert same_value(second, first, info)


@case_table(
    ("first", "second", "info"),
    [("4096", "4095", SIZE), ("1", "false", FLAG), ("2", "ignore", ENUM), ("self", "tcp", TEXT)],
)
def test_different_values(first: str, second: str, info: ParamInfo) -> None:
    assert not same_value(first, second, info)


@given(st.integers(0, 2**40), st.sampled_from(["", "k", "K", "m", "G"]))
def test_suffixes_are_powers_of_1024(number: int, suffix: str) -> None:
    factor = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}[suffix.lower()]
    assert normalise(f"{number}{suffix}", SIZE) == str(number * factor)


@given(st.text(max_size=20))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise(text, SIZE)
    assert normalise(once, SIZE) == once
