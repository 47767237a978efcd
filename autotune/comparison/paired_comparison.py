"""Comparison of two settings: the proof procedure of a search, for any two settings.

With a second library the program runs with A's setting under A's library and with B's setting under
B's (:mod:`autotune.measurement.other_library`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from autotune.comparison.comparison_document import (
    BothLibraries,
    LibrarySide,
)
from autotune.comparison.comparison_outcome import ComparisonOutcome, library_titles
from autotune.errors import WorkError
from autotune.measurement.budget import Budget, BudgetSpent, BudgetTooSmall
from autotune.measurement.evaluator import Evaluator, MachineBusy
from autotune.measurement.events import Event, PhaseStarted, Watcher, silent
from autotune.measurement.idle_parameters import inactive_difference
from autotune.measurement.measured_study import MeasuredStudy
from autotune.measurement.other_library import OtherLibrary
from autotune.measurement.output_check import result_checks
from autotune.measurement.result_checks import StoredAnswer, unchecked
from autotune.measurement.run_history import WARMUP, HistoryEntry, RunHistory
from autotune.measurement.study_key import study_key
from autotune.space import Setting, Space
from autotune.space.commutativity import commutative_values
from autotune.stats import LookPlan, NoBlocks
from autotune.store import Store
from autotune.store.keys import COMPARE
from autotune.study.conclusion import compare_step
from autotune.study.fresh_pairs import SecondLook, later_blocks, second_look
from autotune.study.objections import Finding, findings_on, output
from autotune.study.proof import (
    Blocks,
    Confirmation,
    confirm_blocks,
    decide,
    measure_blocks,
    order_seed,
)
from autotune.study.study_warnings import proof_warnings, rejection_rows
from autotune.targets.target import Target
from autotune.wording import asked_time, seconds

LIMIT_FACTOR = 30.0
LIMIT_SLACK_S = 10.0
"""B hangs after this multiple of A's first run plus these seconds; it is then stopped."""
LEAST_FACTOR = 3.0
LEAST_SLACK_S = 1.0
"""A budget does not stop B before this limit, as in a search: B may be slow."""
TRIES = 3
"""Blocks after which B is given up if it failed in each."""
FAST_FAILURE_S = 1.0
"""A launch that fails within this time did not reach the program's work."""


@dataclass
class ComparisonRequest:
    """A comparison of B (``second``) with A (``first``), with looks as in ``plan``."""

    target: Target
    space: Space
    first: Setting
    second: Setting
    plan: LookPlan
    budget_s: float | None = None
    max_runs: int | None = None
    seed: int = 0
    guard: bool = True
    remeasure: bool = False
    watch: Watcher = silent
    purpose: str = ""
    """Comparisons with different purposes share no runs."""
    ends_if_same: bool = False
    """Stop after one block if read-back shows that B differs from A in no parameter that acts."""
    named_gain: float | None = None
    """The smallest gain that fresh pairs must not rule out; None: the plan's ``min_gain``."""
    other: OtherLibrary | None = None
    """B's side, if B runs under another library than ``target``'s."""

    @property
    def candidate(self) -> Setting:
        """B as the run history names it."""
        return self.second if self.other is None else self.other.under(self.second)

    @property
    def options(self) -> dict[str, Any]:
        """The part of the comparison's identity that is not target, space or seed."""
        words = {"a": self.first.key, "b": self.second.key, "looks": list(self.plan.looks)}
        if self.other is not None:
            words |= self.other.identity(self.target, COMPARE, self.guard)
        return words | ({"purpose": self.purpose} if self.purpose else {})

    @property
    def libraries(self) -> BothLibraries | None:
        """Library and program of both sides, ``a`` and ``b``; None if there is one library."""
        if self.other is None:
            return None
        first, second = (_library_side(side) for side in (self.target, self.other.target))
        return {"a": first, "b": second}


def _library_side(target: Target) -> LibrarySide:
    library = target.library
    return LibrarySide(
        name=library.family, version=library.version, path=library.bin, program=target.program[0]
    )


class SecondFails(Exception):
    """B failed in each of the first blocks."""


class PairBlocks(Blocks):
    """The blocks of a comparison; they end if B fails in each of the first :data:`TRIES`."""

    def ensure_block(self, number: int, live: Sequence[Setting]) -> None:
        """As in any blocks; raises SecondFails."""
        if number == TRIES and all(_fails(self, one, at) for one in live for at in range(TRIES)):
            raise SecondFails
        super().ensure_block(number, live)


