"""Results: the answer of a study as one JSON document (docs/explanation/design.md, "Commands").

:mod:`autotune.study.conclusion` fills a result in.  Commands that only read a stored result import
this module, which needs no statistics.  The last part has the evidence in words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from autotune.errors import WorkError
from autotune.notes import Note
from autotune.space import Setting
from autotune.store import Store, StudyRecord
from autotune.store.model import MOVED
from autotune.study.checks import checks_words
from autotune.study.library_switch import switch_words
from autotune.study.screening_summary import screening_words
from autotune.wording import HEADLINES, Metric, ParameterNames, interval, percent, share

SCHEMA = "autotune-result-1"
Status = Literal[
    "recommended",
    "keep_default",
    "contradicted",
    "inconclusive",
    "too_noisy",
    "unguarded",
    "interrupted",
]
"""The possible answers; ``unguarded`` means measured without the guard, so nothing is proven.

``contradicted``: a setting won its proof, and an objection speaks against it, so nothing is
recommended.
"""
FINISHED: tuple[str, ...] = tuple(one for one in get_args(Status) if one != "interrupted")
"""The statuses of a study that has ended with a result."""
NOTHING_LEFT = "the strategy has nothing left to try"
NOTHING_NEW = "the strategy looked for a new setting for long and met none"
BUDGET_SPENT = "the budget is spent, its reserve for the proof kept"
BUDGET_GONE = "the budget is spent"
"""The end of a search in which rejected or long runs used part of that reserve."""
MORE_TRIALS = 10
"""Number of trials that is proposed if only trials are bounded: a continued search proves again."""
FINISH = "finish"
"""The role of the worker that makes the proofs of the whole study."""
SESSION = "session:"
"""Beginning of the names under which a study stores its sessions."""


@dataclass
class Finalist:
    """One setting of the confirmation with its outcome; gains are fractions.

    ``lo`` and ``hi`` are the ends of the interval. If there is no interval yet, ``seen`` is the
    range of the blocks' gains.
    """

    setting: Setting
    verdict: str
    gain: float | None
    lo: float | None
    hi: float | None
    blocks: int
    words: str
    seen: tuple[float | None, float | None] | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "setting": self.setting.to_json(),
            "verdict": self.verdict,
            "gain": self.gain,
            "gain_ci": [self.lo, self.hi],
            "gain_range": None if self.seen is None else list(self.seen),
            "blocks": self.blocks,
            "words": self.words,
        }


@dataclass
class Result:
    """Everything that the command line prints at the end; ``to_json`` is the published form."""

    status: Status
    recommended: Setting
    study: str
    mpi: dict[str, str]
    machine: str
    cluster: str
    app: str
    ranks: int
    strategy: str
    seed: int
    guard: bool = True
    """Whether runs were rejected for foreign load."""
    ended_by: str = ""
    trials: int = 0
    budget_s: float | None = None
    max_runs: int | None = None
    search_runs: int = 0
    confirmation_runs: int = 0
    runs_rejected: int = 0
    rejections: list[dict[str, Any]] = field(default_factory=list)
    drift_repeats: int = 0
    metric: Metric = field(default_factory=Metric)
    """What the figures are; ``median_s`` of a rate is 1/rate."""
    proposed_metric: dict[str, Any] | None = None
    """The figure that the program prints, while the wall time counts.

    See :meth:`autotune.targets.figures.FigureProposal.to_json`.
    """
    default: dict[str, float | int | None] = field(default_factory=dict)
    best: dict[str, Any] | None = None
    gain: float | None = None
    gain_ci: tuple[float | None, float | None] | None = None
    """The gain of the recommended setting, from pairs measured after the decision."""
    gain_pairs: int = 0
    """Number of these pairs; 0: the budget did not hold them, and the gain is that of the proof."""
    gain_proof: dict[str, Any] | None = None
    """Gain in the proof: ``{gain, ci95, pairs}``.

    A proof stops when the gain looks large, so this gain is too high, the more the less certain it
    was to be proven.
    """
    significant: bool = False
    """Whether the proof showed that the setting is faster."""
    round: int | None = None
    """Number of the round in which the recommended setting was proven."""
    rounds: list[dict[str, Any]] = field(default_factory=list)
    """The proofs of this study: ``{round, alpha, trials, outcome}`` each."""
    pruning: dict[str, Any] | None = None
    """Whether every parameter of the recommended setting was seen to matter; else "not pruned"."""
    next_step: dict[str, Any] | None = None
    """What would decide an open proof: ``{words, options}``."""
    fidelity: dict[str, Any] | None = None
    """What cheap runs cost and saved; None without them.

    See :func:`autotune.study.screening_summary.summary`.
    """
    slow_launches: dict[str, Any] | None = None
    """How often launches of the recommended setting and of the default were slow."""
    comparisons: int = 1
    """Number of searches and comparisons of this program against this default in the database."""
    finalists: list[Finalist] = field(default_factory=list)
    checks: dict[str, Any] | None = None
    """What was checked of the results (:func:`autotune.study.output_check.result_checks`)."""
    unchecked: list[Note] = field(default_factory=list)
    """Why they were not (:mod:`autotune.study.checks`); empty if they were."""
    contradictions: list[Note] = field(default_factory=list)
    """The objections to settings that won their proof (:mod:`autotune.study.objections`)."""
    warnings: list[Note] = field(default_factory=list)
    inherited: dict[str, str] = field(default_factory=dict)
    params_file: str | None = None
    mpirun: str = ""
    mpirun_with_file: str = ""
    """The same launch with ``params_file`` in place of the library's parameters."""
    libraries: list[dict[str, Any]] = field(default_factory=list)
    """The MPI libraries of a search under several, that of the default first; else empty.

    See :func:`autotune.study.libraries.library_rows`.
    """
    switch: dict[str, Any] | None = None
    """What the library of the recommended setting needs, if it is not that of the default."""
    executables: list[dict[str, str]] = field(default_factory=list)
    """The files that the ranks ran: ``{path, sha256, kind}`` each (program, library, source)."""
    origin: dict[str, Any] | None = None
    """Directory, environment and files of the program (see :mod:`autotune.targets.provenance`)."""
    wall_s: float = 0.0
    waiting_s: float = 0.0
    launched_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The published form (``autotune-result-1``), in JSON types."""
        return {
            "schema": SCHEMA,
            "status": self.status,
            "recommended": {"setting": self.recommended.to_json()},
            "study": self.study,
            "mpi": self.mpi,
            "machine": self.machine,
            "cluster": self.cluster,
            "app": self.app,
            "ranks": self.ranks,
            "strategy": self.strategy,
            "seed": self.seed,
            "guard": self.guard,
            "ended_by": self.ended_by,
            "trials": self.trials,
            "budget_s": self.budget_s,
            "max_runs": self.max_runs,
            "search_runs": self.search_runs,
            "confirmation_runs": self.confirmation_runs,
            "runs_rejected": self.runs_rejected,
            "rejections": self.rejections,
            "drift_repeats": self.drift_repeats,
            "metric": self.metric.to_json(),
            "proposed_metric": self.proposed_metric,
            "default": self.default,
            "best": self.best,
            "gain": self.gain,
            "gain_ci95": list(self.gain_ci) if self.gain_ci else None,
            "gain_pairs": self.gain_pairs,
            "gain_proof": self.gain_proof,
            "significant": self.significant,
            "round": self.round,
            "rounds": self.rounds,
            "pruning": self.pruning,
            "next_step": self.next_step,
            "slow_launches": self.slow_launches,
            "comparisons": self.comparisons,
            "fidelity": self.fidelity,
            "finalists": [f.to_json() for f in self.finalists],
            "checks": self.checks,
            "unchecked": [note.to_json() for note in self.unchecked],
            "contradictions": [note.to_json() for note in self.contradictions],
            "warnings": [note.to_json() for note in self.warnings],
            "inherited": self.inherited,
            "params_file": self.params_file,
            "mpirun": self.mpirun,
            "mpirun_with_file": self.mpirun_with_file,
            "libraries": self.libraries,
            "switch": self.switch,
            "executables": self.executables,
            "origin": self.origin,
            "wall_s": round(self.wall_s, 3),
            "waiting_s": round(self.waiting_s, 3),
            "overhead_s": round(max(self.wall_s - self.launched_s - self.waiting_s, 0.0), 3),
        }

    @property
    def library_title(self) -> str:
        """The MPI library; of several, that of the default and the others."""
        title = f"{self.mpi['name']} {self.mpi['version']}"
        others = [f"{row['name']} {row['version']}" for row in self.libraries[1:]]
        return title if not others else f"{title} (default) and {', '.join(others)}"

    @property
    def headline(self) -> str:
        """The answer in one sentence, with the gain of a recommendation."""
        if self.status != "recommended":
            return HEADLINES[self.status]
        ends = interval(self.gain_ci)
        return f"A better setting is proven: {percent(self.gain)}{f' ({ends})' if ends else ''}."

    @property
    def names(self) -> ParameterNames:
        """The names of the proof's settings in texts that mention them often."""
        return ParameterNames.of_candidates(
            {f.setting.key: f.setting.to_json() for f in self.finalists}
        )

    def evidence(self) -> list[str]:
        """How reliable the recommendation is, in sentences; empty without a recommendation."""
        if self.status != "recommended":
            return []
        found = [_gain_words(self.gain_pairs, self.gain_proof)]
        if len(self.rounds) > 1:
            own = next(row for row in self.rounds if row["round"] == self.round)
            found.append(
                f"Proven in round {self.round} of this study, which may spend "
                f"{100 * own['alpha']:.2f} % of the error probability."
            )
        if self.pruning is not None:
            found.append(_pruning_words(self.pruning))
        if self.slow_launches is not None:
            found.append(f"{slow_words(self.slow_launches)}.")
        if self.comparisons > 1:
            found.append(comparisons_words(self.comparisons))
        return found

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Result:
        """Inverse of :meth:`to_json` for a stored result; raises WorkError for a damaged one."""
        try:
            return cls._from_json(data)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
            raise damaged_result(problem) from None

    @classmethod
    def _from_json(cls, data: dict[str, Any]) -> Result:
        names = {f.name for f in dataclasses.fields(cls)}
        plain = {k: v for k, v in data.items() if k in names}
        plain["recommended"] = Setting(data["recommended"]["setting"])
        plain["contradictions"] = [Note.from_json(row) for row in data["contradictions"]]
        plain["unchecked"] = [Note.from_json(row) for row in data["unchecked"]]
        plain["warnings"] = [Note.from_json(row) for row in data["warnings"]]
        plain["metric"] = Metric.from_json(data["metric"])
        plain["gain_ci"] = _ends(data["gain_ci95"])
        plain["finalists"] = [
            Finalist(
                Setting(row["setting"]),
                row["verdict"],
                row["gain"],
                row["gain_ci"][0],
                row["gain_ci"][1],
                row["blocks"],
                row["words"],
                _ends(row["gain_range"]),
            )
            for row in data["finalists"]
        ]
        result = cls(**plain)
        # What follows is complete if it can be said.
        _ = result.headline, result.evidence()
        if result.libraries:
            _ = result.library_title
        if result.switch is not None:
            switch_words(result.switch)
        if result.fidelity is not None:
            screening_words(result.fidelity)
        if result.checks is not None:
            checks_words(result.checks)
        result.launched_s = result.wall_s - result.waiting_s - float(data["overhead_s"])
        return result


