"""Environment variables of the ranks: as /proc shows them, and as the ranks report them."""

from __future__ import annotations

import subprocess

import pytest

from runner.supervise import RankSnapshot
from runner.types import LaunchSpec
from runner.variables import MARK, read_back_variables, reports_of, with_variable_report
from tests.case_table import case_table

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "PMIX_RANK": "3"}


def reported(value: str, **environment: str) -> dict[str, str | None]:
    """What a process of rank 3 reports of the variable A, which should have ``value``."""
    asked = LaunchSpec(("/bin/echo", "the program"), 4, variables={"A": value})
    spec = with_variable_report(asked, ("OMPI_COMM_WORLD_RANK", "PMIX_RANK"))
    done = subprocess.run(
        spec.program, env=ENVIRONMENT | environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "the program\n"  # data
    return reports_of(done.stderr.splitlines()).get(3, {})


@case_table("value", ["1", "", " a b ", "$(touch x)`", "'\"\\", "end", "é", "%s\\n"])
def test_a_value_is_reported_as_it_is(value: str) -> None:
    assert reported("1", A=value) == {"A": value}


def test_a_variable_that_is_not_set_is_reported_as_such() -> None:
    assert reported("1") == {"A": None}


def test_values_of_several_lines_are_not_reported() -> None:
    assert reported("1\n2", A="1\n2") == {}


@case_table(
    "spec",
    [
        LaunchSpec(("x",), 2),
        LaunchSpec(("x",), 2, variables={"A": "1"}, read_back=False),
        LaunchSpec(("x",), 2, variables={"A;rm": "1"}),
    ],
)
def test_nothing_is_reported_unasked(spec: LaunchSpec) -> None:
    assert with_variable_report(spec, ("PMI_RANK",)) == spec


def test_lines_that_are_cut_say_nothing() -> None:
    assert reports_of([f"{MARK} 0 A=1", f"{MARK} 0 A=1 enx", f"{MARK} x A=1 end"]) == {}


@case_table(
    ("reports", "state"),
    [
        ({0: {"A": "1"}, 1: {"A": "1"}}, "in force"),
        ({0: {"A": "1"}, 1: {"A": None}}, "altered"),
        ({0: {"A": "1"}}, "not observable"),
        ({}, "not observable"),
    ],
)
def test_every_rank_has_to_report(reports: dict[int, dict[str, str | None]], state: str) -> None:
    assert read_back_variables({"A": "1"}, (), reports, 2)["A"].state == state


def test_proc_is_used_where_reports_are_missing() -> None:
    seen = [RankSnapshot(rank, 7, "0", "", {"A": "1"}) for rank in range(2)]
    assert read_back_variables({"A": "1"}, seen, {0: {"A": "2"}}, 2)["A"].state == "in force"


@pytest.mark.parametrize(
    ("value", "state"),
    [
        pytest.param("/own/lib:/a:/b", "in force", id="before"),
        pytest.param("/a:/b:/own/lib", "altered", id="behind"),
        pytest.param("/own/lib/a:/b", "altered", id="part"),
    ],
)
def test_a_launcher_may_put_its_folders_before_those_of_the_loader(value: str, state: str) -> None:
    requests = {"LD_LIBRARY_PATH": "/a:/b", "OTHER": "/a:/b"}
    states = read_back_variables(requests, (), {0: dict.fromkeys(requests, value)}, 1)
    assert states["LD_LIBRARY_PATH"].state == state
    assert states["OTHER"].state == "altered"
