"""Pruning and proof of a class-wide setting on simulated programs whose truth is known."""

from __future__ import annotations

import dataclasses
import re
import statistics
from pathlib import Path

import numpy as np
import pytest

from autotune.anova.class_proof import ClasswideProof, _more, prove_class
from autotune.anova.class_pruning import ALPHA, PURPOSE, prune, prune_plan
from autotune.anova.classwide import mean_gain
from autotune.anova.classwide_result import ProgramEvidence
from autotune.anova.paired_runs import (
    LOOKS,
    MARGIN,
    PRUNE_LOOKS,
    ClassProgram,
    PairTerms,
    measure_pairs,
)
from autotune.comparison.comparison_outcome import ComparisonOutcome
from autotune.comparison.paired_comparison import ComparisonRequest, compare_on
from autotune.measurement.budget import BudgetTooSmall
from autotune.space import DEFAULT, Parameter, Setting, Space, parse_expression
from autotune.space.space import Constraint
from autotune.study.simulation import Model, SimulatedEvaluator
from autotune.terminal.classwide import print_proof
from autotune.wording import percent
from benchmarks.classwide_simulation import (
    ACTING,
    FALSE,
    IDLE,
    POWER,
    PROPOSED,
    allowed,
    bound,
    program,
    study,
)
from runner.types import PrintedLines, RunRecord
from tests.case_table import case_table

DOCUMENT = Path(__file__).parents[2] / "docs" / "explanation" / "anova.md"
SLIM = PROPOSED.without(IDLE)


class Machine:
    """Programs by name, each with a model; remembers what was compared and on which evaluator."""

    def __init__(self, models: dict[str, Model], seed: int = 7) -> None:
        self.models = models
        self.seed = seed
        self.evaluators: dict[str, SimulatedEvaluator] = {}
        self.requests: list[ComparisonRequest] = []

    def __call__(self, request: ComparisonRequest) -> ComparisonOutcome:
        self.requests.append(request)
        name = request.target.app.name
        key = f"{name} {request.options}"
        if key not in self.evaluators:
            rng = np.random.default_rng([self.seed, len(self.evaluators)])
            self.evaluators[key] = SimulatedEvaluator(self.models[name], rng)
        return compare_on(self.evaluators[key], request, key)


def model(gain: float, noise: float = 0.02) -> Model:
    def seconds(setting: Setting, rng: np.random.Generator) -> float | str:
        better = gain if setting.get(ACTING) == 2 else 0.0
        return float(rng.lognormal(0, noise)) / (1 + better)

    return seconds


def proof(
    models: dict[str, Model], held_out: tuple[str, ...] = (), **terms: object
) -> tuple[ClasswideProof, Machine]:
    machine = Machine(models)
    programs = [program(name, held_out=name in held_out) for name in models]
    given = {"prune": False, **terms}
    return prove_class(SLIM, programs, PairTerms(machine, **given)), machine  # type: ignore[arg-type]


def verdicts(found: ClasswideProof) -> dict[str, str]:
    return {row.app: row.verdict for row in found.evidence}


def test_all_passed_and_a_mean_gain_is_proven() -> None:
    found, _ = proof({"a": model(0.1), "b": model(0.0), "c": model(0.05)}, ("c",))
    assert found.proven
    assert verdicts(found) == {"a": "passed", "b": "passed", "c": "passed"}
    assert all(row.lo is not None and row.lo > -found.margin for row in found.evidence)
    assert found.held_out_shows == "gain"
    assert "2 %" in found.why


def test_a_program_with_a_wide_interval_is_open_and_stops_the_proof() -> None:
    found, _ = proof({"a": model(0.2), "wide": model(0.2, 1.0)}, looks=(12,))
    assert not found.proven
    assert verdicts(found) == {"a": "passed", "wide": "open"}
    assert "wide" in found.why
    assert re.match("wide: [^0-9]*[0-9]+", found.next_step), "how many pairs"


