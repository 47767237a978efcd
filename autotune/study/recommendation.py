"""Recommendation: from a proven winner to the setting that is recommended, with its evidence.

Three questions follow the proof. Each is answered on fresh interleaved blocks. Does the winner have
parameters without effect? Is the slim setting as good as the whole one? What is the gain in blocks
whose number did not depend on the gain?
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from dataclasses import dataclass, field
from typing import Any, Literal

from autotune.notes import Note
from autotune.space import Setting, Space
from autotune.stats import (
    Comparison,
    Decision,
    LookPlan,
    SlowLaunches,
    depends_on_setting,
)
from autotune.study.ablation import SPENT, Ablation
from autotune.study.confirmation import (
    Blocks,
    Confirmation,
    decide,
    decide_pairs,
    measure_blocks,
)
from autotune.study.events import PhaseStarted
from autotune.study.fresh_pairs import (
    FRESH_BLOCKS,
    FRESH_LEAST,
    FRESH_RUNS,
    fresh_blocks,
    fresh_findings,
    look_again,
)
from autotune.study.objections import Finding, findings_on, objections
from autotune.study.pairs import is_missed
from autotune.study.parts import PrunedSetting
from autotune.study.rounds import DocumentStore, Round, readable_round, stored_setting
from autotune.study.search import SearchPhase
from autotune.study.tails import (
    TAIL_BLOCKS,
    doubtful,
    mean_findings,
    slow_findings,
    slow_of,
)
from autotune.wording import share

LAST_BESIDE = 27
"""Number of blocks after which a proven slim setting is no longer measured beside the whole one."""
INFERIOR_ALPHA = 0.10
"""Alpha of both sides, so "not slower than the margin" is false with a probability of 5 %."""

REFUTED = ("worse", "equivalent", "futile")
"""Outcomes after which a setting is not proposed again."""

PruningState = Literal["slim", "pruned", "not pruned"]


@dataclass(frozen=True)
class Pruning:
    """Whether each parameter of the recommended setting was seen to matter.

    "slim": the search found the setting so. "pruned": parameters of ``whole`` were taken out. "not
    pruned": some parameters may do nothing, and ``why`` says why they are there. ``non_inferior``:
    whether the setting was shown not to be slower than ``whole`` by more than ``margin`` (a
    fraction of the time); None if this is open or was not measured. ``slower_at_most``: upper bound
    of the extra time as a fraction, with 95 %.
    """

    state: PruningState
    why: str = ""
    whole: Setting | None = None
    margin: float | None = None
    non_inferior: bool | None = None
    slower_at_most: float | None = None
    blocks: int = 0

    @property
    def row(self) -> PrunedSetting:
        """The part of a result's document."""
        return PrunedSetting(
            state=self.state,
            why=self.why,
            whole=None if self.whole is None else self.whole.to_json(),
            margin=self.margin,
            non_inferior=self.non_inferior,
            slower_at_most=self.slower_at_most,
            blocks=self.blocks,
        )


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


