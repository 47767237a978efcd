"""Runs that disturb each other, simulated: the machines, the procedures on them, the command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from autotune.measurement.budget import SearchPlan
from autotune.space import DEFAULT, Setting
from autotune.strategies import create
from autotune.study.procedure import run_procedure
from autotune.study.simulation import MemoryTrialStore
from benchmarks.disturbance_simulation import (
    ANSWERS,
    GAINS,
    NULLS,
    OWN_SPELLS,
    PROCEDURES,
    TRUTHS,
    Outcome,
    Table,
    holds,
    main,
    row_of,
    rows_to_measure,
    study,
)
from benchmarks.disturbances import (
    DISTURBED,
    Disturbance,
    DisturbedEvaluator,
    Launch,
    carry_over,
    heat,
    own_spells,
    resonance,
    second_place,
    sometimes_slow,
    wave,
)
from benchmarks.disturbances import (
    Path as SpeedPath,
)
from benchmarks.study_simulation import space
from tests.case_table import case_table

OTHER = Setting({"p0": 2})


def times(disturbance: Disturbance, settings: list[Setting]) -> list[float]:
    """Seconds of these runs, one after the other, through an evaluator."""
    evaluator = DisturbedEvaluator(disturbance(np.random.default_rng(3)))
    for number, setting in enumerate(settings):
        evaluator.run(setting, "test", block=number)
    return [entry.record.value_s for entry in evaluator.history.entries]


def speeds(path: SpeedPath, runs: int) -> np.typing.NDArray[np.float64]:
    logs = path(np.random.default_rng(3))
    return np.array([next(logs) for _ in range(runs)])


def correlation(values: np.typing.NDArray[np.float64], lag: int) -> float:
    return float(np.corrcoef(values[:-lag], values[lag:])[0, 1])


def test_a_run_after_a_candidate_is_slower_whatever_it_is() -> None:
    runs = [DEFAULT, OTHER, OTHER, DEFAULT, DEFAULT]
    assert times(carry_over(0.10, 0.0), runs) == pytest.approx([1, 1, 1.1, 1.1, 1])


def test_heat_adds_up_and_halves() -> None:
    runs = [OTHER, OTHER, DEFAULT, DEFAULT, DEFAULT]
    seconds = times(heat(0.08, 0.0), runs)
    assert seconds == pytest.approx([1, 1.08, 1.12, 1.06, 1.03])


def test_spells_belong_to_a_setting_and_last_for_its_own_runs() -> None:
    pair = [DEFAULT, OTHER] * 4000
    slow = np.array(times(own_spells(1.5, 8, 0.0), pair)) > 1.2
    for own in (slow[::2], slow[1::2]):
        changes = float(np.mean(own[1:] != own[:-1]))
        assert 1 / changes == pytest.approx(8, rel=0.1)
        assert float(np.mean(own)) == pytest.approx(0.5, abs=0.1)
    assert abs(float(np.corrcoef(slow[::2], slow[1::2])[0, 1])) < 0.15


def test_slow_launches_make_candidates_faster_in_most_and_slower_in_the_mean() -> None:
    seconds = np.array(times(sometimes_slow(0.25, 1.9, 0.04, 0.0), [DEFAULT, OTHER] * 4000))
    default, candidate = seconds[::2], seconds[1::2]
    assert float(np.mean(candidate / default)) == pytest.approx(1.18, abs=0.03)
    assert float(np.median(candidate / default)) == pytest.approx(0.96)


def test_only_the_second_place_of_a_block_costs() -> None:
    machine = second_place(0.10, 0.0)(np.random.default_rng(3))
    assert [machine(Launch(OTHER, [], place)) for place in range(3)] == pytest.approx([1, 1.1, 1])


def test_speeds_of_the_machine_have_their_period_and_scatter() -> None:
    ringing = speeds(resonance(0.95, 4.0, 0.05), 20_000)
    assert float(np.std(ringing)) == pytest.approx(0.05, rel=0.1)
    assert correlation(ringing, 2) == pytest.approx(-(0.95**2), abs=0.03)
    assert correlation(ringing, 4) == pytest.approx(0.95**4, abs=0.05)
    regular = speeds(wave(0.05, 4.0, 4.0), 400)
    assert np.max(np.abs(np.expm1(regular))) <= 0.05
    assert correlation(regular, 4) == pytest.approx(1)


def test_every_machine_sees_all_runs_of_a_study_in_their_order() -> None:
    seen: list[tuple[Setting, list[Setting]]] = []
    rng = np.random.default_rng(3)

    def machine(launch: Launch) -> float:
        seen.append((launch.setting, list(launch.before)))
        return float(rng.lognormal(0, 0.05)) / (1 + 0.2 * (launch.setting.get("p0") == 2))

    evaluator = DisturbedEvaluator(machine)
    where, plan = space(), SearchPlan(trials=10)
    strategy = create("random", where, seed=1)
    run_procedure(evaluator, MemoryTrialStore(), strategy, where, plan, 1)
    settings = [setting for setting, _ in seen]
    assert [setting.key for setting in settings] == [e.key for e in evaluator.history.entries]
    assert all(before == settings[:number] for number, (_, before) in enumerate(seen))
    assert len({e.position for e in evaluator.history.entries}) > 1


@case_table("procedure", ["compare", "proof-1", "proof-3"])
def test_a_large_gain_is_named_and_blocks_are_measured(procedure: str) -> None:
    ends = [study(procedure, "gain of 20 % at 5 % noise", number) for number in range(3)]
    assert [one.answer for one in ends] == ["named"] * 3
    assert all(one.runs >= 24 for one in ends)


ENDING = [(procedure, truth) for truth in NULLS for procedure in ("compare", "proof-3")]


@pytest.mark.parametrize(
    ("procedure", "truth"),
    [
        # Each null under one of them, the other one at night.
        pytest.param(*row, marks=[] if number % 4 in (0, 3) else pytest.mark.slow)
        for number, row in enumerate(ENDING)
    ],
)
def test_every_null_comes_to_an_end_under_a_comparison_and_a_proof(
    procedure: str, truth: str
) -> None:
    assert study(procedure, truth, 0).answer in set(ANSWERS) - {"crashed"}


@pytest.mark.parametrize("strategy", ["ga", "auto"])
def test_a_whole_study_is_drawn_from_its_seed_alone(strategy: str) -> None:
    truth = next(iter(DISTURBED))
    first, again, other = (study(strategy, truth, number) for number in (0, 0, 1))
    assert first == again
    assert first.runs > 20
    assert (first.answer, first.runs) != (other.answer, other.runs)


def test_a_fault_and_a_default_that_fails_are_counted_and_not_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(launch: Launch) -> float:
        raise ValueError("a fault")

    monkeypatch.setitem(TRUTHS, "broken", lambda rng: broken)
    monkeypatch.setitem(TRUTHS, "failing", lambda rng: lambda launch: "failed")
    fault, failure = study("proof-1", "broken", 7), study("proof-1", "failing", 7)
    assert (fault.answer, failure.answer) == ("crashed", "aborted")
    row = row_of("proof-1", OWN_SPELLS, [fault, failure, Outcome("default", 30)])
    assert (row["crashed"], row["aborted"], row["default"], row["named"]) == (1, 1, 1, 0)
    assert "study 7" in row["crash"]


def test_bounds_are_exact_and_decide_whether_a_null_holds() -> None:
    def row(truth: str, named: int) -> dict[str, object]:
        ends = [Outcome("named", 10)] * named + [Outcome("default", 20)] * (200 - named)
        return row_of("proof-1", truth, ends)

    null = next(iter(NULLS))
    assert (row(null, 0)["at_least"], row(null, 0)["at_most"]) == pytest.approx((0, 0.0183))
    assert row(null, 100)["at_least"] == pytest.approx(0.4287, abs=1e-4)
    assert holds(row(null, 8))
    assert not holds(row(null, 9))
    assert holds(row(OWN_SPELLS, 9))
    assert holds(row(next(iter(GAINS)), 200))


def test_whole_studies_come_last_and_power_only_where_one_setting_is_proven() -> None:
    rows = rows_to_measure(PROCEDURES, ())
    whole = [number for number, (name, _) in enumerate(rows) if name in ("ga", "auto")]
    assert whole == list(range(whole[0], len(rows)))
    powers = {name for name, truth in rows if truth in GAINS}
    assert powers == {"proof-1"}
    assert len(set(rows)) == len(rows) == 5 * len(NULLS) + len(GAINS)


def test_a_row_of_other_code_is_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    null = next(iter(NULLS))
    Table(path, "one").add(row_of("compare", null, [Outcome("default", 20)] * 4))
    assert Table(path, "one").row("compare", null, 4) is not None
    assert Table(path, "one").row("compare", null, 5) is None
    assert Table(path, "one").row("proof-1", null, 4) is None
    other = Table(path, "two")
    assert other.row("compare", null, 4) is None
    other.add(row_of("proof-1", null, [Outcome("named", 20)] * 4))
    assert [row["code"] for row in json.loads(path.read_text())["rows"]] == ["one", "two"]


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_command_continues_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    path = tmp_path / "rows.json"
    line = ["disturbance_simulation", "--studies", "3", "--power-studies", "2"]
    line += ["--processes", f"{processes}", "--procedure", "compare", "proof-1"]
    line += ["--json", f"{path}", "--null"]

    def rows(*words: str) -> list[dict[str, object]]:
        monkeypatch.setattr(sys, "argv", [*line, *words])
        # Three studies are too few for the bound of a null.
        assert main() == 1
        table = json.loads(path.read_text())
        assert "--studies 3 --power-studies 2" in table["command"]
        return list(table["rows"])

    first = rows("carry-over of 10 %")
    names = [(row["procedure"], row["studies"]) for row in first]
    assert names == [("proof-1", 3), ("compare", 3)]
    more = rows("carry-over of 10 %", "gain of 20 % at 5 %")
    assert more[:2] == first
    assert [(row["named"], row["studies"], row["null"]) for row in more[2:]] == [(2, 2, False)]
