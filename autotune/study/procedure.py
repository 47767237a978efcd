"""The procedure of a study on any evaluator: search, select, prove in rounds, prune, choose.

Nothing is launched here: the evaluator does it (:mod:`autotune.measurement.evaluator`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from autotune.measurement.bench import Bench
from autotune.measurement.budget import Budget, BudgetSpent, SearchPlan
from autotune.measurement.evaluator import Evaluator
from autotune.measurement.events import Watcher, silent
from autotune.measurement.rank_layouts import PlacementWatch
from autotune.space import Setting, Space
from autotune.stats import NoBlocks
from autotune.strategies import Strategy
from autotune.study.loop import SearchLoop
from autotune.study.proof import Blocks, Confirmation, confirm_blocks
from autotune.study.proof_rounds import Round, Rounds
from autotune.study.pruning import Pruner, PruningOutcome, prune_leader
from autotune.study.race import Race, with_favourite
from autotune.study.recommendation import REFUTATIONS, Recommendation, order_winners, recommend
from autotune.study.screening import Screening
from autotune.study.trial_store import Trial, TrialStore, best_ratio, best_trial


@dataclass
class StudyOutcome:
    """The outcome of a study.

    ``ended_by`` says what ended the search, whose trials these are; ``best`` is the fastest of
    them. ``proofs`` are the rounds with their confirmations. ``recommendation`` is None if the
    default stands. ``with_objections`` are proven settings that are not recommended.
    """

    ended_by: str
    best: Trial | None
    trials: list[Trial]
    budget: Budget
    proofs: list[tuple[Round, Confirmation]] = field(default_factory=list)
    recommendation: Recommendation | None = None
    with_objections: list[Recommendation] = field(default_factory=list)
    budget_ended: bool = False
    """Whether the budget ended the study before what was found could be proven."""

    @property
    def setting(self) -> Setting | None:
        """The recommended setting; None if the default stands."""
        return None if self.recommendation is None else self.recommendation.setting

    @property
    def proof(self) -> Confirmation | None:
        """The round that proved the recommended setting, else the last one."""
        if self.recommendation is not None:
            number = self.recommendation.round.number
            return next(proof for proof_round, proof in self.proofs if proof_round.number == number)
        return self.proofs[-1][1] if self.proofs else None


@dataclass
class Finalists:
    """The settings to be proven, the most promising first.

    ``slim``: those of which every parameter was seen to matter. ``whole``: the setting from which
    the first was taken, if that had more parameters.
    """

    settings: list[Setting] = field(default_factory=list)
    slim: list[Setting] = field(default_factory=list)
    whole: Setting | None = None


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
    placements: PlacementWatch | None = None,
) -> StudyOutcome:
    """Run a study to its end, or continue it from its run history and trials.

    If other workers take part in the study, ``may_finish`` says whether this one makes the proofs.
    With ``screening``, cheap runs keep settings that show no gain from full runs. ``warm``: this
    process has warmed up already. With ``placements``, those with equal layouts are one setting.

    ``seed``: of the orders of the blocks (:func:`~autotune.study.proof.order_seed`).

    Raises WorkError if the default does not run, MachineBusy if the guard rejects all runs,
    FinishedElsewhere if another worker makes the proofs.
    """
    loop = SearchLoop(
        evaluator, trial_store, strategy, space, plan, watch, screening, warm, placements
    )
    loop.run()
    if not may_finish():
        raise FinishedElsewhere
    loop.wait_for_others()
    trials, bench = trial_store.trials, loop.bench
    pruner = Pruner(bench, loop.idle, best_ratio(trials), seed)
    answer = StudyOutcome(loop.ended_by, best_trial(trials), trials, bench.budget)
    _Proofs(bench, pruner, trial_store, space, lambda: loop.favourite).carry_out(answer)
    return answer


@dataclass(frozen=True)
class _Proofs:
    """The rounds of one study.

    Stored rounds are completed; a new round is made if there is something new to prove.
    ``favourite`` gives the setting with the strategy's best estimate.
    """

    bench: Bench
    pruner: Pruner
    trial_store: TrialStore
    space: Space
    favourite: Callable[[], Setting | None]

    @property
    def rounds(self) -> Rounds:
        """The stored rounds."""
        return Rounds(self.trial_store, self.space, self.plan.alpha)

    @property
    def plan(self) -> SearchPlan:
        """The bounds of the study."""
        return self.bench.plan

    def carry_out(self, answer: StudyOutcome) -> None:
        """Complete the rounds, and recommend the first winner without an objection."""
        for proof_round in self.rounds.all():
            self._prove(proof_round, answer)
        while (new := self._next(answer)) is not None:
            self._prove(new, answer)
        self._recommend(answer)

    def _prove(self, proof_round: Round, answer: StudyOutcome) -> None:
        bench = self.bench
        try:
            if not bench.history.blocks(proof_round.phase):
                bench.ensure_defaults()
            settings, limit_s = proof_round.settings, proof_round.limit_s
            blocks = Blocks(bench.evaluator, proof_round.phase, settings, self.pruner.seed, limit_s)
            proof = confirm_blocks(blocks, proof_round.plan, bench.budget, bench.watch)
        except (BudgetSpent, NoBlocks):
            answer.budget_ended = True
            return
        answer.proofs.append((proof_round, proof))

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
        trials = len(answer.trials)
        if answer.proofs:
            last, proof = answer.proofs[-1]
            if proof.cut_short:
                return None  # A larger budget continues this round.
            if trials <= last.trials:
                return self._second_round(last, proof)
        standing = self._standing(answer)
        phase = f"prune:{self.rounds.next_name}:{trials}"
        proven_parts = {
            proof_round.whole: proof_round.settings[0]
            for proof_round, proof in answer.proofs
            if proof_round.whole is not None and proof_round.settings[0] in proof.winners
        }
        finalists = self._finalists(
            answer.trials, phase, _refuted_settings(answer), standing, proven_parts
        )
        if not finalists.settings:
            return None
        return self._preregister(finalists.settings, finalists.slim, finalists.whole)

    def _finalists(
        self,
        trials: list[Trial],
        phase: str,
        refuted_settings: Collection[Setting],
        standing: Setting | None,
        proven_parts: Mapping[Setting, Setting],
    ) -> Finalists:
        """At most ``plan.finalists`` settings that may well be faster than the default.

        ``phase`` names the blocks of the pruning, so that it can be continued.
        ``refuted_settings`` had their proof and failed it. ``standing`` is the winner of an earlier
        round: it is proven beside the new finalists, so that they are compared within the same
        blocks. ``proven_parts`` maps settings to the pruned ones that earlier rounds proved.
        """
        most = self.plan.finalists
        evidence = Race(self.bench, trials).run()
        hopeful = evidence.finalists(most, self.plan.min_gain)
        hopeful = with_favourite(hopeful, self.favourite())
        hopeful = [s for s in hopeful if s not in refuted_settings][:most]
        if all(proven_parts.get(s, s) == standing for s in hopeful):
            return Finalists()
        self.bench.ensure_defaults()
        leader = hopeful[0]
        if leader in proven_parts:
            start, pruning = proven_parts[leader], PruningOutcome(proven_parts[leader])
        else:
            start, pruning = prune_leader(self.pruner, evidence, leader, phase)
        slim = pruning.setting if pruning.setting not in refuted_settings else leader
        # A simpler setting with few runs is proven beside the setting that it replaces.
        # A setting that has the pruned one as a part says no more than the leader.
        others = [
            proven_parts.get(s) or self.pruner.likely_part(evidence, s)
            for s in hopeful[1:]
            if not slim.items() <= s.items()
        ]
        whole = [leader] if slim != leader and leader not in proven_parts else []
        settings = [s for s in [slim, *whole, *others] if s not in refuted_settings]
        settings = list(dict.fromkeys(settings))[:most]
        if settings == [standing]:
            return Finalists()
        if standing is not None and standing not in settings:
            settings = [*settings[: most - 1], standing]
        settings = settings[: self._affordable(len(settings))]
        if whole and leader not in settings and start not in evidence.settings:
            # That the rest does nothing is the model's word alone.  Without a proof beside the
            # setting that was run, this one is proven.
            settings, slim = [leader], leader
        return Finalists(
            settings,
            [s for s in settings if len(s) == 1 or (pruning.complete and s == pruning.setting)],
            leader if slim != leader and slim == pruning.setting else None,
        )

    def _affordable(self, finalists: int) -> int:
        """As many finalists as the budget can prove, at least one."""
        budget = self.bench.budget
        while finalists > 1 and not budget.affords(self.plan.proof_runs(finalists)):
            finalists -= 1
        return finalists

    def _second_round(self, last: Round, proof: Confirmation) -> Round | None:
        """A new proof of what was left undecided, if the budget is larger than before."""
        open_settings = [s for s in proof.settings if proof.decisions[s].outcome == "undecided"]
        if proof.winners or not open_settings or not self._has_larger_budget(last):
            return None
        first = open_settings[0] == last.settings[0]
        slim = [s for s in open_settings if s in last.slim]
        return self._preregister(open_settings, slim, last.whole if first else None)

    def _has_larger_budget(self, last: Round) -> bool:
        """Whether the study may, and can, do more than when its last round was stored."""
        plan = self.plan
        more_s = last.budget_s is not None and (
            plan.budget_s is None or plan.budget_s > last.budget_s
        )
        more_runs = last.max_runs is not None and (
            plan.max_runs is None or plan.max_runs > last.max_runs
        )
        return (more_s or more_runs) and self.bench.budget.affords(plan.proof_runs(1))

    def _preregister(
        self, settings: list[Setting], slim: list[Setting], whole: Setting | None
    ) -> Round:
        return self.rounds.preregister(
            settings,
            min_gain=self.plan.min_gain,
            limit_s=self.bench.limit_s(),
            slim=slim,
            whole=whole,
            trials=len(self.trial_store.trials),
            budget_s=self.plan.budget_s,
            max_runs=self.plan.max_runs,
        )

    def _standing(self, answer: StudyOutcome) -> Setting | None:
        """The setting that the rounds so far recommend."""
        winners = ranked_winners(answer, self.plan.min_gain)
        return winners[0][0] if winners else None

    def _recommend(self, answer: StudyOutcome) -> None:
        documents, space = self.trial_store, self.space
        for winner, proof_round, proof in ranked_winners(answer, self.plan.min_gain):
            recommendation = recommend(self.pruner, documents, space, winner, proof_round, proof)
            if not recommendation.objections:
                answer.recommendation = recommendation
                return
            answer.with_objections.append(recommendation)


def _refuted_settings(answer: StudyOutcome) -> set[Setting]:
    """Settings whose proof failed for another reason than a faster finalist."""
    return {
        setting
        for _, proof in answer.proofs
        if not proof.winners
        for setting, decision in proof.decisions.items()
        if decision.outcome in REFUTATIONS
    } | {
        setting
        for _, proof in answer.proofs
        for setting, decision in proof.decisions.items()
        if decision.outcome in ("worse", "equivalent")
    }


def ranked_winners(
    answer: StudyOutcome, min_gain: float
) -> list[tuple[Setting, Round, Confirmation]]:
    """Proven settings in the order of preference, those of the last round first.

    A proof of an earlier round stands unless a later round refuted it: the error budget covers all
    rounds together.
    """
    winners: list[tuple[Setting, Round, Confirmation]] = []
    refuted_settings: set[Setting] = set()
    for proof_round, proof in reversed(answer.proofs):
        winners += [
            (s, proof_round, proof)
            for s in order_winners(proof, min_gain)
            if s not in refuted_settings and all(s != other for other, _, _ in winners)
        ]
        refuted_settings |= {s for s, d in proof.decisions.items() if d.outcome in REFUTATIONS}
    return winners
