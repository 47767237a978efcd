"""The recheck of a publication: is its gain still there, gone, or not decided by so many pairs?

The published values are measured against the default again, on the programs of the evidence.  The
comparison is the study's own (:class:`autotune.stats.LookPlan`): looks at numbers of pairs fixed in
advance, and intervals that cover the true gain at all looks together.  The answer about the claim
depends on the interval alone, so its probability of being wrong is known.

An expired file whose gain is still there can be renewed.  It gets a new header, is rendered for the
installed version, and is published like a new one: real launches must show that it is obeyed, else
the former file stays.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from autotune.comparison.comparison_outcome import ComparisonOutcome
from autotune.comparison.paired_comparison import ComparisonRequest, compare_settings
from autotune.errors import AutotuneError, UsageError, WorkError
from autotune.measurement.budget import BudgetTooSmall
from autotune.measurement.evaluator import MachineBusy
from autotune.measurement.events import Watcher, silent
from autotune.notes import Say, lock_notes
from autotune.publish.content import Content, Evidence
from autotune.publish.formats import find
from autotune.publish.header import series
from autotune.publish.install import load_text
from autotune.publish.neutral import neutral
from autotune.publish.plan import FilePlan, lines_of_others
from autotune.publish.probe import Prober
from autotune.publish.programs import NotRun, program_of
from autotune.publish.publication import publish_files
from autotune.publish.verify import FileState, cluster_of, publications
from autotune.space import Parameter, Setting, Space
from autotune.space.parameter import ParameterKind as Group
from autotune.space.setting import read_value
from autotune.stats import MIN_GAIN, Decision, LookPlan, looks_up_to
from autotune.store import Store
from autotune.targets.provenance import Provenance
from autotune.wording import UNGUARDED, count, interval, percent
from runner.lock import MachineLock
from runner.mpi.library import Library

Status = Literal[
    "still there", "gone", "contradicted", "cannot be told", "not compared", "cannot be run"
]

PAIRS = 60
"""Largest number of pairs on a program (``--pairs``)."""
SHRUNK = 0.5
"""A gain below this share of the published one is reported as less than half of it."""
_LARGEST = 0.99
_ROUNDING = 1e-9
"""Largest rounding difference of two equal ratios."""


@dataclass(frozen=True)
class Claim:
    """The claim: what was published for one program.

    ``gain`` (T_default / T - 1) is None if it is not known.  It is also None, with ``faster``
    false, if no gain was shown for this program of a class: then it was only shown not to be
    slower.
    """

    gain: float | None = None
    faster: bool = True

    @property
    def least(self) -> float:
        """The smallest gain that counts: 2 %, or half of a published gain below 2 %."""
        if self.gain is None or self.gain >= MIN_GAIN:
            return MIN_GAIN
        return max(self.gain, 0.0) * SHRUNK

    def plan(self, pairs: int = PAIRS) -> LookPlan:
        """The plan of looks up to ``pairs``.  It ends early if the interval is above 0 and half of
        the published gain is seen, or if the interval rules out half of the published gain and the
        smallest gain that counts."""
        least = self.least if self.gain is None else max(self.least, self.gain * SHRUNK)
        looks = looks_up_to(pairs)
        # There is no stop for futility, because the answer depends on the interval alone.
        return LookPlan(looks=looks, min_gain=min(least, _LARGEST), win_from=looks[0], futility=0.0)

    def answer(self, decision: Decision) -> ClaimAnswer:
        """What the interval says about the published gain."""
        comparison = decision.comparison
        if not comparison.interval:
            return ClaimAnswer(
                "cannot be told", "too few pairs for an interval", self.gain, None, None
            )
        inside = None if self.gain is None else comparison.lo <= self.gain <= comparison.hi
        shrunk = None if self.gain is None else comparison.hi < SHRUNK * self.gain - _ROUNDING
        status, why = self._status(comparison.lo, comparison.hi, bool(shrunk))
        return ClaimAnswer(status, why, self.gain, inside, shrunk)

    def _status(self, lo: float, hi: float, shrunk: bool) -> tuple[Status, str]:
        least = percent(self.least).lstrip("+")
        if hi < 0:
            return "gone", "it is slower than the default"
        if not self.faster:
            if lo > 0:
                return "still there", "it is faster, though no gain was published for this program"
            if lo > -MIN_GAIN and hi < MIN_GAIN:
                return "still there", "no gain was published for this program, and it is no slower"
            return "cannot be told", "no gain was published for this program; whether it is slower"
        if hi < self.least:
            return "gone", f"a gain of {least} or more is ruled out"
        if lo > 0:
            return "still there", "less than half of the published gain is left" if shrunk else ""
        if shrunk:
            return "gone", "no gain is shown, and half of the published gain is ruled out"
        return "cannot be told", "neither a gain nor the loss of the gain is shown"


@dataclass(frozen=True)
class ClaimAnswer:
    """The answer about a claim.  ``inside``: the published gain lies in the interval; ``shrunk``:
    the interval lies below half of it.  Both are None if no gain was published."""

    status: Status
    why: str
    gain: float | None
    inside: bool | None
    shrunk: bool | None

    def words(self, decision: Decision) -> str:
        """One line: the measured gain, and the published gain."""
        comparison = decision.comparison
        ends = (
            comparison.lo if comparison.lo > -1 else None,
            comparison.hi if comparison.hi < float("inf") else None,
        )
        words = f"{percent(comparison.gain)} in {comparison.n} pairs"
        if comparison.interval:
            words += f" (95 % interval {interval(ends) or 'open'})"
        if self.gain is not None:
            words += f", published {percent(self.gain)}"
            if self.inside is not None:
                words += f" ({'inside' if self.inside else 'outside'} the interval)"
        return words + (f": {self.why}" if self.why else "")

    def to_json(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "published_gain": self.gain,
            "published_inside_interval": self.inside,
            "below_half_of_published": self.shrunk,
            "status_why": self.why,
        }


@dataclass
class Recheck:
    """One comparison of published values with the default on one program."""

    source: str
    program: str
    status: Status
    words: str
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether the gain is lost or refused, or the program could not be run."""
        return self.status in ("gone", "contradicted", "cannot be run")

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "program": self.program,
            "status": self.status,
            "still_better": {"still there": True, "gone": False, "contradicted": False}.get(
                self.status
            ),
            **self.data,
            "words": self.words,
        }


