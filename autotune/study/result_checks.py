"""What was checked of the results behind an answer: by a verification, and by comparing output."""

from __future__ import annotations

from typing import Literal

from autotune.config.app import App
from autotune.space import DEFAULT, Setting
from autotune.study.output_check import output_comparison, runs_of
from autotune.study.parts import ResultChecks
from autotune.study.run_history import RunHistory


def verification(app: App) -> Literal["application", "pattern", "json"] | None:
    """Who verifies the results: "application", or the user by a "pattern" or a "json" key."""
    if app.verify is None:
        return None
    if not app.literal:
        return "application"
    return "json" if app.verify.startswith("json:") else "pattern"


def result_checks(
    app: App, history: RunHistory, setting: Setting, reference: Setting = DEFAULT
) -> ResultChecks:
    """What was checked of the runs of a setting and its reference."""
    runs = [r for one in dict.fromkeys((reference, setting)) for r in runs_of(history, one)]
    other = setting != reference
    return ResultChecks(
        verified=verification(app),
        runs=len(runs),
        verified_runs=sum(run.verified is True for run in runs),
        output=output_comparison(history, setting, reference).figures if other else None,
    )