def compare_settings(request: ComparisonRequest, store: Store) -> ComparisonOutcome:
    """Run interleaved pairs until the plan decides or the budget is spent.

    The same request given again continues the stored comparison. Raises WorkError if A does not
    run, BudgetTooSmall if the budget held not one pair.
    """
    target = request.target
    with MeasuredStudy(
        store,
        study_key(target, request.space, COMPARE, request.options, request.seed, request.guard),
        target,
        request.space,
        request.watch,
        budget_s=request.budget_s,
        others=() if request.other is None else (request.other,),
    ) as on:
        outcome = _compare_in(on, request)
        outcome.comparisons = store.comparisons(on.study.id)
        store.set_result(on.study.id, outcome.verdict, outcome.figures.to_json())
    return outcome


def _compare_in(open_study: MeasuredStudy, request: ComparisonRequest) -> ComparisonOutcome:
    """Compare in an open study, under both libraries if there are two."""
    study = open_study.study.hash[:12]
    settings = (request.first, request.candidate)
    open_study.evaluator.sees_operations = any(map(commutative_values, settings))
    try:
        return compare_on(open_study.evaluator, request, study)
    except (MachineBusy, BudgetTooSmall):
        raise
    except WorkError as problem:
        if request.libraries is None:
            raise
        title = library_titles(request.libraries)["a"]
        raise WorkError(f"A, the program under {title}: {problem}", code="default.fails") from None


def compare_on(evaluator: Evaluator, request: ComparisonRequest, study: str) -> ComparisonOutcome:
    """Compare on any evaluator, as :func:`compare_settings`; ``study`` is the outcome's name."""
    number = _round(evaluator.history, request.remeasure)
    budget = Budget(evaluator.history, request.budget_s, request.max_runs).renewal()
    evaluator.budget = budget
    second = request.candidate
    warm: HistoryEntry | None = None
    starts = True
    try:
        warm = evaluator.run(request.first, WARMUP, timeout_s=budget.left_s)
        run_s = warm.record.wall_s
        limit = hang_limit(run_s, budget)
        if request.other is not None:
            other = evaluator.run(second, WARMUP, timeout_s=limit)
            starts = other.record.valid or other.censored
        name = f"{COMPARE}:{number}"
        seed = order_seed(study, request.seed)
        both = request.plan.symmetric
        blocks = PairBlocks(
            *(evaluator, name, [second], seed, limit, request.first),
            symmetric=both,
        )
        if not (blocks.complete(0, [second]) or budget.affords(2, run_s / 2)):
            raise NoBlocks  # A pair takes A's time at least.
        has_block = (request.ends_if_same or not starts) and measure_blocks(
            blocks, 1, [second], budget, reach=False
        )
        alike = _same(blocks, second) if has_block and request.ends_if_same else ""
        if has_block and (alike or (not starts and _fails(blocks, second, 0))):
            # The two are the same here, or B does not run; more blocks would show only chance.
            decisions = {second: decide(request.plan, blocks, second, 1)}
            proof = Confirmation(blocks, [second], decisions)
            outcome = outcome_of(request, evaluator, blocks, proof, study)
            return replace(outcome, failed=alike) if alike else outcome
        try:
            proof = confirm_blocks(blocks, request.plan, budget, _telling(request))
        except SecondFails:
            decisions = {second: decide(request.plan, blocks, second, TRIES)}
            proof = Confirmation(blocks, [second], decisions)
            return outcome_of(request, evaluator, blocks, proof, study)
        after = second_look(
            *(blocks, request.plan, proof, budget, _telling(request), request.named_gain)
        )
    except (NoBlocks, BudgetSpent):
        raise BudgetTooSmall(_no_pair(request, warm), code="budget.too_small") from None
    return outcome_of(request, evaluator, blocks, proof, study, after)


def _telling(request: ComparisonRequest) -> Watcher:
    """The request's watcher; of two libraries it is told instead of two settings."""
    libraries = request.libraries
    if libraries is None:
        return request.watch
    title = library_titles(libraries)

    def tell(event: Event) -> None:
        if isinstance(event, PhaseStarted):
            event = replace(event, words=f"comparing {title['b']} with {title['a']}")
        request.watch(event)

    return tell


def hang_limit(run_s: float, budget: Budget) -> float:
    """Seconds after which B hangs.

    This is at most half of the budget, so that A has its run, unless that is little more than A
    takes.
    """
    hangs = LIMIT_FACTOR * run_s + LIMIT_SLACK_S
    if budget.left_s is None:
        return hangs
    return min(hangs, max(budget.left_s / 2, LEAST_FACTOR * run_s + LEAST_SLACK_S))