def recheck(
    states: Sequence[FileState],
    library: Library,
    store: Store,
    *,
    pairs: int = PAIRS,
    budget_s: float | None = None,
    guard: bool = True,
    run_recorded: bool = False,
    watch: Watcher = silent,
) -> list[Recheck]:
    """Compare each whole publication with the default by interleaved pairs, on each program of its
    evidence.

    Each comparison ends when the published gain is shown to be there or gone, at most after
    ``pairs``.  ``run_recorded``: programs that are not known here are run as the file records them.
    ``budget_s`` is for each program.  Published files are out of force on both sides, because
    otherwise the default would be measured with them; all else that launches inherit is in force,
    as it was in the study.

    Raises MachineBusy, and UsageError for a damaged entry or a program that root must not run.
    """
    rechecks = []
    launches = neutral(library, os.environ, [state.path for state in states if state.header])
    for one in publications(states):
        evidence, cluster = one.evidence, cluster_of(one.header, one.path)
        space, setting = _as_setting(one.content)
        for check in evidence.check:
            program = program_of(check, cluster, library, evidence.source, run_recorded)
            if isinstance(program, NotRun):
                status: Status = "cannot be run" if program.is_broken else "not compared"
                data = {"would_run": list(program.command)}
                rechecks.append(Recheck(evidence.source, program.name, status, program.words, data))
                continue
            claim = claim_of(evidence, check)
            target = replace(program.target, commutative_only=evidence.commutative_only)
            if not target.clean_env:
                target = replace(target, surroundings=launches.surroundings)
            request = ComparisonRequest(
                target=target,
                space=space,
                first=Setting(),
                second=setting,
                plan=claim.plan(pairs),
                named_gain=claim.least,
                budget_s=budget_s,
                guard=guard,
                remeasure=True,
                watch=watch,
            )
            with launches.environment():
                rechecks.append(_comparison(evidence.source, claim, request, program.origin, store))
    return rechecks


def _as_setting(content: Content) -> tuple[Space, Setting]:
    """The published values as a setting, with the space that it is in."""
    space = Space(
        "published",
        tuple(
            Parameter(name, (read_value(value),), cast(Group, group))
            for group, values in sorted(content.groups.items())
            for name, value in sorted(values.items())
        ),
    )
    return space, Setting({p.name: p.levels[0] for p in space})


def _comparison(
    source: str, claim: Claim, request: ComparisonRequest, origin: Provenance | None, store: Store
) -> Recheck:
    """One comparison, in the directory and environment of ``origin``.  An error is an answer: the
    other programs can still be compared."""
    target = request.target
    input_name = f" {target.input}" if len(target.app.inputs) > 1 else ""
    program = f"{target.app.name}{input_name} on {count(target.ranks, 'rank')}"
    try:
        with origin.environment() if origin else nullcontext():
            outcome = compare_settings(request, store)
    except BudgetTooSmall as problem:
        return Recheck(source, program, "cannot be told", str(problem))
    except MachineBusy:
        raise
    except WorkError as problem:
        return Recheck(source, program, "cannot be run", str(problem))
    return _judgement(source, program, claim, outcome)


