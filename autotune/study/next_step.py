"""Next step: what would decide an open question, as a number of runs, a chance and options."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from autotune.stats import (
    ErrorBudget,
    LookPlan,
    PowerEstimate,
    decision_power,
    required_pairs,
    scatter,
)
from autotune.study.budget import Budget, SearchPlan
from autotune.study.confirmation import Confirmation
from autotune.study.pairs import Pairs
from autotune.study.parts import DecidingStep
from autotune.study.recommendation import StudyOutcome
from autotune.study.result import BUDGET_SPENT, MORE_TRIALS
from autotune.study.rounds import look_plan
from autotune.wording import seconds, share

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
    made, proof = answer.proofs[-1]
    going_on = proof.cut_short
    own, why = made.plan, ""
    if not going_on:
        alpha = ErrorBudget(plan.alpha).proof(made.number + 1)
        why = f"; a further round may spend {100 * alpha:.2g} % of the error probability"
        own = look_plan(len(proof.open), alpha, plan.min_gain)
    logs = logs_of(proof.blocks.pairs(proof.open[0]))
    if not logs:
        return None
    seen = decision_power(own, logs, keep_blocks=going_on)
    blocks = max(seen.blocks - (len(logs) if going_on else 0), 1)
    runs = blocks * (len(proof.open) + 1)
    budget = answer.search.budget
    return NextStep(
        _words(seen, runs, budget.cost_s(runs), logs) + why,
        _options(plan, budget, runs, len(answer.search.trial_store.trials), ended_by),
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
        needed = required_pairs(logs, plan.min_gain)
        if needed is None:
            return NextStep(f"more pairs are unlikely to decide it: {_scatter(logs)}")
        runs = 2 * needed
        words = (
            f"a new comparison with {needed} pairs ({_cost(runs, bounds)}) would likely decide it"
        )
        options = {"--pairs": f"{needed}"}
    else:
        seen = decision_power(plan, logs, keep_blocks=True)
        runs = 2 * max(seen.blocks - len(logs), 1)
        words, options = _words(seen, runs, bounds.cost_s(runs), logs), {}
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


def _words(seen: PowerEstimate, runs: int, cost_s: float, logs: Sequence[float]) -> str:
    cost = f"about {runs} more runs ({seconds(cost_s)})"
    if seen.chance >= LIKELY:
        return f"{cost} would likely decide it (chance {100 * seen.chance:.0f} %)"
    return (
        f"{cost} would decide it with a chance of {100 * seen.chance:.0f} % only: {_scatter(logs)}"
    )


def _scatter(logs: Sequence[float]) -> str:
    return f"the pairs scatter by {share(scatter(logs))}; a longer input or a quieter machine helps"


def _cost(runs: int, budget: Budget) -> str:
    return f"about {runs} runs, {seconds(budget.cost_s(runs))}"


def _options(
    plan: SearchPlan, budget: Budget, runs: int, trials: int, ended_by: str
) -> dict[str, str]:
    """The bounds that hold so many more runs of the proof.

    A search that its budget ended first takes its share of a larger budget.
    """
    if plan.max_runs is None and plan.budget_s is None:
        return {"--trials": f"{trials + MORE_TRIALS}"}
    spent = math.ceil(budget.spent_runs)
    whole = spent + runs
    if ended_by == BUDGET_SPENT:
        beyond = math.inf if plan.kept_runs(math.inf) < runs else whole
        while beyond < math.inf and plan.kept_runs(beyond) < runs:
            beyond += max(runs // 10, 1)
        whole = int(beyond) if beyond < math.inf else 3 * whole
    options = {}
    if plan.max_runs is not None:
        options["--runs"] = f"{max(whole, plan.max_runs + runs)}"
    if plan.budget_s is not None:
        more_s = SPARE * budget.cost_s(whole - spent)
        options["--budget"] = _time(max(budget.spent_s, plan.budget_s) + more_s)
    return options


def _time(value_s: float) -> str:
    """A time in the form of --budget, rounded up."""
    return f"{math.ceil(value_s)}s" if value_s < 600 else f"{math.ceil(value_s / 60)}m"
