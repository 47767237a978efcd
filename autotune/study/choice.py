"""Which of several figures of one run counts, and what to say where it is no time in seconds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from autotune.store import Store, StudyKey
from autotune.study.events import Note, Watcher
from autotune.study.former_programs import has_study
from autotune.study.target import Target
from autotune.words import seconds
from runner.types import MetricChoice, RunRecord


def as_begun(
    target: Target, store: Store, key_of: Callable[[Target], StudyKey], watch: Watcher
) -> Target:
    """The target with the last figure of a run, where its study was begun when that counted.

    Only where this command line names no choice, and no study with the present choice is there.
    """
    app = target.app
    if app.metric is None or app.metric.startswith("json:") or app.metric_choice is not None:
        return target
    before = dataclasses.replace(target, app=app.model_copy(update={"metric_choice": "last"}))
    if not has_study(store, key_of(before), before) or has_study(store, key_of(target), target):
        return target
    watch(
        Note(
            "this study was begun when the last match of --metric counted, and continues "
            "so; --metric-choice max begins another study"
        )
    )
    return before


def several_words(count: int) -> str:
    """What to say of a run in which the figure was found so often, where nobody chose."""
    return (
        f"--metric matched {count} times in one run (every rank or every step prints "
        "it); the largest value counts; --metric-choice last, first, sum or mean "
        "selects another"
    )


def too_long_words(record: RunRecord, choice: MetricChoice | None) -> str:
    """What to say of a figure that is longer than its run, so no time in seconds; "" otherwise.

    A sum over ranks may be.
    """
    figure, wall = record.metric_s, record.wall_s
    if figure is None or choice == "sum" or figure <= 1.5 * wall:
        return ""
    return (
        f"--metric found {figure:g} in a run of {seconds(wall)}. It is read as "
        "seconds, and smaller is better. If it is in ms or us, gains are right and "
        "times are not; a rate (Gflop/s) cannot be used"
    )
