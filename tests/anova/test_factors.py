"""What is put into simulated runs is found, and nothing else."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from autotune.anova.diagnostics import diagnose
from autotune.anova.factors import (
    THESIS,
    Correction,
    Factor,
    FactorOptions,
    Model,
    chosen_setting,
    corrected_ps,
    judge_factors,
)
from autotune.anova.interactions import interactions
from autotune.anova.mixed import fit, variance_shares
from autotune.anova.oneway import respond, winsorise
from autotune.anova.stability import stability, unstable
from autotune.anova.table import CellFacts, RunTable
from autotune.errors import UsageError, WorkError
from autotune.space import Setting
from benchmarks.harness.synthetic_tables import (
    Effect,
    additive,
    cell_facts,
    no_effect,
    random_settings,
    table_of,
)
from tests.case_table import case_table
from tests.refusals import refused

LEVELS: dict[str, list[int | float | str | None]] = {
    f"p{i}": [None, *range(4 if i % 2 else 2)] for i in range(8)
}
CELLS = cell_facts(["a", "b", "c"], ["S", "L"], [4])
EFFECTS = additive({"p1": {0: -0.15, 3: 0.3}, "p3": {2: -0.08}})


@cache
def table(effect: Effect = EFFECTS, seed: int = 0, count: int = 200) -> RunTable:
    rng = np.random.default_rng(seed)
    return table_of(random_settings(LEVELS, count, rng), CELLS, effect, rng)


@cache
def judged(model: Model) -> list[Factor]:
    """The parameters of the plain table, by their gain."""
    return judge_factors(respond(table(), "gain"), FactorOptions(model=model))


@pytest.mark.parametrize("model", ["mixed", "rank"])
def test_the_true_levels_are_found_and_nothing_else(model: Model) -> None:
    factors = judged(model)
    assert chosen_setting(factors) == Setting({"p1": 0, "p3": 2})
    assert {f.name for f in factors if f.significant} == {"p1", "p3"}


def test_the_thesis_preset_finds_them_too() -> None:
    factors = {f.name: f for f in judge_factors(respond(table(), "gain"), THESIS)}
    assert factors["p1"].chosen == 0
    assert factors["p1"].p < 1e-9


def test_rows_of_one_setting_fool_the_oneway_test_but_not_the_mixed_model() -> None:
    values = respond(table(), "gain")
    assert variance_shares(values).of_setting > 0.5
    nothing = {f"p{i}" for i in (0, 2, 4, 5, 6, 7)}
    oneway = {f.name for f in judge_factors(values, THESIS) if f.significant}
    mixed = {f.name for f in judged("mixed") if f.significant}
    assert oneway & nothing
    assert not mixed & nothing
    assert any(note.code == "anova.repeated_settings" for note in diagnose(values, "oneway"))
    assert not any(note.code == "anova.repeated_settings" for note in diagnose(values, "mixed"))


def test_a_default_that_is_best_is_said_and_not_set() -> None:
    worse = additive({"p1": dict.fromkeys(range(4), 0.3)})
    factors = {f.name: f for f in judge_factors(respond(table(worse), "log"), FactorOptions())}
    assert factors["p1"].significant
    assert factors["p1"].chosen is None
    assert "default" in factors["p1"].why


def test_equal_levels_are_not_preferred_to_the_default() -> None:
    # One level is bad; the others are as good as leaving the parameter alone.
    bad = additive({"p1": {3: 0.4}})
    factors = {f.name: f for f in judge_factors(respond(table(bad), "log"), FactorOptions())}
    assert factors["p1"].significant
    assert factors["p1"].chosen is None


def test_pure_noise_gives_null_cells_and_no_gain_to_explain() -> None:
    noise = table(no_effect)
    assert sum(best.null for best in noise.best.values()) >= 5
    factors = judge_factors(respond(noise, "log"), FactorOptions())
    assert not any(f.significant for f in factors)
    none = noise.where(lambda place: noise.best[place.key].null)
    with refused(WorkError, "dataset.no_gain"):
        respond(none, "gain")


def test_the_best_known_gain_is_not_the_luckiest_run() -> None:
    best = table().best["a.S.4"]
    assert best.noise == pytest.approx(0.03, rel=0.3)
    assert best.gain == pytest.approx(np.expm1(0.23), rel=0.25)


def test_an_exclusive_or_is_missed_alone_and_found_in_pairs() -> None:
    def xor(setting: Setting, place: CellFacts) -> float:
        return -0.1 if (setting.get("p0") == 1) != (setting.get("p2") == 1) else 0.0

    flags: dict[str, list[int | float | str | None]] = {
        f"p{i}": [0, 1] if i in (0, 2) else [None, 1] for i in range(8)
    }
    rng = np.random.default_rng(3)
    found = table_of(random_settings(flags, 200, rng), CELLS, xor, rng)
    values = respond(found, "gain")
    assert not any(f.significant for f in judge_factors(values, FactorOptions()))
    pairs = interactions(values, found.names)
    assert [(p.first, p.second) for p in pairs if p.significant] == [("p0", "p2")]
    assert len(set(pairs[0].best)) == 2


def test_stability_names_what_differs_between_programs() -> None:
    def other(setting: Setting, place: CellFacts) -> float:
        best = 0 if place.app == "a" else 1
        return -0.2 if setting.get("p1") == best else 0.0

    found = table(other, count=300)
    parts = stability(found, "app", "gain", FactorOptions())
    assert [part.value("p1") for part in parts] == ["0", "1", "1"]
    assert unstable(parts, found.names) == ["p1"]
    with refused(UsageError, "dataset.one_part"):
        stability(found, "ranks", "gain", FactorOptions())


def test_the_joint_model_gives_effects_of_the_right_size() -> None:
    found = fit(respond(table(), "log"), ["p1", "p3"])
    assert found.effects["p3=2"] == pytest.approx(0.08, abs=0.02)
    assert found.effects["p1=0"] == pytest.approx(0.15, abs=0.03)


def test_corrections_only_raise_and_skip_what_was_not_tested() -> None:
    ps = [0.001, float("nan"), 0.02, 0.5]
    assert corrected_ps(ps, "none") == [0.001, 1.0, 0.02, 0.5]
    assert corrected_ps(ps, "holm") == pytest.approx([0.003, 1.0, 0.04, 0.5])
    assert corrected_ps([], "holm") == []


@pytest.mark.parametrize("method", ["holm", "fdr_bh", "bonferroni"])
def test_corrections_are_those_of_statsmodels(method: Correction) -> None:
    from statsmodels.stats.multitest import multipletests

    rng = np.random.default_rng(5)
    ps = [*rng.uniform(0, 1, 7), *rng.uniform(0, 0.02, 7), 0.01, 0.01, 0.0, 1.0]
    assert corrected_ps(ps, method) == pytest.approx(multipletests(ps, method=method)[1], abs=1e-15)


def test_failed_settings_count_as_the_slowest() -> None:
    logs = winsorise(np.array([-np.inf, 0.0, 1.0, -2.0]), 0.0)
    assert logs.tolist() == [-2.0, 0.0, 1.0, -2.0]
    assert winsorise(np.array([-np.inf]), 0.0).tolist() == [0.0]


@case_table("options", [THESIS, FactorOptions(), FactorOptions(model="rank")])
def test_with_too_few_settings_nothing_is_judged(options: FactorOptions) -> None:
    values = respond(table(count=8).where(lambda place: place.key == "a.S.4"), "log")
    factors = judge_factors(values, options)
    assert not any(f.significant for f in factors)
    (why,) = {f.why for f in factors}
    assert "20" in why
    assert any(note.code == "anova.few_levels" for note in diagnose(values, options.model))