@case_table(
    ("lo", "budget_helps"),
    [(-0.021, True), (-0.048, False)],
)
def test_a_budget_is_advised_only_where_the_planned_pairs_would_decide(
    lo: float, budget_helps: bool
) -> None:
    row = ProgramEvidence("a", None, 2, "c", False, -0.003, lo, 0.016, 40, "open", "", "")
    assert ("--budget" in _more(row, PairTerms(Machine({})))) is budget_helps


def test_the_looks_go_on_until_a_program_is_decided() -> None:
    found, _ = proof({"a": model(0.1), "noisy": model(0.03, 0.05)})
    pairs = {row.app: row.pairs for row in found.evidence}
    assert pairs["a"] < pairs["noisy"]
    assert verdicts(found)["noisy"] == "passed"


def test_a_slower_program_stops_it_and_is_named() -> None:
    found, _ = proof({"a": model(0.3), "b": model(-0.06)})
    assert verdicts(found) == {"a": "passed", "b": "slower"}
    assert not found.proven
    assert "b (slower)" in found.why


@case_table(
    ("gain", "shows", "proven"),
    [(0.1, "gain", True), (0.0, "no loss", True), (-0.08, "loss", False)],
)
def test_held_out_programs_have_an_interval(gain: float, shows: str, proven: bool) -> None:
    found, _ = proof({"a": model(0.1), "x": model(gain), "y": model(gain)}, ("x", "y"))
    assert found.held_out is not None
    assert found.held_out.lo < found.held_out.gain < found.held_out.hi
    assert (found.held_out_shows, found.proven) == (shows, proven)


def test_held_out_programs_that_scatter_are_open() -> None:
    found, _ = proof({"a": model(0.1), "x": model(0.0, 0.5)}, ("x",), looks=(12,))
    assert (found.held_out_shows, found.proven) == ("open", False)


def test_programs_go_on_while_their_mean_is_open() -> None:
    # Each passes a margin of 10 % long before its gain can be told from nothing.
    found, machine = proof({"a": model(0.04, 0.05), "b": model(0.04, 0.05)}, margin=0.1)
    further = [r.plan.decide_at for r in machine.requests if r.plan.decide_at is not None]
    assert further
    assert found.proven
    assert max(row.pairs for row in found.evidence) == max(further)


def test_what_cannot_be_a_gain_any_more_ends_it() -> None:
    found, _ = proof({"a": model(0.0, 0.01), "b": model(0.0, 0.01)})
    assert verdicts(found) == {"a": "passed", "b": "passed"}
    assert found.gain is not None
    assert found.gain.hi < PairTerms(Machine({})).min_gain
    assert percent(found.gain.hi) in found.why
    assert found.next_step == "", "it is ruled out"
    assert all(row.pairs < 90 for row in found.evidence)


def test_the_mean_is_that_of_the_rows() -> None:
    found, _ = proof({"a": model(0.1), "b": model(0.02), "c": model(0.05)}, ("c",))
    rows = [row for row in found.evidence if not row.held_out]
    assert found.gain is not None
    assert found.gain.gain == pytest.approx(statistics.fmean(row.gain or 0 for row in rows))
    arms = [(row.gain or 0) - (row.lo or 0) for row in rows]
    assert found.gain.lo == pytest.approx(found.gain.gain - np.hypot(*arms) / 2)


def test_one_program_has_its_own_interval() -> None:
    found, _ = proof({"a": model(0.1)})
    (row,) = found.evidence
    assert found.gain is not None
    assert (found.gain.lo, found.gain.hi) == pytest.approx((row.lo, row.hi))


