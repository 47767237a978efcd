"""Conclusion of a study: its result from the runs and the proof, and the step that would decide
what is still open."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from autotune.config.app import App
from autotune.measurement.budget import Budget, SearchPlan
from autotune.measurement.output_check import result_checks
from autotune.measurement.run_history import RunHistory
from autotune.notes import Note
from autotune.space import DEFAULT, Setting
from autotune.stats import (
    ErrorBudget,
    LookPlan,
    PowerEstimate,
    decision_power,
    estimate,
    known_gain,
    required_pairs,
    scatter,
)
from autotune.study.fresh_pairs import slow_row
from autotune.study.procedure import StudyOutcome
from autotune.study.proof import Confirmation, Pairs
from autotune.study.proof_rounds import look_plan
from autotune.study.recommendation import Recommendation
from autotune.study.search_result import (
    BUDGET_SPENT,
    MORE_TRIALS,
    BestSeen,
    DecidingStep,
    Finalist,
    Result,
    RoundOutcome,
)
from autotune.study.study_status import Status
from autotune.study.study_warnings import rejection_rows, study_warnings
from autotune.study.trial_store import Trial
from autotune.wording import LOOKS_BETTER, seconds, share


def conclude(
    result: Result,
    answer: StudyOutcome,
    history: RunHistory,
    trials: list[Trial],
    app: App,
    plan: SearchPlan,
) -> None:
    """Fill in what follows from the runs and from the proof."""
    best = answer.best
    result.best = best_seen(history, best.effective if best else None)
    result.status = judge_status(answer, history, result.guard)
    result.finalists = finalist_rows(answer)
    result.rounds = round_rows(answer, result.guard)
    result.drift_repeats = sum(proof.repeats for _, proof in answer.proofs)
    result.contradictions = contradictions(answer)
    contradiction = answer.with_objections[0].setting if answer.with_objections else DEFAULT
    result.checks = result_checks(app, history, answer.setting or contradiction)
    result.warnings = study_warnings(history, trials, answer)
    if answer.recommendation is None:
        step = search_step(answer, plan, result.ended_by)
        if step is not None and result.status in ("inconclusive", "too_noisy"):
            result.next_step = step.row
        return
    result.best = best_seen(history, answer.recommendation.setting)
    if result.guard:
        name_recommendation(result, answer.recommendation)


def count_runs(result: Result, history: RunHistory) -> None:
    """Fill in what is counted from the runs of the whole study, including earlier sessions."""
    values = history.default_values()
    result.search_runs = history.search_runs
    result.confirmation_runs = history.confirmation_runs
    result.runs_rejected = history.rejected
    result.rejections = rejection_rows(history)
    result.default = {
        "median_s": statistics.median(values) if values else None,
        "n": len(values),
    }


def best_seen(history: RunHistory, setting: Setting | None) -> BestSeen | None:
    """The best setting with the median of all its valid runs, significant or not."""
    if setting is None or setting == DEFAULT:
        return None
    entries = [e for e in history.entries if e.key == setting.key and e.has_time]
    values = [e.record.value_s for e in entries if e.record.valid]
    if not values:
        return None
    return {
        "setting": setting.to_json(),
        "median_s": statistics.median(values),
        "n": len(values),
    }


NOISY_SPREAD = 0.25
"""Relative spread of the default from which noise is given as the reason of an open question."""


def judge_status(answer: StudyOutcome, history: RunHistory, has_guard: bool = True) -> Status:
    """The status that the confirmation gives; without finalists nothing is faster than the default.

    Without the guard it proves nothing: other work may have slowed either side.
    """
    if not has_guard:
        return "unguarded"
    proof = answer.proof
    if answer.setting is not None:
        return "recommended"
    if answer.with_objections:
        return "contradicted"
    if proof is None and answer.budget_ended:
        return "inconclusive"
    if proof is None or not (proof.open or proof.winners):
        return "keep_default"
    spread = estimate(history.default_values()).spread
    return "too_noisy" if spread is not None and spread > NOISY_SPREAD else "inconclusive"


def finalist_rows(answer: StudyOutcome) -> list[Finalist]:
    """The finalists ordered by gain, with open ends as None."""
    if answer.proof is None:
        return []
    decisions = dict(answer.proof.decisions)
    if answer.recommendation is not None:
        decisions.setdefault(answer.recommendation.setting, answer.recommendation.decision)
    rows = []
    for setting, decision in decisions.items():
        comparison = decision.comparison
        ends = (known_gain(comparison.lo), known_gain(comparison.hi))
        rows.append(
            Finalist(
                setting,
                decision.outcome,
                known_gain(comparison.gain),
                ends if comparison.interval else (None, None),
                None if comparison.interval else ends,
                comparison.n,
                decision.why,
            )
        )
    return sorted(rows, key=lambda row: -(row.gain if row.gain is not None else -1))


def name_recommendation(result: Result, recommendation: Recommendation) -> None:
    """Fill in what is known of the recommended setting."""
    proof, fresh = recommendation.decision.comparison, recommendation.fresh
    gains = proof if fresh is None else fresh
    result.recommended = recommendation.setting
    result.gain = known_gain(gains.gain)
    result.gain_ci = (known_gain(gains.lo), known_gain(gains.hi)) if gains.interval else None
    result.gain_pairs = 0 if fresh is None else fresh.n
    result.gain_proof = {
        "gain": known_gain(proof.gain),
        "ci95": (known_gain(proof.lo), known_gain(proof.hi)),
        "pairs": proof.n,
    }
    result.significant = proof.significant
    result.round = recommendation.round.number
    result.pruning = recommendation.pruning.row
    result.slow_launches = slow_row(recommendation.slow)


def contradictions(answer: StudyOutcome) -> list[Note]:
    """The objections to proven settings; the data of each has its setting."""
    return [
        Note(
            note.code,
            f"{recommendation.setting.key} is faster, but not recommended: {note.words}",
            {**note.data, "setting": recommendation.setting.to_json()},
        )
        for recommendation in answer.with_objections
        for note in recommendation.objections
    ]


def round_rows(answer: StudyOutcome, has_guard: bool = True) -> list[RoundOutcome]:
    """Every round of the study: its share of alpha and its outcome."""
    win_word = "proven" if has_guard else LOOKS_BETTER
    return [
        RoundOutcome(
            round=proof_round.number,
            alpha=proof_round.plan.alpha,
            trials=proof_round.trials,
            finalists=len(proof_round.settings),
            outcome=win_word if proof.winners else "open" if proof.open else "nothing better",
        )
        for proof_round, proof in answer.proofs
    ]


LIKELY = 0.5
SPARE = 1.1
"""Factor on the machine time that the runs so far suggest, for a proposal."""


@dataclass(frozen=True)
class NextStep:
    """``words`` is a sentence; ``options`` are the same command's options with their new values."""

    words: str
    options: dict[str, str] = field(default_factory=dict)

    @property
    def row(self) -> DecidingStep:
        """The part of a document."""
        return DecidingStep(words=self.words, options=dict(self.options))