class Recommender:
    """Makes recommendations of one search's winners; stored plans and runs are used again."""

    def __init__(self, search: SearchPhase, documents: DocumentStore, seed: int) -> None:
        self.search = search
        self.evaluator = search.evaluator
        self.seed = seed
        self._documents = documents
        self._ablation = Ablation(search, seed)

    def recommend(self, winner: Setting, rounds: Round, proof: Confirmation) -> Recommendation:
        """The recommendation for a proven finalist of a round."""
        plan = self._prepare(winner, rounds, proof)
        decision = proof.decisions[winner]
        named, pruning, fresh = winner, Pruning("slim"), None
        pairs = proof.blocks.pairs(winner)
        if plan.whole is None:
            pruning = Pruning("slim")
        elif plan.small == winner and plan.whole in proof.settings:
            pruning = self._in_proof(rounds, plan, plan.whole, proof)
        elif plan.small == winner:
            blocks, pruning, _ = self._beside_whole(rounds, plan, plan.whole, None)
            fresh = self._look_again(rounds, blocks, plan.fresh)
        else:
            beside, pruning, seen = self._beside_whole(rounds, plan, plan.whole, rounds.plan)
            if seen is not None and seen.outcome == "better" and pruning.non_inferior is not False:
                named, decision = plan.small, seen
                pairs = beside.pairs(named)
            else:
                why = _not_named(plan.small, seen, pruning)
                pruning = dataclasses.replace(pruning, state="not pruned", why=why, whole=None)
        if plan.why:
            pruning = dataclasses.replace(pruning, state="not pruned", why=pruning.why or plan.why)
        if fresh is None:
            blocks = self._blocks(rounds, "fresh", named, leads=True)
            self.search.watch(
                PhaseStarted(
                    "confirm", "estimating the gain on fresh pairs", blocks.runs(plan.fresh, 1)
                )
            )
            fresh = self._look_again(rounds, blocks, plan.fresh)
        pairs += blocks.pairs(named)
        contradicted = fresh_findings(named, decision.comparison.gain, fresh)
        slow = slow_of(self.evaluator.history, named, alpha=rounds.slow_alpha)
        if not contradicted and doubtful(slow, pairs):
            tail = self._blocks(rounds, "fresh:tail", named)
            count = TAIL_BLOCKS - (0 if fresh is None else fresh.n)
            measure_blocks(tail, count, [named], self.search.budget, reach=True)
            pairs += tail.pairs(named)
        slow = self._slow(rounds, named)
        findings = (
            *contradicted,
            *slow_findings(slow),
            *mean_findings(named, pairs),
            *findings_on(self.evaluator.history, named),
        )
        return Recommendation(named, rounds, decision, pruning, fresh, slow, findings)

    def _prepare(self, winner: Setting, rounds: Round, proof: Confirmation) -> _Slimming:
        """The plan of the comparison with the whole setting, stored before it is measured."""
        name = f"slim:{rounds.number}:{_digest(winner)}"
        kept = self._documents.stored_document(name)
        if kept is None:
            made = self._ablating(winner, rounds, proof)
            if made.why == SPENT and made.whole is None:
                return made  # A larger budget may hold it.
            kept = self._documents.store_document(name, made.to_json())
        return _Slimming.from_json(kept, self.search.space)

    def _ablating(self, winner: Setting, rounds: Round, proof: Confirmation) -> _Slimming:
        gain = proof.decisions[winner].comparison.gain
        # Half of the gain, as a factor: a setting that is slower by this factor has lost half of
        # it.
        margin = max(rounds.plan.min_gain, 1 - 1 / math.sqrt(1 + gain))
        fresh = fresh_blocks(proof.blocks.pairs(winner), gain)
        if winner in rounds.slim:
            whole = rounds.whole if winner == rounds.settings[0] else None
            return _Slimming(winner, whole, margin, fresh)
        ablated = self._ablation.slim(
            winner,
            f"prune:{rounds.name}:{_digest(winner)}",
            self.search.plan.prune_blocks,
            reserve=FRESH_RUNS,
        )
        if ablated.setting == winner:
            return _Slimming(winner, None, margin, fresh, ablated.why)
        return _Slimming(ablated.setting, winner, margin, fresh, ablated.why)

    def _in_proof(
        self, rounds: Round, plan: _Slimming, whole: Setting, proof: Confirmation
    ) -> Pruning:
        """Whether the small setting is as fast as the whole one, from the blocks of the proof.

        The intervals of all looks hold together, so it does not matter what ended the proof.
        """
        beside = LookPlan(looks=rounds.plan.looks, alpha=INFERIOR_ALPHA, margin=plan.margin)
        seen = decide_pairs(beside, proof.blocks.pairs(plan.small, against=whole))
        return _pruned(seen, plan, whole)

    def _beside_whole(
        self, rounds: Round, plan: _Slimming, whole: Setting, own: LookPlan | None
    ) -> tuple[Blocks, Pruning, Decision | None]:
        """Run the small setting, the whole one and the default in fresh blocks.

        With ``own``, the blocks end when it is decided whether the small setting is faster than the
        default. Else they have leads, because they give the fresh gain, too, and they end when it
        is decided whether it is slower than the whole one by more than the margin.
        """
        small = plan.small
        last = LAST_BESIDE if own is None else rounds.plan.looks[-1]
        looks = tuple(look for look in rounds.plan.looks if FRESH_BLOCKS <= look <= last)
        beside = LookPlan(looks=looks, alpha=INFERIOR_ALPHA, margin=plan.margin)
        blocks = self._blocks(rounds, "slim", small, whole, leads=own is None)
        most = blocks.runs(looks[0], 2)
        self.search.watch(PhaseStarted("confirm", "proving the slim setting", most))
        seen: Decision | None = None
        inferior: Decision | None = None
        for look in looks:
            if measure_blocks(blocks, look, [small, whole], self.search.budget, reach=True) < look:
                break
            inferior = decide_pairs(beside, blocks.pairs(small, against=whole, first=look))
            seen = None if own is None else decide(own, blocks, small, look)
            lost = seen is not None and seen.stop and seen.outcome != "better"
            if lost or (inferior.stop if seen is None else seen.stop):
                break
        if inferior is None:
            return blocks, Pruning("pruned", SPENT, whole, plan.margin), seen
        return blocks, _pruned(inferior, plan, whole), seen

    def _look_again(self, rounds: Round, blocks: Blocks, count: int) -> Comparison | None:
        return look_again(blocks, count, rounds.plan.min_gain, self.search.budget)

    def _slow(self, rounds: Round, named: Setting) -> SlowLaunches:
        """The test for slow launches of a setting.

        More frequent slow launches are looked for in all blocks, rarer ones in the blocks after the
        proof: a setting that has won its proof had few of them there
        (docs/explanation/statistics.md).
        """
        # One alpha serves all: a candidate is tested only if those before it were refused.
        history, alpha = self.evaluator.history, rounds.slow_alpha
        every = slow_of(history, named, alpha=alpha)
        after = slow_of(history, named, alpha=alpha, begin=f"{rounds.phase}:fresh:")
        if every.verdict == "more frequent" or not every.slow + every.default_slow:
            return every
        if after.launches and after.verdict != "more frequent":
            return after
        return dataclasses.replace(every, verdict="no difference shown")

    def _blocks(self, rounds: Round, name: str, *settings: Setting, leads: bool = False) -> Blocks:
        phase = f"{rounds.phase}:{name}:{_digest(settings[0])}"
        return Blocks(self.evaluator, phase, settings, self.seed, rounds.limit_s, leads=leads)