def test_a_program_that_fails_now_and_then_is_no_pass(capsys: pytest.CaptureFixture[str]) -> None:
    def brittle(setting: Setting, rng: np.random.Generator) -> float | str:
        if setting != DEFAULT and rng.random() < 0.2:
            return "failed"
        return 1.0 if setting == DEFAULT else 0.8

    found, _ = proof({"a": model(0.1), "brittle": brittle})
    assert verdicts(found)["brittle"] == "failed"
    assert "brittle" in found.why
    assert "(failed)" in found.why
    assert not found.proven
    print_proof(found, has_guard=True)
    said = " ".join(capsys.readouterr().out.split())
    (row,) = [row for row in found.evidence if row.app == "brittle"]
    assert f" brittle: {row.words}" in said
    assert f" show {row.study})" in said, "why, and where its runs are"
    assert "- .. -" not in said


def test_the_proof_shares_no_run_with_the_pruning() -> None:
    machine = Machine({"a": model(0.1)})
    assert prove_class(PROPOSED, [program("a", held_out=False)], PairTerms(machine)).proven
    before, after = (
        {str(r.options) for r in machine.requests if r.purpose == f"classwide {purpose}"}
        for purpose in ("pruning", "proof")
    )
    assert before
    assert len(after) == 1
    assert not before & after
    # Nor with a comparison by hand that was looked at before.
    by_hand = dataclasses.replace(machine.requests[-1], purpose="")
    assert str(by_hand.options) not in after


def test_a_parameter_that_does_nothing_is_taken_out_and_the_one_that_acts_stays() -> None:
    machine = Machine({"a": model(0.1), "b": model(0.05)})
    programs = [program(name, held_out=False) for name in machine.models]
    found = prune(PROPOSED, programs, PairTerms(machine))
    assert found.setting == SLIM
    assert found.without == (IDLE,)
    assert found.unproven == ()


def test_a_parameter_stays_that_acts_on_all_programs_a_little() -> None:
    # On none of the eight alone is it shown; together it is.
    machine = Machine({str(n): model(0.03, 0.03) for n in range(8)})
    programs = [program(name, held_out=False) for name in machine.models]
    terms = PairTerms(machine, prune_looks=(12,))
    found = prune(PROPOSED, programs, terms)
    assert ACTING in found.setting
    plan = prune_plan(terms, 8)
    smaller = PROPOSED.without(ACTING)
    rows = [measure_pairs(PROPOSED, smaller, p, plan, terms, None, PURPOSE).row for p in programs]
    assert not any(row.hi is not None and row.hi < 0 for row in rows)


def test_a_parameter_that_looks_needed_earns_more_looks() -> None:
    machine = Machine({"a": model(0.08, 0.06)}, seed=2)
    found = prune(PROPOSED, [program("a", held_out=False)], PairTerms(machine))
    looks = [r.plan.decide_at for r in machine.requests if ACTING not in r.second]
    assert len(looks) > 1
    assert ACTING in found.setting


def test_what_is_neither_shown_to_act_nor_to_be_idle_is_taken_out_and_named() -> None:
    machine = Machine({"a": model(0.0, 0.3)})
    found = prune(PROPOSED, [program("a", held_out=False)], PairTerms(machine, prune_looks=(12,)))
    assert found.unclear == found.without
    assert len(found.setting) == 1


def test_a_smaller_setting_that_breaks_a_rule_is_not_launched() -> None:
    machine = Machine({"a": model(0.0)})
    one = program("a", held_out=False)
    rule = Constraint(parse_expression("acting == idle"), "both or none")
    levels = tuple(dataclasses.replace(p, default=1) for p in one.space)
    space = dataclasses.replace(one.space, parameters=levels, constraints=(rule,))
    ruled = dataclasses.replace(one, space=space)
    found = prune(PROPOSED, [ruled], PairTerms(machine))
    assert found.setting == PROPOSED
    assert set(found.unproven) == set(PROPOSED)
    assert not machine.requests


WIDE = tuple(f"p{number}" for number in range(10))


