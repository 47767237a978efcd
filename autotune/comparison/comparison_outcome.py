"""The outcome of a comparison of two settings: verdict, figures, and the decision in words."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from autotune.comparison.comparison_document import (
    BothLibraries,
    ComparisonFigures,
    LibraryFigures,
    Verdict,
)
from autotune.measurement.result_checks import ResultChecks
from autotune.notes import Note
from autotune.stats import Comparison, Decision, comparison_words, known_gain
from autotune.study.conclusion import NextStep
from autotune.study.objections import Finding, objections, remarks
from autotune.study.search_result import GainOnPairs, Rejections
from autotune.wording import UNGUARDED, Metric


@dataclass
class ComparisonOutcome:
    """The result of a comparison.

    ``failed`` is the message for the user if B never ran, or is the same as A; else it is empty.
    """

    study: str
    decision: Decision
    first_s: list[float] = field(default_factory=list)
    second_s: list[float] = field(default_factory=list)
    runs: int = 0
    rejected: int = 0
    rejections: list[Rejections] = field(default_factory=list)
    proof_warnings: list[Note] = field(default_factory=list)
    drift_repeats: int = 0
    cut_short: bool = False
    metric: Metric = field(default_factory=Metric)
    """What the figures are."""
    checks: ResultChecks | None = None
    """What was checked of the results (:func:`autotune.measurement.output_check.result_checks`)."""
    unchecked: list[Note] = field(default_factory=list)
    """Why they were not (:mod:`autotune.measurement.result_checks`); empty if they were."""
    findings: tuple[Finding, ...] = ()
    """What the checks say of the faster side (:mod:`autotune.study.objections`)."""
    fresh: Comparison | None = None
    """The comparison on pairs after the decision (:mod:`autotune.study.fresh_pairs`), if any."""
    step: Callable[[], NextStep | None] | None = None
    """Estimates :attr:`next_step`, which takes up to half a second; None if there is none."""
    failed: str = ""
    guarded: bool = True
    round: int = 1
    """Number of this measurement of the comparison.

    Each further one (``remeasure``) is a separate question with its own alpha.
    """
    comparisons: int = 1
    """Number of searches and comparisons of this program against its default in the database."""
    libraries: BothLibraries | None = None
    """Name, version and path of both libraries, and the program of each, by ``a`` and ``b``.

    None if both sides ran under one library.
    """

    @property
    def verdict(self) -> Verdict:
        """The decision's outcome; "failed" if B never ran, "unguarded" without the guard.

        "contradicted": one side is faster, and an objection speaks against it, or B changes what
        the program prints.
        """
        if self.failed:
            return "failed"
        if self.contradictions:
            return "contradicted"
        return self.decision.outcome if self.guarded else "unguarded"

    @cached_property
    def next_step(self) -> NextStep | None:
        """What would decide the comparison if it is open."""
        if self.step is None or self.failed or not self.guarded:
            return None
        return self.step()

    @property
    def words(self) -> str:
        """The decision as one sentence."""
        sentence = comparison_words(self.decision.comparison)
        if self.libraries is not None:
            sentence = _libraries_words(self.libraries, self.faster, sentence)
        return sentence if self.guarded else f"{sentence}; {UNGUARDED}: nothing is proven"

    @property
    def faster(self) -> Literal["a", "b"] | None:
        """The side whose runs took less time, as far as the interval shows it; else None."""
        comparison = self.decision.comparison
        if self.failed or self.contradictions or not comparison.significant:
            return None
        return "b" if comparison.lo > 0 else "a"

    @property
    def gain(self) -> float | None:
        """B's gain over A as a fraction; None if there is none."""
        return known_gain(self.decision.comparison.gain)

    @property
    def pairs(self) -> int:
        """Number of pairs on which the decision is based."""
        return self.decision.comparison.n

    @property
    def contradictions(self) -> list[Note]:
        """The objections to the faster side."""
        return objections(self.findings)

    @property
    def warnings(self) -> list[Note]:
        """Warnings on the proof."""
        proof_notes = [*self.decision.comparison.warnings, *self.proof_warnings]
        return [*proof_notes, *remarks(self.findings)]

    @property
    def figures(self) -> ComparisonFigures:
        """The figures, as they are stored; with the two settings they are the document."""
        comparison = self.decision.comparison
        ends = (known_gain(comparison.lo), known_gain(comparison.hi))
        comparison_figures = ComparisonFigures(
            study=self.study,
            round=self.round,
            guard=self.guarded,
            outcome=self.verdict,
            seen=self.decision.outcome,
            why=self.failed or self.decision.why,
            words=self.failed or self.words,
            gain=self.gain,
            gain_ci95=ends if comparison.interval else None,
            gain_range=None if comparison.interval else ends,
            significant=comparison.significant and self.guarded,
            fresh=None if self.fresh is None else _fresh_row(self.fresh),
            pairs=self.pairs,
            metric=self.metric,
            a_median_s=_median(self.first_s),
            b_median_s=_median(self.second_s),
            runs=self.runs,
            runs_rejected=self.rejected,
            rejections=self.rejections,
            drift_repeats=self.drift_repeats,
            budget_ended_it=self.cut_short,
            comparisons=self.comparisons,
            next_step=None if self.next_step is None else self.next_step.row,
            checks=self.checks,
            unchecked=self.unchecked,
            contradictions=self.contradictions,
            warnings=self.warnings,
        )
        if self.libraries is None:
            return comparison_figures
        return LibraryFigures(**vars(comparison_figures), mpi=self.libraries, faster=self.faster)


def _fresh_row(fresh: Comparison) -> GainOnPairs:
    """The gain of fresh pairs."""
    ends = (known_gain(fresh.lo), known_gain(fresh.hi))
    return GainOnPairs(
        gain=known_gain(fresh.gain), ci95=ends if fresh.interval else None, pairs=fresh.n
    )


def library_titles(libraries: BothLibraries) -> dict[str, str]:
    """The libraries of a comparison in words, by ``a`` and ``b``; two builds by their paths."""
    sides = {"a": libraries["a"], "b": libraries["b"]}
    titles = {side: f"{one['name']} {one['version']}" for side, one in sides.items()}
    if len(set(titles.values())) == 1:
        return {side: f"{words} in {sides[side]['path']}" for side, words in titles.items()}
    return titles


def _libraries_words(libraries: BothLibraries, faster: str | None, sentence: str) -> str:
    """Which library is faster, as one sentence; ``sentence`` compares B with A."""
    title = library_titles(libraries)
    if faster == "b":
        return f"{title['b']} is faster than {title['a']}: {sentence}"
    if faster == "a":
        return f"{title['a']} is faster than {title['b']}, which is {sentence}"
    return f"neither library is shown to be faster; {title['b']} against {title['a']}: {sentence}"


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None
