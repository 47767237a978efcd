"""When a stored result answers a request: more of what ended the study wants more work."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

from autotune.measurement.budget import SearchPlan
from autotune.space import DEFAULT
from autotune.study.search_result import BUDGET_SPENT, NOTHING_LEFT, Result
from autotune.study.search_study import answer_of
from tests.case_table import case_table


def stored(ended_by: str) -> Any:
    done = Result(
        status="keep_default", recommended=DEFAULT, study="s",
        mpi={"name": "openmpi", "version": "5"}, machine="", cluster="", app="", ranks=2,
        strategy="ga", seed=0, ended_by=ended_by, trials=5, budget_s=None,
        max_runs=40, inherited={},
    )  # fmt: skip
    return SimpleNamespace(result=done.to_json(), status=done.status)


@case_table(
    ("ended_by", "change", "enough"),
    [
        (BUDGET_SPENT, {}, True),
        (BUDGET_SPENT, {"max_runs": 60}, False),
        (BUDGET_SPENT, {"max_runs": None}, False),
        ("5 trials done", {}, False),
        ("5 trials done", {"trials": 5}, True),
        (NOTHING_LEFT, {"max_runs": 60}, True),
    ],
)
def test_a_study_that_its_budget_ended_is_not_begun_again_for_more_trials(
    ended_by: str, change: dict[str, Any], enough: bool
) -> None:
    plan = dataclasses.replace(SearchPlan(trials=8, max_runs=40), **change)
    assert (answer_of(stored(ended_by), plan) is not None) is enough