def wide(gains: dict[str, float]) -> tuple[Setting, Machine, list[ClassProgram]]:
    """Two programs with ten parameters, of which some act."""

    def seconds(setting: Setting, rng: np.random.Generator) -> float | str:
        gain = sum(value for name, value in gains.items() if setting.get(name) == 2)
        return float(rng.lognormal(0, 0.01)) / (1 + gain)

    space = Space("wide", tuple(Parameter(name, (1, 2), "mca") for name in WIDE))
    programs = [dataclasses.replace(program(n, held_out=False), space=space) for n in ("a", "b")]
    return Setting(dict.fromkeys(WIDE, 2)), Machine({"a": seconds, "b": seconds}), programs


@pytest.mark.parametrize("acting", WIDE)
def test_many_parameters_are_halved(acting: str) -> None:
    proposed, machine, programs = wide({acting: 0.2})
    found = prune(proposed, programs, PairTerms(machine))
    assert tuple(found.setting) == (acting,)
    assert set(found.without) == set(WIDE) - {acting}
    assert found.unproven == ()
    comparisons = {request.second for request in machine.requests}
    assert len(comparisons) < len(WIDE) - 1


def test_parameters_that_seem_to_do_least_go_first() -> None:
    proposed, machine, programs = wide({"p0": 0.2})
    found = prune(proposed, programs, PairTerms(machine, prune_order=(*WIDE[1:], WIDE[0])))
    assert tuple(found.setting) == ("p0",)
    assert len({request.second for request in machine.requests}) == 3


@pytest.mark.parametrize("acting", [("p0", "p1"), ("p0", "p9"), ("p1", "p4", "p7", "p8")])
def test_all_that_act_stay(acting: tuple[str, ...]) -> None:
    proposed, machine, programs = wide(dict.fromkeys(acting, 0.1))
    found = prune(proposed, programs, PairTerms(machine))
    assert tuple(found.setting) == acting
    assert found.unproven == ()


def test_halves_that_are_not_measured_stay_and_are_named() -> None:
    def broke(request: ComparisonRequest) -> ComparisonOutcome:
        raise BudgetTooSmall("nothing left", code="test.error")

    proposed, _, programs = wide({})
    found = prune(proposed, programs, PairTerms(broke))
    assert found.setting == proposed
    assert found.unproven == WIDE


def test_a_half_that_breaks_a_rule_is_divided() -> None:
    proposed, machine, programs = wide({"p9": 0.2})
    rule = Constraint(parse_expression("p0 == p9"), "both or none")
    ruled = []
    for one in programs:
        levels = tuple(dataclasses.replace(p, default=1) for p in one.space)
        space = dataclasses.replace(one.space, parameters=levels, constraints=(rule,))
        ruled.append(dataclasses.replace(one, space=space))
    found = prune(proposed, ruled, PairTerms(machine))
    assert tuple(found.setting) == ("p0", "p9")
    assert found.unproven == ("p0", "p9")
    assert set(found.without) == set(WIDE[1:-1])


def test_what_the_budget_left_unpruned_is_named() -> None:
    def broke(request: ComparisonRequest) -> ComparisonOutcome:
        raise BudgetTooSmall("nothing left", code="test.error")

    found = prove_class(PROPOSED, [program("a", held_out=False)], PairTerms(broke, budget_s=1.0))
    assert found.pruned.unproven == (ACTING, IDLE)
    assert not found.proven
    assert verdicts(found) == {"a": "open"}
    found, _ = proof({"a": model(0.1)})
    assert found.pruned.unproven == ()


def test_an_interrupted_proof_ends_as_it_would_have() -> None:
    models = {"a": model(0.04, 0.05), "b": model(0.04, 0.05)}
    machine = Machine(models)
    programs = [program(name, held_out=False) for name in models]
    terms = PairTerms(machine, prune=False, margin=0.1)
    first, again = prove_class(SLIM, programs, terms), prove_class(SLIM, programs, terms)
    assert any(r.plan.decide_at for r in machine.requests)
    assert [dataclasses.replace(row, study="") for row in first.evidence] == [
        dataclasses.replace(row, study="") for row in again.evidence
    ]