@dataclass(frozen=True)
class _Slimming:
    """The plan of the pruning: ``small`` is measured beside ``whole``, if there is a whole."""

    small: Setting
    whole: Setting | None
    margin: float
    fresh: int
    """Number of blocks at the last look."""
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        whole = None if self.whole is None else self.whole.to_json()
        return dataclasses.asdict(self) | {"small": self.small.to_json(), "whole": whole}

    @classmethod
    def from_json(cls, data: dict[str, Any], space: Space) -> _Slimming:
        """Inverse of :meth:`to_json`; raises WorkError as :meth:`Round.from_json`."""
        with readable_round():
            whole = data["whole"]
            return cls(
                stored_setting(data["small"], space),
                None if whole is None else stored_setting(whole, space),
                float(data["margin"]),
                min(max(int(data["fresh"]), FRESH_LEAST), FRESH_BLOCKS),
                str(data["why"]),
            )


def _pruned(seen: Decision, plan: _Slimming, whole: Setting) -> Pruning:
    """The pruning, with what the pairs of the small and the whole setting say."""
    said = seen.comparison
    return Pruning(
        "pruned",
        plan.why,
        whole=whole,
        margin=plan.margin,
        non_inferior={"not slower": True, "worse": False}.get(seen.outcome),
        slower_at_most=max(-said.lo, 0.0) if said.interval and said.lo > -1 else None,
        blocks=said.n,
    )


def _not_named(small: Setting, seen: Decision | None, pruning: Pruning) -> str:
    """Why the whole setting is recommended although a smaller one was found."""
    if seen is None:
        return SPENT
    if pruning.non_inferior is False and pruning.margin is not None:
        return (
            f"{small.key} alone is more than {share(pruning.margin)} slower than the whole setting"
        )
    return f"{small.key} alone was not proven to be faster than the default ({seen.why})"


def _digest(setting: Setting) -> str:
    """A short name of a setting for phases and documents."""
    return hashlib.sha256(setting.key.encode()).hexdigest()[:8]


@dataclass
class StudyOutcome:
    """The outcome of a study.

    ``proofs`` are its rounds with their confirmations. ``recommendation`` is None if the default
    stands. ``vetoed`` are proven settings that are not recommended because of an objection.
    """

    search: SearchPhase
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


def disturbed(proof: Confirmation) -> list[Setting]:
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
    out = disturbed(proof)
    winners = [s for s in proof.winners if s not in out]
    if not winners:
        return []
    top = winners[0]
    close = [
        s
        for s in winners
        if s == top or not is_missed(proof.blocks.pairs(s, against=top), min_gain)
    ]
    close.sort(key=lambda s: (len(s), -proof.decisions[s].comparison.gain))
    return [*close, *(s for s in winners if s not in close)]