def search_step(answer: StudyOutcome, plan: SearchPlan, ended_by: str) -> NextStep | None:
    """The next step of a search whose last proof is open; None if nothing of it is open."""
    if not answer.proofs or not answer.proofs[-1][1].open:
        return None
    last_round, proof = answer.proofs[-1]
    going_on = proof.cut_short
    own, why = last_round.plan, ""
    if not going_on:
        alpha = ErrorBudget(plan.alpha).proof(last_round.number + 1)
        why = f"; a further round may spend {100 * alpha:.2g} % of the error probability"
        own = look_plan(len(proof.open), alpha, plan.min_gain)
    logs = logs_of(proof.blocks.pairs(proof.open[0]))
    if not logs:
        return None
    power = decision_power(own, logs, keep_blocks=going_on)
    blocks = max(power.blocks - (len(logs) if going_on else 0), 1)
    runs = blocks * (len(proof.open) + 1)
    budget = answer.budget
    return NextStep(
        _words(power, runs, budget.cost_s(runs), logs) + why,
        _options(plan, budget, runs, len(answer.trials), ended_by),
    )


def compare_step(
    proof: Confirmation, plan: LookPlan, pairs: Pairs, bounds: Budget, warm_ups: int = 1
) -> NextStep | None:
    """The next step of an open comparison; ``bounds`` are those of the command.

    ``warm_ups``: launches of every command that are in no pair.
    """
    if not proof.open:
        return None
    logs = logs_of(pairs)
    if not logs:
        return None
    if not proof.cut_short:
        pair_count = required_pairs(logs, plan.min_gain)
        if pair_count is None:
            return NextStep(f"more pairs are unlikely to decide it: {_scatter(logs)}")
        runs = 2 * pair_count
        words = (
            f"a new comparison with {pair_count} pairs ({_cost(runs, bounds)}) would likely "
            "decide it"
        )
        options = {"--pairs": f"{pair_count}"}
    else:
        power = decision_power(plan, logs, keep_blocks=True)
        runs = 2 * max(power.blocks - len(logs), 1)
        words, options = _words(power, runs, bounds.cost_s(runs), logs), {}
    launches = runs + warm_ups
    if bounds.runs is not None:
        options["--runs"] = f"{launches}"
    if bounds.seconds is not None:
        options["--budget"] = _time(SPARE * bounds.cost_s(launches))
    return NextStep(words, options)


