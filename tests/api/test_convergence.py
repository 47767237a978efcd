"""Convergence, replay and the tables of the Python interface, and messages with keywords."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import autotune
from autotune.api.keywords import with_keywords
from autotune.datasets import load
from autotune.measurement.budget import SearchPlan
from autotune.measurement.run_history import HistoryEntry
from autotune.space import DEFAULT, Setting
from autotune.store import Store
from autotune.study.convergence import best_so_far
from autotune.study.trial_store import Trial
from tests.case_table import case_table
from tests.contract.store_samples import key, ok
from tests.refusals import refused

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "python.md"


def entry(order: int, trial: int | None, phase: str, wall_s: float) -> HistoryEntry:
    return HistoryEntry(order, "key", phase, ok(wall_s), trial)


def test_the_best_so_far_counts_every_launch_before_the_confirmation() -> None:
    trials = [
        Trial(0, Setting({"a": 1}), Setting({"a": 1}), "ok", 1.2),
        Trial(1, Setting({"a": 2}), Setting({"a": 2}), "ok", 0.8),
        Trial(2, Setting({"a": 3}), Setting({"a": 3}), "failed", None),
        Trial(3, Setting({"a": 4}), Setting({"a": 4}), "ok", 0.5),
    ]
    entries = [
        entry(0, None, "warmup", 4.0),
        entry(1, None, "default", 2.0),
        entry(2, 0, "search", 3.0),
        entry(3, 1, "search", 1.0),
        entry(4, 3, "search", 1.0),
        entry(5, 1, "race", 1.0),
        entry(6, 3, "confirm:r1", 50.0),
    ]
    points = best_so_far(entries, trials)
    assert [(p.runs, p.machine_s, p.ratio) for p in points] == [
        (0, 0.0, 1.0),
        (6, 12.0, 0.8),
        (6, 12.0, 0.5),
        (6, 12.0, 0.5),
    ]
    assert [p.setting for p in points[:2]] == [DEFAULT, Setting({"a": 2})]
    assert best_so_far(entries, trials[2:3]) == []


class FirstLevels(autotune.Strategy):
    name = "first-levels"
    summary = "every level alone"

    def propose(self) -> autotune.Proposal | None:
        for parameter in self.space:
            for level in parameter.levels:
                if proposal := self.new_proposal({parameter.name: level}):
                    return proposal
        return None


def test_a_strategy_object_is_replayed_and_drawn(tmp_path: Path) -> None:
    searches = autotune.replay(FirstLevels, "grid-node", "pingpong-4k", runs=30, seeds=2)
    again = autotune.replay(FirstLevels, "grid-node", "pingpong-4k", runs=30, seeds=[0, 1])
    assert [s.setting for s in searches] == [s.setting for s in again]
    for search in searches:
        frame = search.convergence()
        assert frame["ratio"].is_monotonic_decreasing
        assert frame["runs"].iloc[-1] == search.runs <= 32
        assert 0 < search.share < 2
        assert search.ratio < 1
        assert set(search.trials()["state"]) <= {"ok", "failed", "censored"}
    others = autotune.replay("random", "grid-node", "pingpong-4k", runs=20, seeds=1)
    for by in ("runs", "machine_s"):
        drawn = autotune.plot_convergence(
            {"first-levels": searches, "random": others[0]},
            by=by,  # type: ignore[arg-type]
        )
        text = drawn.save(tmp_path / "c.svg").read_text()
        assert text == drawn.svg
        assert "first-levels (2)" in text
        assert "random<" in text


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"cell": None}, "usage.argument"),
        ({"cell": "nothing"}, "dataset.cell_unknown"),
        ({"runs": 0}, "usage.argument"),
        ({"options": {"nothing": 1}}, "strategy.option_unknown"),
        ({"strategy": "nothing"}, "strategy.unknown"),
        ({"dataset": "programs-node"}, "dataset.not_a_grid"),
    ],
    ids=lambda value: value if isinstance(value, str) else "_".join(value),
)
def test_what_cannot_be_replayed_is_said(words: dict[str, object], code: str) -> None:
    request = {"strategy": "random", "dataset": "grid-node", "cell": "pingpong-4k"} | words
    with refused(autotune.UsageError, code):
        autotune.replay(**request)  # type: ignore[arg-type]


def test_nothing_is_drawn_of_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db") as store:
        study = autotune.Study(store.study(key()).hash, store)
        assert list(study.convergence().columns) == ["runs", "machine_s", "ratio", "setting"]
        with refused(autotune.UsageError, "study.no_runs"):
            autotune.plot_convergence({"empty": study})
        with refused(autotune.UsageError, "study.no_runs") as refusal:
            study.runs()
        assert study.id in str(refusal.value)
        with refused(autotune.UsageError, "usage.argument"):
            autotune.plot_convergence({"empty": study}, by="hours")  # type: ignore[arg-type]


def test_the_page_names_every_column_of_every_table(tmp_path: Path) -> None:
    rows = re.findall(r"^\| (`.*?) \| (.*?) \| .* \|$", PAGE.read_text(), re.MULTILINE)
    named: dict[str, set[str]] = {}
    for columns, tables in rows:
        for table in re.findall(r"`([\w()]+)`", tables):
            named.setdefault(table, set()).update(re.findall(r"`([\w.]+)`", columns))
    with Store.open(tmp_path / "s.db") as store:
        record = store.study(key())
        store.add_run(record.id, None, "default", 0, 0, ok(3.0))
        study = autotune.Study(record.hash, store)
        assert named["runs()"] - {"param.NAME"} == set(study.runs(output=True).columns)
        assert named["trials()"] == set(study.trials().columns)
        assert named["convergence()"] == set(study.convergence().columns)
    grid = load("grid-node")
    assert named["datasets"] == set(grid.runs(grid.cells[0]).columns)


def test_the_page_says_what_the_proof_takes() -> None:
    plan = SearchPlan()
    for text in (PAGE.read_text(), autotune.tune.__doc__ or ""):
        numbers = re.findall(r"\d+", " ".join(text.split()).partition("every launch")[2])
        numbers = numbers or re.findall(r"\d+", text.partition("launches")[2])
        assert numbers[:5] == [str(plan.least_runs), "3", "5", "24", "12"]
    assert (plan.proof_runs(1), plan.proof_runs(2) - plan.proof_runs(1)) == (24, 12)


@case_table(
    ("option", "keyword"),
    [
        ("--timeout 60", "timeout=60"),
        ("--runs N", "runs=N"),
        ("(--budget)", "(budget=)"),
        ("--no-guard", "guard=False"),
        ("--start", "starts="),
        ("--space openmpi+mate", "space='openmpi+mate'"),
    ],
)
def test_an_option_in_a_sentence_becomes_a_keyword(option: str, keyword: str) -> None:
    assert with_keywords(option) == keyword


@case_table(
    "line",
    ["autotune space list --json -", "mpirun -n 2 --app x ./a", "--format sh"],
)
def test_lines_to_copy_stay(line: str) -> None:
    assert with_keywords(line) == line


def test_an_error_of_a_call_names_keywords(tmp_path: Path) -> None:
    with refused(autotune.UsageError, "budget.too_small") as refusal:
        autotune.tune(["true"], ranks=1, runs=3, store=tmp_path / "s.db")
    assert "runs=3" in str(refusal.value)
    assert "--" not in str(refusal.value)