def follow_moved_study(store: Store, study: StudyRecord) -> StudyRecord:
    """The study that is measured in place of ``study``; ``study`` itself if there is no other."""
    if study.status != MOVED or study.result is None:
        return study
    return store.find_study(str(study.result["to"]))


def damaged_result(problem: Exception) -> WorkError:
    """The error for a stored result that cannot be read."""
    return WorkError(
        f"a stored result is damaged ({problem!r:.200}): somebody else wrote to the "
        "results database. Restore a copy from before, or use another database "
        "(--store)",
        code="study.damaged",
    )


def _ends(pair: Any) -> tuple[float | None, float | None] | None:
    return None if pair is None else (pair[0], pair[1])


def comparisons_words(number: int) -> str:
    """How many searches and comparisons of a program the database has."""
    return (
        f"The database has {number} searches and comparisons of this program against this "
        "default; each may be wrong with a probability of its own."
    )


def _gain_words(pairs: int, proof: dict[str, Any] | None) -> str:
    """Where the gain comes from."""
    if not pairs:
        return (
            "The gain is that of the proof, which stops early when the gain looks large: it is "
            "probably smaller. No fresh pairs were measured after it."
        )
    if proof is None or proof["gain"] is None:
        return f"The gain is that of {pairs} pairs measured after the proof."
    ends = f" ({interval(tuple(proof['ci95']))})"
    return (
        f"The gain is that of {pairs} pairs measured after the proof. The proof itself, which "
        f"stops early when the gain looks large, showed {percent(proof['gain'])}{ends}."
    )