def logs_of(pairs: Pairs) -> list[float]:
    """The value log(T_reference / T) of each block whose candidate ran to its end."""
    rows = zip(pairs.reference, pairs.candidate, pairs.censored, strict=True)
    return [math.log(a / b) for a, b, cut in rows if not cut]


def _words(power: PowerEstimate, runs: int, cost_s: float, logs: Sequence[float]) -> str:
    cost = f"about {runs} more runs ({seconds(cost_s)})"
    if power.chance >= LIKELY:
        return f"{cost} would likely decide it (chance {100 * power.chance:.0f} %)"
    return (
        f"{cost} would decide it with a chance of {100 * power.chance:.0f} % only: {_scatter(logs)}"
    )


def _scatter(logs: Sequence[float]) -> str:
    return f"the pairs scatter by {share(scatter(logs))}; a longer input or a quieter machine helps"


def _cost(runs: int, budget: Budget) -> str:
    return f"about {runs} runs, {seconds(budget.cost_s(runs))}"


def _options(
    plan: SearchPlan, budget: Budget, runs: int, trials: int, ended_by: str
) -> dict[str, str]:
    """The bounds that hold ``runs`` more runs of the proof.

    A search that its budget ended first takes its share of a larger budget.
    """
    if plan.max_runs is None and plan.budget_s is None:
        return {"--trials": f"{trials + MORE_TRIALS}"}
    past_runs = math.ceil(budget.spent_runs)
    whole = past_runs + runs
    if ended_by == BUDGET_SPENT:
        beyond = math.inf if plan.kept_runs(math.inf) < runs else whole
        while beyond < math.inf and plan.kept_runs(beyond) < runs:
            beyond += max(runs // 10, 1)
        whole = int(beyond) if beyond < math.inf else 3 * whole
    options = {}
    if plan.max_runs is not None:
        options["--runs"] = f"{max(whole, plan.max_runs + runs)}"
    if plan.budget_s is not None:
        more_s = SPARE * budget.cost_s(whole - past_runs)
        options["--budget"] = _time(max(budget.spent_s, plan.budget_s) + more_s)
    return options


def _time(value_s: float) -> str:
    """A time in the form of --budget, rounded up."""
    return f"{math.ceil(value_s)}s" if value_s < 600 else f"{math.ceil(value_s / 60)}m"
