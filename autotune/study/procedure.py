"""The procedure of a study on any bench: search, select, prove in rounds, slim, choose."""

from __future__ import annotations

from collections.abc import Callable

from autotune.space import Setting, Space
from autotune.stats import NoBlocks
from autotune.strategies import Strategy
from autotune.study.bench import Bench
from autotune.study.blocks import Blocks
from autotune.study.budget import BudgetSpent
from autotune.study.confirm import Confirmation, confirm_blocks
from autotune.study.events import Watcher, silent
from autotune.study.finalists import Selection
from autotune.study.plan import SearchPlan
from autotune.study.recommendation import REFUTED, Answer, Recommender, candidates
from autotune.study.rounds import Round, Rounds
from autotune.study.search import Search
from autotune.study.trial import TrialBook


class FinishedElsewhere(Exception):
    """The search phase is over, and another worker proves what was found."""


def carry_out(
    bench: Bench,
    book: TrialBook,
    strategy: Strategy,
    space: Space,
    plan: SearchPlan,
    seed: int,
    watch: Watcher = silent,
    may_finish: Callable[[], bool] = lambda: True,
) -> Answer:
    """Carry a study to its end, or on from where its ledger and trials stand.

    With other workers on the same study ``may_finish`` tells whether this one is to prove what all
    found.  Raises WorkError where the default does not run, MachineBusy where the guard rejects
    all, FinishedElsewhere where another worker proves.
    """
    search = Search(bench, book, strategy, space, plan, watch)
    search.run()
    if not may_finish():
        raise FinishedElsewhere
    search.wait_for_others()
    return _Proofs(search, seed).carry_out()


class _Proofs:
    """The rounds of one study: those that are frozen are brought to their end, a new one is made
    where there is something new to prove."""

    def __init__(self, search: Search, seed: int) -> None:
        self.search = search
        self.plan = search.plan
        self.seed = seed
        self.rounds = Rounds(search.book, search.bench.ledger, search.space, search.plan.alpha)
        self.recommender = Recommender(search, search.book, seed)

    def carry_out(self) -> Answer:
        answer = Answer(self.search)
        for made in self.rounds.all():
            self._prove(made, answer)
        while (new := self._next(answer)) is not None:
            self._prove(new, answer)
        self._recommend(answer)
        return answer

    def _prove(self, made: Round, answer: Answer) -> None:
        bench = self.search.bench
        try:
            if not bench.ledger.blocks(made.phase):
                self.search.defaults.start()
            blocks = Blocks(bench, made.phase, made.settings, self.seed, made.limit_s)
            proof = confirm_blocks(blocks, made.plan, self.search.budget, self.search.watch)
        except (BudgetSpent, NoBlocks):
            answer.budget_ended = True
            return
        answer.proofs.append((made, proof))

    def _next(self, answer: Answer) -> Round | None:
        """The next round, frozen; None where nothing is to be proven, or the budget is spent."""
        if answer.budget_ended:
            return None
        try:
            return self._new(answer)
        except BudgetSpent:
            answer.budget_ended = True
            return None

    def _new(self, answer: Answer) -> Round | None:
        trials = len(self.search.book.trials)
        if answer.proofs:
            last, proof = answer.proofs[-1]
            if proof.cut_short:
                return None  # It goes on where it is with a larger budget.
            if trials <= last.trials:
                return self._again(last, proof)
        standing = self._standing(answer)
        phase = f"prune:{self.rounds.next_name}:{trials}"
        slimmed = {
            made.whole: made.settings[0]
            for made, proof in answer.proofs
            if made.whole is not None and made.settings[0] in proof.winners
        }
        chosen = Selection(
            self.search, self.seed, phase, _refuted(answer), standing, slimmed
        ).choose()
        if not chosen.settings:
            return None
        return self._freeze(chosen.settings, chosen.slim, chosen.whole)

    def _again(self, last: Round, proof: Confirmation) -> Round | None:
        """What was left undecided, proven anew for a larger budget than it had."""
        undecided = [s for s in proof.settings if proof.decisions[s].outcome == "undecided"]
        if proof.winners or not undecided or not self._grown(last):
            return None
        first = undecided[0] == last.settings[0]
        slim = [s for s in undecided if s in last.slim]
        return self._freeze(undecided, slim, last.whole if first else None)

    def _grown(self, last: Round) -> bool:
        """Whether the study may do more than when its last round was frozen, and can."""
        plan = self.plan
        more_s = last.budget_s is not None and (
            plan.budget_s is None or plan.budget_s > last.budget_s
        )
        more_runs = last.max_runs is not None and (
            plan.max_runs is None or plan.max_runs > last.max_runs
        )
        return (more_s or more_runs) and self.search.budget.affords(plan.proof_runs(1))

    def _freeze(self, settings: list[Setting], slim: list[Setting], whole: Setting | None) -> Round:
        return self.rounds.freeze(
            settings,
            min_gain=self.plan.min_gain,
            limit_s=self.search.proof_limit_s,
            slim=slim,
            whole=whole,
            trials=len(self.search.book.trials),
            budget_s=self.plan.budget_s,
            max_runs=self.plan.max_runs,
        )

    def _standing(self, answer: Answer) -> Setting | None:
        """What would be named by the rounds so far."""
        found = candidates(answer, self.plan.min_gain)
        return found[0][0] if found else None

    def _recommend(self, answer: Answer) -> None:
        for winner, made, proof in candidates(answer, self.plan.min_gain):
            made_of = self.recommender.recommend(winner, made, proof)
            if made_of.slow.verdict != "more frequent":
                answer.recommendation = made_of
                return
            answer.vetoed.append(made_of)


def _refuted(answer: Answer) -> set[Setting]:
    """Settings that had their proof and failed it, not merely against another finalist."""
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
