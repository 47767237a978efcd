"""The program of a publication's evidence, run again with what it read and how it was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autotune.config.cluster import read_cluster
from autotune.errors import UsageError
from autotune.publish.programs import EvidenceProgram, NotRun, program_of
from autotune.targets.target import Target
from runner.mpi.library import Library
from tests.refusals import refused

CHECK = {"app": "p", "input": None, "ranks": 2, "program": ["/bin/true"], "metric": "t=(.)"}


def target(**more: Any) -> Target:
    found = Library("openmpi", "5.0.11", "/m", "/m/mpirun")
    made = program_of({**CHECK, **more}, read_cluster("local"), found, "x", run_recorded=True)
    assert isinstance(made, EvidenceProgram)
    return made.target


def test_figure_and_input_are_those_of_the_study(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("7\n")
    made = target(metric_choice="sum", stdin=f"{tmp_path}/in")
    assert (made.metric_choice, made.stdin) == ("sum", f"{tmp_path}/in")
    assert made.spec(None).stdin == f"{tmp_path}/in"


def test_inherited_settings_are_removed_only_if_the_study_did() -> None:
    assert target(clean_env=True).clean_env
    assert not target().clean_env


def test_a_rate_stays_one() -> None:
    made = target(metric="reached (.*)", metric_rate=True)
    assert (made.app.metric, made.app.metric_rate) == (None, "reached (.*)")
    assert made.metric_choice == "min"
    assert (target().metric_choice, target().stdin) == ("max", None)


def test_what_is_no_choice_is_refused() -> None:
    for wrong in (
        {"metric_choice": "median"},
        {"metric_choice": 3},
        {"metric_rate": "yes"},
        {"stdin": 7},
    ):
        with refused(UsageError, "published.program_unknown"):
            target(**wrong)


@pytest.mark.parametrize("given", [{"before": ["touch", "x"]}, {"fresh_dir": "/somewhere"}])
def test_a_command_before_each_run_is_not_carried_out_because_a_file_says_so(
    given: dict[str, object],
) -> None:
    found = Library("openmpi", "5.0.11", "/m", "/m/mpirun")
    made = program_of({**CHECK, **given}, read_cluster("local"), found, "x", run_recorded=True)
    assert isinstance(made, NotRun)
    assert not made.is_broken


def test_an_input_that_is_gone_is_named(tmp_path: Path) -> None:
    with refused(UsageError, "app.stdin_unreadable"):
        target(stdin=f"{tmp_path}/gone").spec(None)