def _pruning_words(pruning: dict[str, Any]) -> str:
    if pruning["state"] == "not pruned":
        some = (
            ""
            if pruning["whole"] is None
            else f" to the end, from {len(pruning['whole'])} parameters on"
        )
        return (
            f"Not pruned{some}: {pruning['why']}; some of the remaining parameters may "
            "have no effect."
        )
    whole = pruning["whole"]
    if whole is None:
        return "Each parameter was shown to have an effect."
    what, margin = f"Pruned from {len(whole)} parameters", share(pruning["margin"])
    if pruning["non_inferior"] is False:
        return f"{what}: more than {margin} slower than the whole setting, but proven by itself."
    if pruning["slower_at_most"] is None:
        return (
            f"{what}; not compared with the whole setting ({pruning['why'] or 'no interval yet'})."
        )
    most = "not slower than the whole setting"
    if pruning["slower_at_most"] > 0:
        most = f"at most {share(pruning['slower_at_most'])} slower than the whole setting"
    said = "within" if pruning["non_inferior"] else "not shown to be within"
    return f"{what}: {most}, {said} the margin of {margin}."


def slow_words(seen: Mapping[str, Any]) -> str:
    """The rates of slow launches (``autotune.study.fresh_pairs.slow_row``), in a sentence."""
    said = (
        f"{seen['slow']} of {seen['launches']} launches took more than {seen['threshold']:g} times "
        f"as long as usual, {seen['default_slow']} of {seen['default_launches']} with "
        "the default"
    )
    if seen["verdict"] != "no difference shown":
        return f"{said}: {seen['verdict']}"
    ends = []
    if seen["rarer_from"] is not None and seen["default_slow"]:
        ends.append(f"{100 * seen['rarer_from']:.0f} % or less")
    if seen["more_from"] is not None:
        ends.append(f"{100 * seen['more_from']:.0f} % or more")
    if not ends:
        return f"{said}: too few launches to show a difference"
    return f"{said}: no difference shown (a rate of {' or '.join(ends)} would be one)"
