"""Objections: reasons why a setting that won its proof is not recommended.

A proof compares figures. It does not see that the figures are wrong: that a setting changes the
results, that a program did not do the same work twice, that a rate was read as a time. Each check
reads the runs of a setting and of its reference and says what it sees. A finding that stops is an
objection: nothing is recommended then. Any other finding is a note.

One check asks whether the metric of a faster setting contradicts its wall time. A rate that is read
as a time gets smaller when the program gets slower. Then the wall time of the "faster" setting is
longer. A longer start can also be the reason: a setting may save time in the part that the program
measures, and cost more outside of it. So the time from the end of MPI_Init on is compared where it
was seen. Where it was not, the start is excluded in one of two ways: it cannot have grown so much,
or the metric falls with the wall time also among runs of one setting, whose starts are the same
(docs/explanation/measuring.md).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from autotune.measurement.first_run import files_note, longer_first_of, longer_note, resumed_note
from autotune.measurement.output_check import output_difference
from autotune.measurement.reduction_operations import objection
from autotune.measurement.run_history import WARMUP, RunHistory
from autotune.notes import Note
from autotune.space import DEFAULT, Setting
from autotune.stats.ranks import rank_sum_z, spearman_z
from autotune.wording import Metric, seconds
from runner.types import RunRecord


@dataclass(frozen=True)
class Finding:
    """What one check says; ``stops``: whether it is an objection."""

    note: Note
    stops: bool


Check = Callable[[RunHistory, Setting, Setting], Iterable[Finding]]
"""A function of the run history, a setting and its reference."""


def wall_time(history: RunHistory, setting: Setting, reference: Setting) -> Iterable[Finding]:
    """Whether the metric of the setting contradicts its wall time."""
    contradiction = wall_contradiction(history, setting, reference)
    return () if contradiction is None else (Finding(contradiction[0], stops=contradiction[1]),)


def resumed_work(history: RunHistory, setting: Setting, reference: Setting) -> Iterator[Finding]:
    """Whether later runs continue from files of the first one."""
    firsts = history.first_runs
    wrote = any(first.files for first in firsts)
    both = False
    for one in (reference, setting):
        longer = longer_first_of(history, one.key)
        if longer is None:
            continue
        who = "the default" if one == DEFAULT else one.key
        both = both or wrote
        note = resumed_note(longer, firsts, who) if wrote else longer_note(longer, who)
        yield Finding(note, stops=wrote)
    remark = None if both else files_note(firsts)
    if remark is not None:
        yield Finding(remark, stops=False)


def output(history: RunHistory, setting: Setting, reference: Setting) -> Iterable[Finding]:
    """Whether the setting changes what the program prints."""
    difference = output_difference(history, setting, reference)
    return () if difference is None else (Finding(difference[0], stops=difference[1]),)


def operations(history: RunHistory, setting: Setting, reference: Setting) -> Iterable[Finding]:
    """Stops a setting that is wrong for an operation that the program may have."""
    note = objection(history, setting)
    return () if note is None else (Finding(note, stops=True),)


CHECKS: tuple[Check, ...] = (operations, wall_time, output, resumed_work)
"""The checks, in the order in which their findings are shown."""


def findings_on(
    history: RunHistory, setting: Setting, reference: Setting = DEFAULT
) -> tuple[Finding, ...]:
    """What all checks say of a setting that is faster than its reference."""
    return tuple(one for check in CHECKS for one in check(history, setting, reference))


def objections(findings: Iterable[Finding]) -> list[Note]:
    """The findings that stop a recommendation."""
    return [one.note for one in findings if one.stops]


def remarks(findings: Iterable[Finding]) -> list[Note]:
    """The findings that do not."""
    return [one.note for one in findings if not one.stops]


CERTAIN = 3.09
"""Normal deviate of a one-sided error probability of 0.1 %."""
FEWEST = 4
"""Smallest number of runs of the setting, and of its reference."""
LONGER = 0.05
"""Share by which the time after MPI_Init must grow: the end of a launch takes its time, too."""
ADDED_STARTS = 1.0
"""Starts of the reference that a setting may add to its wall time before its start is no reason."""


def wall_contradiction(
    history: RunHistory, setting: Setting, reference: Setting
) -> tuple[Note, bool] | None:
    """The note on a faster setting whose runs take longer, and whether it stops; None: no sign."""
    runs = _runs_by_setting(history)
    faster, slower = runs.get(setting.key, []), runs.get(reference.key, [])
    if min(len(faster), len(slower)) < FEWEST:
        return None
    walls = [r.wall_s for r in slower], [r.wall_s for r in faster]
    if rank_sum_z(*walls) < CERTAIN:
        return None
    before, behind = map(statistics.median, walls)
    extra_s = behind - before
    start = None if slower[0].metric_rate else _start(slower)
    if all(r.init_s is not None for records in runs.values() for r in records):
        own = [[_own_s(r) for r in side] for side in (slower, faster)]
        longer = statistics.median(own[1]) / statistics.median(own[0]) - 1
        beyond = longer > LONGER and rank_sum_z(*own) >= CERTAIN
    else:
        beyond = start is not None and extra_s > ADDED_STARTS * start
    every = [r for records in runs.values() for r in records]
    over_all = spearman_z([r.value_s for r in every], [_own_s(r) for r in every])
    within = _within(runs)
    stops = over_all < -CERTAIN and (within < -CERTAIN or beyond)
    metric = Metric.of(faster[-1])
    figures = [statistics.median(r.value_s for r in records) for records in (slower, faster)]
    words = (
        f"the metric says that {setting.key} is faster ({metric.words(figures[1])} against "
        f"{metric.words(figures[0])}), and its runs take longer ({seconds(behind)} against "
        f"{seconds(before)} of wall time)"
    )
    if stops and metric.kind == "rate":
        words += "; the metric seems to be a time: give its pattern to --metric"
    elif stops:
        words += "; the metric seems to be a rate: give its pattern to --metric-rate"
    else:
        words += "; the start of the program may take the difference"
    data = {
        "setting": setting.key,
        "wall_s": [before, behind],
        "metric_s": figures,
        "start_s": start,
        "z_all": round(over_all, 2),
        "z_within": round(within, 2),
    }
    return Note("metric.contradicts_wall", words, data), stops


def _runs_by_setting(history: RunHistory) -> dict[str, list[RunRecord]]:
    """Valid runs with a printed time or rate, on the place with most of them, by setting."""
    runs_by_place: dict[str, dict[str, list[RunRecord]]] = {}
    for entry in history.entries:
        record = entry.record
        has_metric = record.valid and entry.kind != WARMUP and record.metric_s is not None
        if has_metric and (record.metric_rate or not record.metric_unit):
            runs_by_place.setdefault(record.place, {}).setdefault(entry.key, []).append(record)
    return max(runs_by_place.values(), key=lambda runs: sum(map(len, runs.values())), default={})


def _own_s(record: RunRecord) -> float:
    """Seconds of the run from the end of MPI_Init on; all of it where that was not seen."""
    return record.wall_s - (record.init_s or 0.0)


def _start(records: list[RunRecord]) -> float | None:
    """The median time outside the metric; None if the metric is longer than its run."""
    outside = statistics.median(r.wall_s - r.value_s for r in records)
    return outside if outside > 0 else None


def _within(runs: dict[str, list[RunRecord]]) -> float:
    """The rank correlation of metric and wall time among runs of the same setting, as a deviate."""
    metric: list[float] = []
    wall: list[float] = []
    for records in runs.values():
        if len(records) >= FEWEST:
            metric += _centre([r.value_s for r in records])
            wall += _centre([_own_s(r) for r in records])
    return spearman_z(metric, wall)


def _centre(values: list[float]) -> list[float]:
    middle = statistics.median(map(math.log, values))
    return [math.log(value) - middle for value in values]
