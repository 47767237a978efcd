"""Recommendation: from a proven winner to the setting that is recommended, with its evidence.

Three questions follow the proof. Each is answered on fresh interleaved blocks. Does the winner have
parameters without effect? Is the pruned setting as good as the whole one
(:mod:`autotune.study.pruning`)? What is the gain in blocks whose number did not depend on the gain?
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from autotune.measurement.events import PhaseStarted
from autotune.measurement.run_history import RunHistory
from autotune.notes import Note
from autotune.space import Setting, Space
from autotune.stats import Comparison, Decision, SlowLaunches, depends_on_setting
from autotune.study.fresh_pairs import (
    TAIL_BLOCKS,
    doubtful,
    fresh_findings,
    mean_findings,
    measure_fresh_gain,
    slow_findings,
    slow_of,
)
from autotune.study.objections import Finding, findings_on, objections
from autotune.study.proof import Blocks, Confirmation, matters, measure_blocks
from autotune.study.proof_rounds import Round
from autotune.study.pruning import Pruner, Pruning, prune_winner
from autotune.study.trial_store import DocumentStore

REFUTATIONS = ("worse", "equivalent", "futile")
"""Outcomes after which a setting is not proposed again."""


@dataclass(frozen=True)
class Recommendation:
    """A setting that is recommended.

    ``decision`` is its own decision against the default. ``fresh`` is the comparison on blocks
    measured after the decision; None if the budget did not hold them. ``findings`` are those of the
    checks (:mod:`autotune.study.objections`); with an objection the setting is not recommended.
    """

    setting: Setting
    round: Round
    decision: Decision
    pruning: Pruning
    fresh: Comparison | None
    slow: SlowLaunches
    findings: tuple[Finding, ...] = ()

    @property
    def objections(self) -> list[Note]:
        """Why the setting is not recommended; empty if it is."""
        return objections(self.findings)


def recommend(
    pruner: Pruner,
    documents: DocumentStore,
    space: Space,
    winner: Setting,
    proof_round: Round,
    proof: Confirmation,
) -> Recommendation:
    """The recommendation for a proven finalist of a round; stored plans and runs are used again."""
    bench, phase, min_gain = pruner.bench, proof_round.later_phase, proof_round.plan.min_gain
    pruning = prune_winner(pruner, documents, space, winner, proof_round, proof)
    setting, pairs, fresh, count = pruning.setting, pruning.pairs, None, pruning.fresh

    def blocks_after(name: str, leads: bool) -> Blocks:
        limit_s = proof_round.limit_s
        return Blocks(
            bench.evaluator, phase(name, setting), [setting], pruner.seed, limit_s, leads=leads
        )

    blocks = pruning.whole_blocks
    if blocks is not None:
        fresh = measure_fresh_gain(blocks, count, min_gain, bench.budget)
    if blocks is None or fresh is None:
        blocks = blocks_after("fresh", leads=True)
        words = "estimating the gain on fresh pairs"
        bench.watch(PhaseStarted("confirm", words, blocks.runs(count, 1)))
        fresh = measure_fresh_gain(blocks, count, min_gain, bench.budget)
    pairs += blocks.pairs(setting)
    contradictions = fresh_findings(setting, pruning.decision.comparison.gain, fresh)
    slow = slow_of(bench.history, setting, alpha=proof_round.slow_alpha)
    if not contradictions and doubtful(slow, pairs):
        tail = blocks_after("fresh:tail", leads=False)
        more = TAIL_BLOCKS - (0 if fresh is None else fresh.n)
        measure_blocks(tail, more, [setting], bench.budget, reach=True)
        pairs += tail.pairs(setting)
    slow = _slow(bench.history, proof_round, setting)
    findings = (
        *contradictions,
        *slow_findings(slow),
        *mean_findings(setting, pairs),
        *findings_on(bench.history, setting),
    )
    return Recommendation(
        setting, proof_round, pruning.decision, pruning.pruning, fresh, slow, findings
    )


def _slow(history: RunHistory, proof_round: Round, setting: Setting) -> SlowLaunches:
    """The test for slow launches of a setting.

    More frequent slow launches are looked for in all blocks, rarer ones in the blocks after the
    proof: a setting that has won its proof had few of them there
    (docs/explanation/statistics.md).
    """
    # One alpha serves all: a candidate is tested only if those before it were refused.
    alpha = proof_round.slow_alpha
    every = slow_of(history, setting, alpha=alpha)
    after = slow_of(history, setting, alpha=alpha, begin=f"{proof_round.phase}:fresh:")
    if every.verdict == "more frequent" or not every.slow + every.default_slow:
        return every
    if after.launches and after.verdict != "more frequent":
        return after
    return dataclasses.replace(every, verdict="no difference shown")


def disturbing_settings(proof: Confirmation) -> list[Setting]:
    """Settings whose runs the guard rejects more often than the default's, by more than chance."""
    blocks = proof.blocks
    counts = blocks.evaluator.history.rejections(*blocks.phases)
    reference = counts.get(blocks.reference.key, (0, 0))
    return [s for s in proof.settings if depends_on_setting(*counts.get(s.key, (0, 0)), *reference)]


def order_winners(proof: Confirmation, min_gain: float) -> list[Setting]:
    """The proven finalists in the order of preference.

    The first has the fewest parameters among those that are not seen to be slower than the best.
    Two finalists are compared within the same blocks, because their own gains also differ by
    chance. A finalist whose rejections depend on the setting is left out: it was only seen while it
    disturbed nobody.
    """
    out = disturbing_settings(proof)
    winners = [s for s in proof.winners if s not in out]
    if not winners:
        return []
    top = winners[0]
    close = [
        s for s in winners if s == top or not matters(proof.blocks.pairs(s, against=top), min_gain)
    ]
    close.sort(key=lambda s: (len(s), -proof.decisions[s].comparison.gain))
    return [*close, *(s for s in winners if s not in close)]
