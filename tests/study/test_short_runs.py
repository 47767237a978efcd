"""The note on runs that are too short, where the program prints the time of one operation."""

from __future__ import annotations

from typing import Any

from autotune.comparison.noise import _report
from autotune.measurement.run_history import HistoryEntry, RunHistory
from autotune.space import DEFAULT
from autotune.study.study_warnings import study_warnings
from autotune.targets.figures import too_long_note, too_short_note
from runner.types import RunRecord
from tests.case_table import case_table


def entries(wall_s: float, metric_s: float | None) -> list[HistoryEntry]:
    """Eight runs of the default that differ a little."""
    return [
        HistoryEntry(
            order,
            DEFAULT.key,
            "default",
            RunRecord(
                "ok",
                wall_s=wall_s * (1 + order / 1000),
                metric_s=None if metric_s is None else metric_s * (1 + order / 1000),
            ),
        )
        for order in range(8)
    ]


@case_table(
    ("wall_s", "metric_s", "short"),
    [(3.0, 4e-6, False), (0.05, 4e-6, True), (3.0, None, False), (0.05, None, True)],
)
def test_the_wall_time_decides(wall_s: float, metric_s: float | None, short: bool) -> None:
    made = entries(wall_s, metric_s)
    history = RunHistory()
    for entry in made:
        history.add(entry)
    answer: Any = type("Answer", (), {"with_objections": (), "recommendation": None, "proof": None})
    of_study = study_warnings(history, [], answer)
    of_noise = _report(made, "study", 0, guard=True).seconds.warnings
    for notes in (of_study, of_noise):
        assert any(note.code == "metric.short" for note in notes) is short, notes


@case_table(
    ("record", "code"),
    [
        (RunRecord("ok", wall_s=0.5, metric_s=5e-5), "metric.very_short"),
        (RunRecord("ok", wall_s=0.5, metric_s=5e-5, metric_rate=True), None),
        (RunRecord("ok", wall_s=0.5, metric_s=5e-5, metric_unit="GB"), None),
        (RunRecord("ok", wall_s=0.5, metric_s=0.005), None),
        (RunRecord("ok", wall_s=0.5), None),
    ],
)
def test_a_very_short_figure_is_named(record: RunRecord, code: str | None) -> None:
    note = too_short_note(record)
    assert (note.code if note else None) == code


def test_a_sum_over_ranks_may_be_longer_than_the_run() -> None:
    record = RunRecord("ok", wall_s=0.5, metric_s=1.1, world_size=2)
    assert too_long_note(record, "sum") is None
    assert too_long_note(record, "max") is not None
    record.metric_s = 600.0
    assert too_long_note(record, "sum") is not None
