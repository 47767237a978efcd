"""Printed lines in the database: whole, and small where runs print nearly the same."""

from __future__ import annotations

from pathlib import Path

from autotune.store import Store
from runner.types import PrintedLines
from tests.contract.store_samples import key, ok


def printed(n: int) -> PrintedLines:
    lines = [f"step {step} energy {step}.25 and so on" for step in range(1000)]
    lines[500] = f"elapsed {n} s"
    return PrintedLines((*lines, f"total {n}"), {"ab": f"{n % 2}"})


def test_200_runs_of_1000_lines_are_little_more_than_one(tmp_path: Path) -> None:
    place = tmp_path / "results.db"
    with Store.open(place) as store:
        study = store.study(key())
        for n in range(200):
            store.add_run(study.id, None, "default", 0, n, ok(1.0, printed=printed(n)))
        found = store.runs(study.id, output=False)
        assert [set(run.record.printed.lines) for run in found if run.record.printed] == [
            set(printed(n).lines) for n in range(200)
        ]
        assert [run.record.printed.long for run in found if run.record.printed] == [
            printed(n).long for n in range(200)
        ]
    assert place.stat().st_size < 1_000_000


def test_a_run_with_other_lines_begins_a_list_of_its_own(tmp_path: Path) -> None:
    texts = [PrintedLines(("a", "b")), PrintedLines(("c", "d")), None, PrintedLines(("c", "e"))]
    with Store.open(tmp_path / "results.db") as store:
        study = store.study(key())
        for n, one in enumerate(texts):
            store.add_run(study.id, None, "default", 0, n, ok(1.0, printed=one))
        assert [run.record.printed for run in store.runs(study.id)] == texts
        assert all(run.record.printed is None for run in store.runs(study.id, brief=True))
