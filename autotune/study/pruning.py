"""Pruning: taking parameters out of a setting until each that is left matters.

It has two times. Before the proof, :func:`prune_leader` prunes the setting that leads the search:
first by what the runs of the search say, then on interleaved blocks, where group elimination finds
the smallest setting that is not seen to be slower. After the proof, :func:`prune_winner` prunes a
winner that was not pruned before. The pruned setting is measured beside the whole one on fresh
blocks; it replaces the whole one if its own gain is proven, and the blocks say by how much it may
be slower.

:func:`without` says which smaller settings there are; a class-wide proof, which measures on several
programs, uses it too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from autotune.measurement.bench import Bench
from autotune.measurement.budget import BudgetSpent
from autotune.measurement.events import PhaseStarted
from autotune.space import DEFAULT, InactiveParameters, Setting, Space
from autotune.stats import Decision, LookPlan
from autotune.study.fresh_pairs import FRESH_BLOCKS, FRESH_LEAST, FRESH_RUNS, fresh_blocks
from autotune.study.proof import (
    MISSED_SHARE,
    Blocks,
    Confirmation,
    Pairs,
    ReferenceFailure,
    decide,
    decide_pairs,
    matters,
    measure_blocks,
)
from autotune.study.proof_rounds import Round, digest, readable_round, stored_setting
from autotune.study.race import RaceEvidence
from autotune.study.search_result import PrunedSetting
from autotune.study.trial_store import DocumentStore
from autotune.wording import share

SINGLES = 4
"""Largest number of parameters that are taken out one by one; more are taken out in groups."""
MAX_ROUNDS = 4
LEAST_BLOCKS = 4
SURE_BLOCKS = 6
"""So many blocks, all slower, show that a parameter matters (by chance in 1.6 % of cases)."""
MOST_BESIDE_WHOLE = 27
"""Number of blocks after which a proven setting is no longer measured beside the whole one."""
INFERIOR_ALPHA = 0.10
"""Alpha of both sides, so "not slower than the margin" is false with a probability of 5 %."""

NO_EVIDENCE = "no parameter was seen to act before the proof"
NO_BUDGET = "the budget does not hold the runs of the ablation (taking parameters out)"
WHOLE_FAILS = "the whole setting failed in the ablation (taking parameters out)"
TOO_MANY_ROUNDS = f"{MAX_ROUNDS} rounds of the ablation (taking parameters out) were not enough"

Group = tuple[str, ...]
"""Names of parameters that are taken out together."""


def without(setting: Setting, group: Group, spaces: Iterable[Space]) -> Setting | None:
    """The setting without a group of parameters; None if that must not be measured.

    ``spaces`` are those of the programs that use it. Parameters that mean nothing without the group
    in any of them are taken out too. The empty setting is the default, with which the proof
    compares in any case; a setting that breaks a rule of a space is not launched.
    """
    spaces = tuple(spaces)
    smaller = setting.without(*group)
    acting = {name for space in spaces for name in space.canonical(smaller)}
    smaller = smaller.without(*(name for name in smaller if name not in acting))
    if smaller in (DEFAULT, setting):
        return None
    breaks_rule = any(space.violations(smaller, grid=False) for space in spaces)
    return None if breaks_rule else smaller


def without_all(setting: Setting, idle: Mapping[Group, float], space: Space) -> Setting:
    """The setting without all groups that have no effect; ``idle`` maps them to the ratio of their
    absence. If one must stay, it is the one whose absence costs most."""
    for group in sorted(idle, key=lambda group: idle[group]):
        setting = without(setting, group, [space]) or setting
    return setting


def groups(names: Group, pieces: int, singles: int) -> list[Group]:
    """Single parameters if they are few, else about ``singles * pieces`` groups."""
    if len(names) <= singles * pieces:
        return [(name,) for name in names]
    size = -(-len(names) // (singles * pieces))
    return [names[i : i + size] for i in range(0, len(names), size)]


@dataclass(frozen=True)
class PruningOutcome:
    """The smallest setting found.

    ``why`` says why parameters without effect may be left; "" if each was seen to matter.
    """

    setting: Setting
    why: str = ""

    @property
    def complete(self) -> bool:
        """Whether each parameter that is left was seen to matter."""
        return not self.why


@dataclass(frozen=True)
class Pruner:
    """Prunes the settings of one search.

    ``idle`` is what the search knows of inactive parameters, ``ratio`` the best ratio that it found
    (for time limits), and ``seed`` that of the orders of blocks.
    """

    bench: Bench
    idle: InactiveParameters
    ratio: float
    seed: int

    def likely_part(self, evidence: RaceEvidence, setting: Setting) -> Setting:
        """The part of a setting that is proven in its place, by the runs of the search alone.

        It is the setting itself if all parameters may act.
        """
        min_gain = self.bench.plan.min_gain
        part = evidence.simplest_part(setting, min_gain)
        if part != setting:
            return part
        acting = evidence.acting(setting, min_gain)
        # A parameter of which an acting one is a condition stays: without pml=ucx no UCX_* acts.
        idle = tuple(
            name
            for name in evidence.idle(setting, min_gain)
            if acting <= self.idle.strip(setting.without(name)).keys()
        )
        return (without(setting, idle, [self.idle.space]) if idle else None) or setting

    def blocks_for(self, noise: float) -> int:
        """Number of blocks that distinguish ``min_gain`` from nothing at this noise."""
        plan = self.bench.plan
        step = math.log1p(max(plan.min_gain, 0.005)) / 2
        # The median ratio of n blocks has a standard deviation of about 1.25 * sqrt(2 / n) * noise.
        block_count = math.ceil((2 * 1.25 * math.sqrt(2) * noise / step) ** 2)
        return min(max(block_count, LEAST_BLOCKS), plan.prune_blocks)

    def prune(self, setting: Setting, phase: str, count: int, reserve: int) -> PruningOutcome:
        """The smallest setting that is as fast, by group elimination; ``count`` blocks a round.

        ``phase`` names the blocks, and ``reserve`` is the number of runs that are left of the
        budget.
        """
        bench, pieces = self.bench, 1
        for number in range(MAX_ROUNDS):
            space = self.idle.space
            parameter_groups = groups(tuple(setting), pieces, SINGLES)
            rivals = {
                g: s for g in parameter_groups if (s := without(setting, g, [space])) is not None
            }
            each = list(dict.fromkeys(rivals.values()))
            runs = count * (len(each) + 1)
            name = f"{phase}:{number}"
            if not each:
                return PruningOutcome(setting)
            has_runs = bool(bench.history.blocks(name))  # It goes on, whatever budget is left.
            if not (has_runs or bench.budget.affords(runs + reserve)):
                return PruningOutcome(setting, NO_BUDGET)
            bench.watch(PhaseStarted("prune", "ablation: taking parameters out", runs))
            limit = bench.limit_s(self.ratio)
            blocks = Blocks(bench.evaluator, name, each, self.seed, limit, setting, limit)
            try:
                self._compare(blocks, count)
            except BudgetSpent:
                return PruningOutcome(setting, NO_BUDGET)
            except ReferenceFailure:
                return PruningOutcome(setting, WHOLE_FAILS)
            idle = {
                group: pairs.median_ratio()
                for group, rival in rivals.items()
                if not matters(pairs := blocks.pairs(rival, first=count), bench.plan.min_gain)
            }
            smaller = without_all(setting, idle, space)
            if all(len(group) == 1 for group in parameter_groups):
                return PruningOutcome(smaller)
            pieces = pieces * 2 if smaller == setting else 1
            setting = smaller
        return PruningOutcome(setting, "" if len(setting) == 1 else TOO_MANY_ROUNDS)

    def _compare(self, blocks: Blocks, count: int) -> None:
        """Measure at most ``count`` blocks; a setting whose outcome is certain is not run again."""
        min_gain = self.bench.plan.min_gain
        for number in range(count):
            live = [
                smaller
                for smaller in blocks.settings
                if not certain(blocks.pairs(smaller, first=number), count, min_gain)
            ]
            if not live:
                return
            blocks.ensure_block(number, live)


def certain(smaller: Pairs, count: int, min_gain: float) -> bool:
    """Whether the pairs so far decide what ``count`` pairs would say.

    Too many blocks were not slower, which no further block can change, or the first
    :data:`SURE_BLOCKS` were all slower.
    """
    slower = sum(ratio > 1 for ratio in smaller.ratios)
    blocks = len(smaller.ratios)
    if blocks - slower > count - math.ceil(MISSED_SHARE * count):
        return True
    return slower == blocks >= SURE_BLOCKS and matters(smaller, min_gain)


def prune_leader(
    pruner: Pruner, evidence: RaceEvidence, leader: Setting, phase: str
) -> tuple[Setting, PruningOutcome]:
    """Before the proof: the likely part of the leader, and what is left of it on blocks.

    The blocks leave the smallest proof, and half of the reserve above it, of the budget.
    """
    plan = pruner.bench.plan
    start = pruner.likely_part(evidence, leader)
    if start == leader and not evidence.acting(leader, plan.min_gain):
        return start, PruningOutcome(start, NO_EVIDENCE)
    reserve = (plan.proof_runs(1) + pruner.bench.kept_runs) // 2
    return start, pruner.prune(start, phase, pruner.blocks_for(evidence.noise), reserve)


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
class PruningPlan:
    """The plan after a proof: ``small`` is measured beside ``whole``, if there is a whole."""

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
    def from_json(cls, data: Mapping[str, Any], space: Space) -> PruningPlan:
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


@dataclass(frozen=True)
class PrunedWinner:
    """A winner after its pruning: the setting, its own decision against the default, and its pairs.

    ``fresh`` is the number of fresh blocks for its gain. ``whole_blocks``: blocks with
    leads, measured beside the whole setting, that give this gain too; None if there are none.
    """

    setting: Setting
    decision: Decision
    pruning: Pruning
    pairs: Pairs
    fresh: int
    whole_blocks: Blocks | None = None


def prune_winner(
    pruner: Pruner,
    documents: DocumentStore,
    space: Space,
    winner: Setting,
    proof_round: Round,
    proof: Confirmation,
) -> PrunedWinner:
    """After the proof: a proven finalist of a round, pruned if it was not before."""
    plan = _stored_plan(pruner, documents, space, winner, proof_round, proof)
    outcome = PrunedWinner(
        winner,
        proof.decisions[winner],
        Pruning("slim"),
        proof.blocks.pairs(winner),
        plan.fresh,
    )
    if plan.whole is None:
        pruning = outcome.pruning
    elif plan.small == winner and plan.whole in proof.settings:
        pruning = _in_proof(proof_round, plan, plan.whole, proof)
    elif plan.small == winner:
        blocks, pruning, _ = _beside_whole(pruner, proof_round, plan, plan.whole, None)
        outcome = dataclasses.replace(outcome, whole_blocks=blocks)
    else:
        own = proof_round.plan
        blocks, pruning, decision = _beside_whole(pruner, proof_round, plan, plan.whole, own)
        if (
            decision is not None
            and decision.outcome == "better"
            and pruning.non_inferior is not False
        ):
            pairs = blocks.pairs(plan.small)
            outcome = dataclasses.replace(
                outcome, setting=plan.small, decision=decision, pairs=pairs
            )
        else:
            why = _why_whole(plan.small, decision, pruning)
            pruning = dataclasses.replace(pruning, state="not pruned", why=why, whole=None)
    if plan.why:
        pruning = dataclasses.replace(pruning, state="not pruned", why=pruning.why or plan.why)
    return dataclasses.replace(outcome, pruning=pruning)


def _stored_plan(
    pruner: Pruner,
    documents: DocumentStore,
    space: Space,
    winner: Setting,
    proof_round: Round,
    proof: Confirmation,
) -> PruningPlan:
    """The plan of the comparison with the whole setting, stored before it is measured."""
    name = f"slim:{proof_round.number}:{digest(winner)}"
    document = documents.stored_document(name)
    if document is None:
        plan = _plan(pruner, winner, proof_round, proof)
        if plan.why == NO_BUDGET and plan.whole is None:
            return plan  # A larger budget may hold it.
        document = documents.store_document(name, plan.to_json())
    return PruningPlan.from_json(document, space)


def _plan(pruner: Pruner, winner: Setting, proof_round: Round, proof: Confirmation) -> PruningPlan:
    gain = proof.decisions[winner].comparison.gain
    # Half of the gain, as a factor: a setting that is slower by this factor has lost half of it.
    margin = max(proof_round.plan.min_gain, 1 - 1 / math.sqrt(1 + gain))
    fresh = fresh_blocks(proof.blocks.pairs(winner), gain)
    if winner in proof_round.slim:
        whole = proof_round.whole if winner == proof_round.settings[0] else None
        return PruningPlan(winner, whole, margin, fresh)
    phase = f"prune:{proof_round.name}:{digest(winner)}"
    smallest = pruner.prune(winner, phase, pruner.bench.plan.prune_blocks, reserve=FRESH_RUNS)
    whole = None if smallest.setting == winner else winner
    return PruningPlan(smallest.setting, whole, margin, fresh, smallest.why)


def _in_proof(
    proof_round: Round, plan: PruningPlan, whole: Setting, proof: Confirmation
) -> Pruning:
    """Whether the small setting is as fast as the whole one, from the blocks of the proof.

    The intervals of all looks hold together, so it does not matter what ended the proof.
    """
    margin_plan = LookPlan(looks=proof_round.plan.looks, alpha=INFERIOR_ALPHA, margin=plan.margin)
    decision = decide_pairs(margin_plan, proof.blocks.pairs(plan.small, against=whole))
    return _pruning(decision, plan, whole)


def _beside_whole(
    pruner: Pruner, proof_round: Round, plan: PruningPlan, whole: Setting, own: LookPlan | None
) -> tuple[Blocks, Pruning, Decision | None]:
    """Run the small setting, the whole one and the default in fresh blocks.

    With ``own``, the blocks end when it is decided whether the small setting is faster than the
    default. Else they have leads, because they give the fresh gain, too, and they end when it
    is decided whether it is slower than the whole one by more than the margin.
    """
    small, bench = plan.small, pruner.bench
    last = MOST_BESIDE_WHOLE if own is None else proof_round.plan.looks[-1]
    looks = tuple(look for look in proof_round.plan.looks if FRESH_BLOCKS <= look <= last)
    margin_plan = LookPlan(looks=looks, alpha=INFERIOR_ALPHA, margin=plan.margin)
    phase = proof_round.later_phase("slim", small)
    each, limit_s = (small, whole), proof_round.limit_s
    blocks = Blocks(bench.evaluator, phase, each, pruner.seed, limit_s, leads=own is None)
    bench.watch(PhaseStarted("confirm", "proving the slim setting", blocks.runs(looks[0], 2)))
    decision: Decision | None = None
    inferior: Decision | None = None
    for look in looks:
        if measure_blocks(blocks, look, [small, whole], bench.budget, reach=True) < look:
            break
        inferior = decide_pairs(margin_plan, blocks.pairs(small, against=whole, first=look))
        decision = None if own is None else decide(own, blocks, small, look)
        loses = decision is not None and decision.stop and decision.outcome != "better"
        if loses or (inferior.stop if decision is None else decision.stop):
            break
    if inferior is None:
        return blocks, Pruning("pruned", NO_BUDGET, whole, plan.margin), decision
    return blocks, _pruning(inferior, plan, whole), decision


def _pruning(decision: Decision, plan: PruningPlan, whole: Setting) -> Pruning:
    """The pruning, with what the pairs of the small and the whole setting say."""
    comparison = decision.comparison
    has_bound = comparison.interval and comparison.lo > -1
    return Pruning(
        "pruned",
        plan.why,
        whole=whole,
        margin=plan.margin,
        non_inferior={"not slower": True, "worse": False}.get(decision.outcome),
        slower_at_most=max(-comparison.lo, 0.0) if has_bound else None,
        blocks=comparison.n,
    )


def _why_whole(small: Setting, decision: Decision | None, pruning: Pruning) -> str:
    """Why the whole setting is recommended although a smaller one was found."""
    if decision is None:
        return NO_BUDGET
    if pruning.non_inferior is False and pruning.margin is not None:
        return (
            f"{small.key} alone is more than {share(pruning.margin)} slower than the whole setting"
        )
    return f"{small.key} alone was not proven to be faster than the default ({decision.why})"