class Printing(SimulatedEvaluator):
    """Prints another result with any setting."""

    def _record(self, setting: Setting, timeout_s: float | None) -> RunRecord:
        record = super()._record(setting, timeout_s)
        record.printed = PrintedLines(("result WRONG" if setting else "result RIGHT",))
        return record


def test_a_program_with_other_results_fails_the_proof() -> None:
    models = {"a": model(0.1), "b": model(0.1)}
    machine = Machine(models)
    programs = [program(name, held_out=False) for name in models]
    terms = PairTerms(machine, prune=False)
    assert prove_class(SLIM, programs, terms).proven
    for key in [key for key in machine.evaluators if key.startswith("b ")]:
        machine.evaluators[key] = Printing(models["b"], np.random.default_rng(7))
    found = prove_class(SLIM, programs, terms)
    assert not found.proven
    assert verdicts(found) == {"a": "passed", "b": "failed"}


def test_rows_without_an_interval_have_no_mean() -> None:
    found = measure_pairs(
        DEFAULT,
        SLIM,
        program("a", held_out=False),
        PairTerms(Machine({})).plan(),
        PairTerms(Machine({})),
        0,
    )
    assert found.row.pairs == 0
    assert mean_gain([found.row]) is None
    assert mean_gain([]) is None


def test_an_open_end_stays_open_in_the_mean() -> None:
    row = ProgramEvidence("a", None, 2, "c", False, 0.1, 0.05, None, 12, "passed", "", "")
    found = mean_gain([row, dataclasses.replace(row, hi=0.2)])
    assert found is not None
    assert found.hi == float("inf")
    assert found.lo == pytest.approx(0.1 - 0.05 / 2**0.5)


SURE = (
    "nothing acts, 2 % noise",
    "one 4 % slower, others +10 %",
    "held out 4 % slower, class +10 %",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", SURE)
def test_false_answers_are_rare(name: str) -> None:
    proven = sum(study(FALSE[name], seed).answer == "proven" for seed in range(30))
    assert proven <= allowed(30)


@pytest.mark.parametrize("name", FALSE)
@pytest.mark.slow
def test_false_answers_are_rare_in_four_hundred_studies(name: str) -> None:
    done = [study(FALSE[name], seed) for seed in range(400)]
    assert sum(one.answer == "proven" for one in done) <= allowed(400)
    # The interval of the mean gain, promised at 95 %, less two Monte-Carlo standard errors.
    assert sum(one.covered for one in done) >= 400 * 0.95 - 2 * (400 * 0.95 * 0.05) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["all +5 %, 2 % noise", "all +10 %, 5 % noise"])
def test_gains_well_above_the_margin_are_proven(name: str) -> None:
    assert sum(study(POWER[name], seed).answer == "proven" for seed in range(20)) >= 18


def test_the_number_of_studies_refuses_a_rate_of_ten_percent() -> None:
    assert bound(allowed(400), 400) < 0.10 < bound(allowed(400) + 1, 400)
    assert allowed(30) == 0
    assert allowed(20) == -1


def test_the_manual_has_the_figures_of_the_code() -> None:
    text = " ".join(DOCUMENT.read_text().split())
    looks = ", ".join(str(look) for look in LOOKS[:-1])
    assert f" {looks} and {LOOKS[-1]} " in text
    assert f"-`--margin` ({100 * MARGIN:g} %)" in text
    assert re.search(f" {PRUNE_LOOKS[-1]} [a-z, ]+ {PRUNE_LOOKS[0]}[^0-9]", text)
    # It is split as the plan of the pruning splits it.
    assert f" {100 * ALPHA:g} % " in text
    assert prune_plan(PairTerms(Machine({})), 3).tail == pytest.approx(ALPHA / 2 / 4)