def claim_of(evidence: Evidence, check: Mapping[str, Any]) -> Claim:
    """The claim for a program.  The gain of a rules table holds for single sizes, while its program
    times all of them, so the gain of the whole program is not known."""
    if "gain" in check:
        own = check["gain"]
        good = isinstance(own, int | float) and not isinstance(own, bool) and 0 < own < 1e6
        return Claim(float(own)) if good else Claim(None, faster=False)
    if evidence.source.startswith("collectives:") or evidence.gain is None or evidence.gain <= 0:
        return Claim()
    return Claim(evidence.gain)


def _judgement(source: str, program: str, claim: Claim, outcome: ComparisonOutcome) -> Recheck:
    data = outcome.figures.to_json()
    if outcome.failed:
        return Recheck(source, program, "gone", outcome.failed, data)
    answer = claim.answer(outcome.decision)
    words = answer.words(outcome.decision)
    if outcome.contradictions:
        why = "; ".join(note.words for note in outcome.contradictions)
        return Recheck(source, program, "contradicted", why, data | {"status": "contradicted"})
    if not outcome.guarded:
        unsure = data | answer.to_json() | {"status": "cannot be told"}
        words = f"{UNGUARDED}, which shows nothing: {words}"
        return Recheck(source, program, "cannot be told", words, unsure)
    if outcome.cut_short and answer.status == "cannot be told":
        words += "; the budget was spent first"
    return Recheck(source, program, answer.status, words, data | answer.to_json())


@dataclass(frozen=True)
class Renewal:
    """What became of an expired file: renewed, or why not."""

    path: Path
    renewed: bool
    words: str

    def to_json(self) -> dict[str, Any]:
        return {"path": str(self.path), "renewed": self.renewed, "words": self.words}


def renew(
    states: Sequence[FileState], checks: Sequence[Recheck], library: Library, say: Say
) -> list[Renewal]:
    """Renew the expired files of publications whose gain was seen again with ``library``.

    All files of a publication are renewed, or none.  ``say`` gets notes on the machine lock.
    """
    renewals: list[Renewal] = []
    by_source: dict[str, list[FileState]] = {}
    for state in states:
        if state.expiry is not None and state.header is not None:
            by_source.setdefault(state.header.evidence.source, []).append(state)
    for source, files in by_source.items():
        own = [check for check in checks if check.source == source]
        why = next((why for one in files if (why := not_renewable(one, own))), "")
        if not why:
            why = _republish(files, own, library, say)
        words = why or f"proven with {library.family} {library.version}"
        renewals += [Renewal(one.path, not why, words) for one in files]
    return renewals


def _republish(
    states: Sequence[FileState], checks: Sequence[Recheck], library: Library, say: Say
) -> str:
    """Write the files with their new evidence; why that failed, "" if it did not."""
    first = states[0]
    assert first.header is not None
    lock = MachineLock("shared", tell=lock_notes(say))
    try:
        with lock, Prober(library, cluster_of(first.header, first.path)) as prober:
            plans = [renewal(state.path, library, checks) for state in states]
            publish_files(plans, prober, lambda words: None)
    except AutotuneError as problem:
        return str(problem)
    return ""


def not_renewable(state: FileState, checks: Sequence[Recheck]) -> str:
    """Why an expired file cannot be renewed; "" if its gain was seen again on all its programs.

    ``checks`` are the new comparisons of its publication.
    """
    if state.header is None or state.in_force is False:
        return "it is not in force; search and publish again"
    if not state.header.proven:
        return "no library here was ever seen to obey it; publish again"
    open_ones = [f"{c.program}: {c.status}" for c in checks if c.status != "still there"]
    if open_ones:
        return f"its gain was not seen again ({'; '.join(open_ones)})"
    if not checks or len(checks) < len(state.header.evidence.check):
        return "no program of its evidence was measured again"
    return ""


def renewal(path: Path, library: Library, checks: Sequence[Recheck]) -> FilePlan:
    """The plan of a file with the evidence of ``checks``, which are all "still there".

    Raises UsageError if the file at ``path`` is gone or not autotune's.
    """
    text = load_text(path)
    header = None if text is None else text.header
    if text is None or header is None:
        raise UsageError(
            f"{path} is gone, or no longer contains what autotune published", code="published.gone"
        )
    fmt = find(header.format)
    new_evidence = {
        "mpi_version": library.version,
        "mpi_bin": library.bin,
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        "words": [f"{check.program}: {check.words}" for check in checks],
    }
    return FilePlan(
        fmt=fmt,
        path=path,
        content=header.content,
        header=replace(
            header,
            mpi=series(library),
            evidence=replace(header.evidence, renewed=new_evidence),
            guards=fmt.guards,
        ),
        others=lines_of_others(fmt, text),
        old=text,
        has_edits=False,
        backup=False,
        obstacle=None,
    )
