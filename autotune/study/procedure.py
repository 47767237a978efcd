"""The procedure of a study on any bench: search, select, prune, prove, choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from autotune.space import Setting, Space
from autotune.stats import Plan, depends_on_setting
from autotune.strategies import Strategy
from autotune.study.bench import Bench
from autotune.study.confirm import Confirmation, confirm
from autotune.study.events import Watcher, silent
from autotune.study.finalists import Finalists, Selection, is_missed
from autotune.study.ledger import CONFIRM
from autotune.study.plan import SearchPlan
from autotune.study.search import Search
from autotune.study.trial import TrialBook


class FinishedElsewhere(Exception):
    """The search phase is over, and another worker proves what was found."""


@dataclass
class Answer:
    """How the study went; ``chosen`` is the proven setting, None where the default stands."""

    search: Search
    finalists: Finalists
    proof: Confirmation | None
    chosen: Setting | None


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
    # The phases are named after the trials they are based on: a longer search is proven anew.
    round_name = str(len(book.trials))
    finalists = Selection(search, seed, round_name).choose()
    proof = None
    if finalists.settings:
        search.defaults.start()
        proof = confirm(
            bench,
            finalists.settings,
            plan=Plan(alpha=plan.alpha, finalists=len(finalists.settings), min_gain=plan.min_gain),
            seed=seed,
            round_name=round_name,
            limit_s=search.limit_s,
            # A search that overdrew its budget still leaves the reserve.
            budget=search.budget.at_least(plan.proof_runs(1)),
            watch=watch,
        )
    return Answer(search, finalists, proof, choose_winner(proof, plan.min_gain))


def disturbed(proof: Confirmation) -> list[Setting]:
    """Settings whose runs the guard rejects more often than the default's, by more than chance."""
    counts = proof.blocks.bench.ledger.rejections(CONFIRM)
    reference = counts.get(proof.blocks.reference.key, (0, 0))
    return [s for s in proof.settings if depends_on_setting(*counts.get(s.key, (0, 0)), *reference)]


def choose_winner(proof: Confirmation | None, min_gain: float) -> Setting | None:
    """The proven finalist with the fewest parameters that is not seen to be worse than the best.

    Two finalists are compared within the same blocks: their own gains differ by chance alone.  One
    whose rejections depend on it is left out: it was seen only where it disturbs nobody.
    """
    if proof is None:
        return None
    out = disturbed(proof)
    winners = [s for s in proof.winners if s not in out]
    if not winners:
        return None
    top = winners[0]
    close = [
        s
        for s in winners
        if s == top or not is_missed(proof.blocks.pairs(s, against=top), min_gain)
    ]
    return min(close, key=lambda s: (len(s), -proof.decisions[s].comparison.gain))
