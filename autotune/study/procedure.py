"""The procedure of a study on any evaluator: search, select, prove in rounds, prune, choose.

Nothing is launched here: the evaluator does it (:mod:`autotune.study.evaluator`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from autotune.space import Setting, Space
from autotune.stats import NoBlocks
from autotune.strategies import Strategy
from autotune.study.budget import BudgetSpent, SearchPlan
from autotune.study.confirmation import Blocks, Confirmation, confirm_blocks
from autotune.study.evaluator import Evaluator
from autotune.study.events import Watcher, silent
from autotune.study.loop import SearchLoop
from autotune.study.recommendation import REFUTED, Recommendation, Recommender, order_winners
from autotune.study.rounds import Round, Rounds
from autotune.study.screening import Screening
from autotune.study.selection import Selection
from autotune.study.trial_store import TrialStore


class FinishedElsewhere(Exception):
    """The search phase is over, and another worker makes the proofs."""


def run_procedure(
    evaluator: Evaluator,
    trial_store: TrialStore,
    strategy: Strategy,
    space: Space,
    plan: SearchPlan,
    seed: int,
    watch: Watcher = silent,
    may_finish: Callable[[], bool] = lambda: True,
    screening: Screening | None = None,
    warm: bool = False,
) -> StudyOutcome:
    """Run a study to its end, or continue it from its run history and trials.

    If other workers take part in the study, ``may_finish`` says whether this one makes the proofs.
    With ``screening``, cheap runs keep settings that show no gain from full runs. ``warm``: this
    process has warmed up already.

    ``seed``: of the orders of the blocks (:func:`~autotune.study.confirmation.order_seed`).

    Raises WorkError if the default does not run, MachineBusy if the guard rejects all runs,
    FinishedElsewhere if another worker makes the proofs.
    """
    search = SearchLoop(evaluator, trial_store, strategy, space, plan, watch, screening, warm)
    search.run()
    if not may_finish():
        raise FinishedElsewhere
    search.wait_for_others()
    return _Proofs(search, seed).carry_out()


class _Proofs:
    """The rounds of one study.

    Stored rounds are completed; a new round is made if there is something new to prove.
    """

    def __init__(self, search: SearchLoop, seed: int) -> None:
        self.search = search
        self.plan = search.plan
        self.seed = seed
        self.rounds = Rounds(search.trial_store, search.space, search.plan.alpha)
        self.recommender = Recommender(search, search.trial_store, seed)

    def carry_out(self) -> StudyOutcome:
        answer = StudyOutcome(self.search)
        for made in self.rounds.all():
            self._prove(made, answer)
        while (new := self._next(answer)) is not None:
            self._prove(new, answer)
        self._recommend(answer)
        return answer

    def _prove(self, made: Round, answer: StudyOutcome) -> None:
        evaluator = self.search.evaluator
        try:
            if not evaluator.history.blocks(made.phase):
                self.search.defaults.start()
            blocks = Blocks(evaluator, made.phase, made.settings, self.seed, made.limit_s)
            proof = confirm_blocks(blocks, made.plan, self.search.budget, self.search.watch)
        except (BudgetSpent, NoBlocks):
            answer.budget_ended = True
            return
        answer.proofs.append((made, proof))

    def _next(self, answer: StudyOutcome) -> Round | None:
        """The next round, stored; None if there is nothing to prove or the budget is spent."""
        if answer.budget_ended:
            return None
        try:
            return self._new(answer)
        except BudgetSpent:
            answer.budget_ended = True
            return None

    def _new(self, answer: StudyOutcome) -> Round | None:
        trials = len(self.search.trial_store.trials)
        if answer.proofs:
            last, proof = answer.proofs[-1]
            if proof.cut_short:
                return None  # A larger budget continues this round.
            if trials <= last.trials:
                return self._again(last, proof)
        standing = self._standing(answer)
        phase = f"prune:{self.rounds.next_name}:{trials}"
        ablated = {
            made.whole: made.settings[0]
            for made, proof in answer.proofs
            if made.whole is not None and made.settings[0] in proof.winners
        }
        chosen = Selection(
            self.search, self.seed, phase, _refuted(answer), standing, ablated
        ).choose()
        if not chosen.settings:
            return None
        return self._freeze(chosen.settings, chosen.slim, chosen.whole)

    def _again(self, last: Round, proof: Confirmation) -> Round | None:
        """A new proof of what was left undecided, if the budget is larger than before."""
        undecided = [s for s in proof.settings if proof.decisions[s].outcome == "undecided"]
        if proof.winners or not undecided or not self._grown(last):
            return None
        first = undecided[0] == last.settings[0]
        slim = [s for s in undecided if s in last.slim]
        return self._freeze(undecided, slim, last.whole if first else None)

    def _grown(self, last: Round) -> bool:
        """Whether the study may, and can, do more than when its last round was stored."""
        plan = self.plan
        more_s = last.budget_s is not None and (
            plan.budget_s is None or plan.budget_s > last.budget_s
        )
        more_runs = last.max_runs is not None and (
            plan.max_runs is None or plan.max_runs > last.max_runs
        )
        return (more_s or more_runs) and self.search.budget.affords(plan.proof_runs(1))

    def _freeze(self, settings: list[Setting], slim: list[Setting], whole: Setting | None) -> Round:
        return self.rounds.preregister(
            settings,
            min_gain=self.plan.min_gain,
            limit_s=self.search.proof_limit_s,
            slim=slim,
            whole=whole,
            trials=len(self.search.trial_store.trials),
            budget_s=self.plan.budget_s,
            max_runs=self.plan.max_runs,
        )

    def _standing(self, answer: StudyOutcome) -> Setting | None:
        """The setting that the rounds so far recommend."""
        found = ranked_winners(answer, self.plan.min_gain)
        return found[0][0] if found else None

    def _recommend(self, answer: StudyOutcome) -> None:
        for winner, made, proof in ranked_winners(answer, self.plan.min_gain):
            made_of = self.recommender.recommend(winner, made, proof)
            if not made_of.objections:
                answer.recommendation = made_of
                return
            answer.vetoed.append(made_of)


def _refuted(answer: StudyOutcome) -> set[Setting]:
    """Settings whose proof failed for another reason than a faster finalist."""
    return {
        setting
        for _, proof in answer.proofs
        if not proof.winners
        for setting, decision in proof.decisions.items()
        if decision.outcome in REFUTED
    } | {
        setting
        for _, proof in answer.proofs
        for setting, decision in proof.decisions.items()
        if decision.outcome in ("worse", "equivalent")
    }


@dataclass
class StudyOutcome:
    """The outcome of a study.

    ``proofs`` are its rounds with their confirmations. ``recommendation`` is None if the default
    stands. ``vetoed`` are proven settings that are not recommended because of an objection.
    """

    search: SearchLoop
    proofs: list[tuple[Round, Confirmation]] = field(default_factory=list)
    recommendation: Recommendation | None = None
    vetoed: list[Recommendation] = field(default_factory=list)
    budget_ended: bool = False
    """Whether the budget ended the study before what was found could be proven."""

    @property
    def chosen(self) -> Setting | None:
        """The recommended setting; None if the default stands."""
        return None if self.recommendation is None else self.recommendation.setting

    @property
    def proof(self) -> Confirmation | None:
        """The round that proved the recommended setting, else the last one."""
        if self.recommendation is not None:
            named = self.recommendation.round.number
            return next(proof for made, proof in self.proofs if made.number == named)
        return self.proofs[-1][1] if self.proofs else None


def ranked_winners(
    answer: StudyOutcome, min_gain: float
) -> list[tuple[Setting, Round, Confirmation]]:
    """Proven settings in the order of preference, those of the last round first.

    A proof of an earlier round stands unless a later round refuted it: the error budget covers all
    rounds together.
    """
    found: list[tuple[Setting, Round, Confirmation]] = []
    gone: set[Setting] = set()
    for made, proof in reversed(answer.proofs):
        found += [
            (s, made, proof)
            for s in order_winners(proof, min_gain)
            if s not in gone and all(s != known for known, _, _ in found)
        ]
        gone |= {s for s, d in proof.decisions.items() if d.outcome in REFUTED}
    return found
