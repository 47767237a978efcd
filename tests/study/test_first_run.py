"""Signs of resumed work: which runs show them, and what follows of one and of both."""

from __future__ import annotations

from dataclasses import replace

from autotune.errors import WorkError
from autotune.measurement.first_run import longer_first, longer_first_of, resumed_error
from autotune.measurement.run_history import (
    CONFIRM,
    DEFAULT_PHASE,
    WARMUP,
    FirstRun,
    HistoryEntry,
    RunHistory,
    first_runs_of,
)
from autotune.space import DEFAULT, Setting
from autotune.study.objections import findings_on
from runner.types import RunRecord
from tests.case_table import case_table

ONE = Setting({"a": 1})
WROTE = FirstRun(0, created=("state.cpt",))


def record(cpu_s: float, metric_s: float | None = None, exit_code: int = 0) -> RunRecord:
    """A run with this CPU time and figure."""
    state = "ok" if exit_code == 0 else "failed"
    return RunRecord(state, cpu_s=cpu_s, metric_s=metric_s, exit_code=exit_code)  # type: ignore[arg-type]


def runs(cpu_s: list[float], metric_s: list[float] | None = None) -> list[RunRecord]:
    figures = metric_s or [None] * len(cpu_s)
    return [record(c, m) for c, m in zip(cpu_s, figures, strict=True)]


@case_table(
    ("cpu_s", "metric_s", "longer"),
    [
        ([5.0, 0.4, 0.4], None, True),
        ([5.0, 0.4, 0.4], [2.0, 0.001, 0.001], True),
        ([5.0, 0.4], None, False),  # One later run is too few.
        ([5.0, 4.0, 4.0], None, False),  # No multiple.
        ([0.4, 0.15, 0.15], None, False),  # The start alone may differ so much.
        ([5.0, 0.4, 0.4], [2.0, 2.1, 1.9], False),  # The figure is that of the same work.
        ([0.4, 5.0, 5.0], None, False),
    ],
)
def test_a_longer_first_run_is_told_from_a_cold_start(
    cpu_s: list[float], metric_s: list[float] | None, longer: bool
) -> None:
    first, *later = runs(cpu_s, metric_s)
    assert (longer_first(first, later) is not None) is longer


def test_failed_runs_do_not_count() -> None:
    first, *later = runs([5.0, 0.4, 0.4])
    assert longer_first(replace(first, exit_code=1), later) is None
    assert longer_first(first, [later[0], record(0.1, exit_code=1)]) is None


def history(
    default: list[float], one: list[float], first: FirstRun | None, warm: str = ""
) -> RunHistory:
    """A warm-up, runs of the default and runs of a setting; ``warm``: what the warm-up wrote to
    standard error."""
    made = RunHistory()
    for number, cpu_s in enumerate(default):
        phase = DEFAULT_PHASE if number else WARMUP
        run = replace(record(cpu_s), stderr_tail="" if number else warm)
        made.add(HistoryEntry(made.next_order, DEFAULT.key, phase, run))
    for cpu_s in one:
        made.add(HistoryEntry(made.next_order, ONE.key, CONFIRM, record(cpu_s)))
    made.first_runs = [] if first is None else [first]
    return made


@case_table(
    ("default", "one", "first", "codes"),
    [
        ([5, 1, 1], [1, 1, 1], WROTE, [("work.resumed", True)]),
        ([1, 1, 1], [5, 1, 1], WROTE, [("work.resumed", True)]),
        ([5, 1, 1], [1, 1, 1], FirstRun(0), [("work.first_run_longer", False)]),
        ([1, 1, 1], [1, 1, 1], WROTE, [("work.files_written", False)]),
        ([1, 1, 1], [1, 1, 1], replace(WROTE, prepared=True), []),
        ([5, 1, 1], [1, 1, 1], replace(WROTE, prepared=True), [("work.resumed", True)]),
        ([1, 1, 1], [1, 1, 1], FirstRun(0), []),
        ([1, 1, 1], [1, 1, 1], None, []),
    ],
)
def test_one_sign_is_a_note_and_both_stop(
    default: list[float],
    one: list[float],
    first: FirstRun | None,
    codes: list[tuple[str, bool]],
) -> None:
    found = findings_on(history(default, one, first), ONE)
    assert [(f.note.code, f.stops) for f in found if f.note.code.startswith("work.")] == codes


def test_a_warm_up_that_compiled_is_no_first_run() -> None:
    """The watch names the run after it; a warm-up that is not named does not count."""
    made = history([5, 1, 1, 1], [1, 1, 1], replace(WROTE, order=1), warm="note: compiling x")
    assert longer_first_of(made, DEFAULT.key) is None


def test_a_document_is_read_as_written_and_damage_left_out() -> None:
    first = FirstRun(3, ("a",), ("b",), True, 0.25, True)
    damaged = {**first.to_json(), "created": 3}
    assert list(first_runs_of([first.to_json(), damaged, {}])) == [first]


def test_the_error_names_what_to_remove() -> None:
    longer = longer_first(record(5.0), runs([1.0, 1.0]))
    assert longer is not None
    error = resumed_error(longer, [FirstRun(0, ("my state",), ("log",))], "the default")
    assert isinstance(error, WorkError)
    assert error.code == "work.resumed"
    assert "--before 'rm -f '\"'\"'my state'\"'\"''" in str(error)  # data
    assert "--fresh-dir" in str(error)