def _no_pair(request: ComparisonRequest, warm: HistoryEntry | None) -> str:
    bounds = [] if request.budget_s is None else [f"--budget {asked_time(request.budget_s)}"]
    bounds += [] if request.max_runs is None else [f"--runs {request.max_runs}"]
    took = "; the first run of A took " + seconds(warm.record.wall_s) if warm else ""
    if warm and warm.censored:
        took = "; the first run of A had not ended by then"
    return (
        f"the budget ({' and '.join(bounds)}) was spent before one pair was "
        f"measured{took}.\nGive a larger one; what was measured is stored."
    )


def _round(history: RunHistory, remeasure: bool) -> int:
    """The round that continues, or a new one."""
    rounds = [int(e.phase.split(":")[1]) for e in history.entries if e.kind == COMPARE]
    last = max(rounds, default=0)
    return last + 1 if remeasure and rounds else last


def outcome_of(
    request: ComparisonRequest,
    evaluator: Evaluator,
    blocks: Blocks,
    proof: Confirmation,
    study: str,
    after: SecondLook | None = None,
) -> ComparisonOutcome:
    """The figures of a proof, and of what was measured ``after`` it, if it was."""
    second = request.candidate
    decision = proof.decisions[second]
    # Blocks after the look that decided are left out, so that all figures are from the same blocks.
    pairs = blocks.pairs(second).head(decision.comparison.n)
    phases = {phase for one in (blocks, *later_blocks(blocks)) for phase in one.phases}
    entries = [e for e in evaluator.history.entries if e.phase in phases]
    # Runs of an earlier round say nothing about this one.
    rejections = rejection_rows(RunHistory.of(entries))
    has_ranks = any(e.record.world_size is not None for e in entries if e.record.valid)
    findings: tuple[Finding, ...] = ()
    if decision.comparison.significant:
        sides = (request.first, second)
        faster, slower = reversed(sides) if decision.comparison.lo > 0 else sides
        more = () if after is None else after.findings
        findings = (*more, *findings_on(evaluator.history, faster, slower))
    else:
        # Other results make even a setting that is as fast no replacement.
        findings = tuple(output(evaluator.history, second, request.first))
    failure = _failure([e for e in entries if e.key == second.key and e.counts], has_ranks)
    bounds = Budget(evaluator.history, request.budget_s, request.max_runs)
    warm_ups = 1 if request.other is None else 2
    return ComparisonOutcome(
        study=study,
        decision=decision,
        first_s=pairs.reference,
        second_s=[c for c, cut in zip(pairs.candidate, pairs.censored, strict=True) if not cut],
        runs=len(entries),
        rejected=sum(e.rejected for e in entries),
        rejections=rejections,
        proof_warnings=proof_warnings(proof),
        drift_repeats=proof.repeats,
        cut_short=proof.cut_short,
        metric=evaluator.history.metric,
        checks=result_checks(request.target.app, evaluator.history, second, request.first),
        unchecked=unchecked(_answer(request)),
        findings=findings,
        fresh=None if after is None else after.fresh,
        failed=failure,
        step=partial(compare_step, proof, request.plan, pairs, bounds, warm_ups),
        guarded=request.guard,
        round=int(blocks.phase.split(":")[1]) + 1,
        libraries=request.libraries,
    )


def _answer(request: ComparisonRequest) -> StoredAnswer:
    """What the answer of a comparison rests on."""
    app, library = request.target.app, request.target.library
    setting = request.candidate.to_json()
    return StoredAnswer(app.metric, app.verify, library.family, library.version, setting)


def _same(blocks: Blocks, second: Setting) -> str:
    """Why A and B are the same setting here; "" if they may differ."""
    block = blocks.block(0)
    one, other = block.get(blocks.reference.key), block.get(second.key)
    if one is None or other is None:
        return ""
    idle = inactive_difference(blocks.reference, second, [one.record], [other.record])
    return f"B has the same effect as A: {'; '.join(idle)}" if idle else ""


def _fails(blocks: Blocks, second: Setting, number: int) -> bool:
    """Whether B's run of a block failed."""
    entry = blocks.block(number).get(second.key)
    return entry is not None and not (entry.record.valid or entry.censored)


def _failure(entries: list[HistoryEntry], has_ranks: bool) -> str:
    """Why B does not run, in the words of its first failure.

    "" if B ran once or was only ever stopped at a time limit. ``has_ranks``: the ranks of A were
    seen, so B's are seen once it starts.
    """
    failures = [e.record for e in entries if not e.record.valid and not e.censored]
    if not failures or any(e.record.valid for e in entries):
        return ""
    record = failures[0]
    has_start = record.wall_s >= FAST_FAILURE_S
    if has_ranks:
        has_start = record.world_size is not None
    fast = "does not run" if has_start else "does not start"
    return (
        f"B {fast}: {record.state}: {record.reason} (in all its {len(entries)} runs, the "
        f"first after {seconds(record.wall_s)})"
    )
