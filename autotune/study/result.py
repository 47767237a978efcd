"""Results: the answer of a study as one JSON document (docs/design.md, "Commands").

The last part has the warnings: what a reader of a result should know besides the figures, in plain
words.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from autotune.errors import WorkError
from autotune.space import DEFAULT, Setting
from autotune.stats import SLOW, SlowLaunches, estimate, known_gain
from autotune.strategies import INACTIVE, UNUSED
from autotune.study.confirmation import Confirmation
from autotune.study.recommendation import Recommendation, StudyOutcome, disturbed
from autotune.study.run_history import RunHistory
from autotune.study.screening import screening_words
from autotune.study.trial_store import Trial
from autotune.study.tried_layouts import unseen_threads
from autotune.wording import LOOKS_BETTER, ParameterNames, interval, percent, share

SCHEMA = "autotune-result-1"
Status = Literal[
    "recommended", "keep_default", "inconclusive", "too_noisy", "unguarded", "interrupted"
]
"""The possible answers; ``unguarded`` means measured without the guard, so nothing is proven."""


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
    default: dict[str, float | int | None] = field(default_factory=dict)
    best: dict[str, Any] | None = None
    gain: float | None = None
    gain_ci: tuple[float | None, float | None] | None = None
    significant: bool = False
    gain_fresh: dict[str, Any] | None = None
    """Gain over pairs measured after the decision: ``{gain, ci95, pairs}``.

    None if the budget did not hold the pairs. ``gain`` comes from a proof that stops when the gain
    looks large, so it is rather too high.
    """
    round: int | None = None
    """Number of the round in which the recommended setting was proven."""
    rounds: list[dict[str, Any]] = field(default_factory=list)
    """The proofs of this study: ``{round, alpha, trials, outcome}`` each."""
    pruning: dict[str, Any] | None = None
    """Whether every parameter of the recommended setting was seen to matter; else "not pruned"."""
    next_step: dict[str, Any] | None = None
    """What would decide an open proof: ``{words, options}``."""
    fidelity: dict[str, Any] | None = None
    """What cheap runs cost and saved (:func:`~autotune.study.screening.summary`); None without."""
    slow_launches: dict[str, Any] | None = None
    """How often the recommended setting and the default took twice the usual time."""
    finalists: list[Finalist] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    inherited: dict[str, str] = field(default_factory=dict)
    params_file: str | None = None
    mpirun: str = ""
    mpirun_with_file: str = ""
    """The same launch with ``params_file`` in place of the library's parameters."""
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
            "default": self.default,
            "best": self.best,
            "gain": self.gain,
            "gain_ci95": list(self.gain_ci) if self.gain_ci else None,
            "significant": self.significant,
            "gain_fresh": self.gain_fresh,
            "round": self.round,
            "rounds": self.rounds,
            "pruning": self.pruning,
            "next_step": self.next_step,
            "slow_launches": self.slow_launches,
            "fidelity": self.fidelity,
            "finalists": [f.to_json() for f in self.finalists],
            "warnings": self.warnings,
            "inherited": self.inherited,
            "params_file": self.params_file,
            "mpirun": self.mpirun,
            "mpirun_with_file": self.mpirun_with_file,
            "origin": self.origin,
            "wall_s": round(self.wall_s, 3),
            "waiting_s": round(self.waiting_s, 3),
            "overhead_s": round(max(self.wall_s - self.launched_s - self.waiting_s, 0.0), 3),
        }

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
        found = [_fresh_words(self.gain_fresh)]
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
        plain["gain_ci"] = _ends(data.get("gain_ci95"))
        plain["finalists"] = [
            Finalist(
                Setting(row["setting"]),
                row["verdict"],
                row["gain"],
                row["gain_ci"][0],
                row["gain_ci"][1],
                row["blocks"],
                row.get("words", ""),
                _ends(row.get("gain_range")),
            )
            for row in data["finalists"]
        ]
        result = cls(**plain)
        if result.fidelity is not None:
            screening_words(result.fidelity)  # It is complete if it can be said.
        result.launched_s = result.wall_s - result.waiting_s - float(data["overhead_s"])
        return result


def damaged_result(problem: Exception) -> WorkError:
    """The error for a stored result that cannot be read."""
    return WorkError(
        f"a stored result is damaged ({problem!r:.200}): somebody else wrote to the "
        "results database. Restore a copy from before, or use another database "
        "(--store)"
    )


def _ends(pair: Any) -> tuple[float | None, float | None] | None:
    return None if pair is None else (pair[0], pair[1])


def count_runs(result: Result, history: RunHistory) -> None:
    """Fill in what is counted from the runs of the whole study, including earlier sessions."""
    values = history.default_values()
    result.search_runs = history.search_runs
    result.confirmation_runs = history.confirmation_runs
    result.runs_rejected = history.rejected
    result.rejections = rejection_rows(history)
    result.default = {
        "median_s": statistics.median(values) if values else None,
        "n": len(values),
    }


def best_seen(history: RunHistory, setting: Setting | None) -> dict[str, Any] | None:
    """The best setting with the median of all its valid runs, significant or not."""
    if setting is None or setting == DEFAULT:
        return None
    values = [e.record.value_s for e in history.entries if e.key == setting.key and e.record.valid]
    if not values:
        return None
    return {
        "setting": setting.to_json(),
        "median_s": statistics.median(values),
        "n": len(values),
    }


NOISY_SPREAD = 0.25
"""Relative spread of the default from which noise is given as the reason of an open question."""


def judge_status(answer: StudyOutcome, history: RunHistory, guarded: bool = True) -> Status:
    """The status that the confirmation gives; without finalists nothing is faster than the default.

    Without the guard it proves nothing: other work may have slowed either side.
    """
    if not guarded:
        return "unguarded"
    proof = answer.proof
    if answer.chosen is not None:
        return "recommended"
    if answer.vetoed:
        return "keep_default"
    if proof is None and answer.budget_ended:
        return "inconclusive"
    if proof is None or not (proof.open or proof.winners):
        return "keep_default"
    spread = estimate(history.default_values()).spread
    return "too_noisy" if spread is not None and spread > NOISY_SPREAD else "inconclusive"


def finalist_rows(answer: StudyOutcome) -> list[Finalist]:
    """The finalists ordered by gain, with open ends as None."""
    if answer.proof is None:
        return []
    decisions = dict(answer.proof.decisions)
    if answer.recommendation is not None:
        decisions.setdefault(answer.recommendation.setting, answer.recommendation.decision)
    rows = []
    for setting, decision in decisions.items():
        seen = decision.comparison
        rows.append(
            Finalist(
                setting,
                decision.outcome,
                known_gain(seen.gain),
                known_gain(seen.lo) if seen.interval else None,
                known_gain(seen.hi) if seen.interval else None,
                seen.n,
                decision.why,
                None if seen.interval else (known_gain(seen.lo), known_gain(seen.hi)),
            )
        )
    return sorted(rows, key=lambda row: -(row.gain if row.gain is not None else -1))


def name_recommendation(result: Result, made: Recommendation) -> None:
    """Fill in what is known of the recommended setting."""
    seen = made.decision.comparison
    result.recommended = made.setting
    result.gain = seen.gain
    result.gain_ci = (known_gain(seen.lo), known_gain(seen.hi))
    result.significant = seen.significant
    result.round = made.round.number
    result.pruning = made.pruning.to_json()
    result.slow_launches = slow_row(made.slow)
    fresh = made.fresh
    if fresh is not None:
        result.gain_fresh = {
            "gain": known_gain(fresh.gain),
            "ci95": [known_gain(fresh.lo), known_gain(fresh.hi)] if fresh.interval else None,
            "pairs": fresh.n,
        }


def round_rows(answer: StudyOutcome, guarded: bool = True) -> list[dict[str, Any]]:
    """Every round of the study: its share of alpha and its outcome."""
    won = "proven" if guarded else LOOKS_BETTER
    return [
        {
            "round": made.number,
            "alpha": made.plan.alpha,
            "trials": made.trials,
            "finalists": len(made.settings),
            "outcome": won if proof.winners else "open" if proof.open else "nothing better",
        }
        for made, proof in answer.proofs
    ]


def slow_row(seen: SlowLaunches) -> dict[str, Any]:
    """The rates of slow launches as JSON."""
    return dataclasses.asdict(seen) | {"threshold": SLOW}


def _fresh_words(fresh: dict[str, Any] | None) -> str:
    early = "The proof stops early when the gain looks large, so its estimate is biased upwards"
    if fresh is None or fresh["gain"] is None:
        return f"{early}; no fresh pairs were measured after it."
    ends = f" ({interval(tuple(fresh['ci95']))})" if fresh["ci95"] else ""
    return f"{early}; {fresh['pairs']} fresh pairs after it: {percent(fresh['gain'])}{ends}."


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


REJECTED_SHARE = 0.2


def study_warnings(history: RunHistory, trials: list[Trial], answer: StudyOutcome) -> list[str]:
    """A few sentences, the most important first."""
    proof = answer.proof
    words = [
        f"{made.setting.key} is faster, but not recommended: {slow_words(asdict(made.slow))}"
        for made in answer.vetoed
    ]
    words += list(estimate(history.default_values()).warnings) if history.default_values() else []
    if proof is not None:
        for setting, decision in proof.decisions.items():
            words += [f"{setting.key}: {said}" for said in decision.comparison.warnings]
        words += proof_warnings(proof)
        if proof.cut_short:
            words.append("the budget was spent before the last test of the confirmation")
    words += _failures(trials) + _rejections(history) + _inactive(trials)
    words += unseen_threads(history)
    return list(dict.fromkeys(words))


def proof_warnings(proof: Confirmation) -> list[str]:
    """Warnings on the machine in a proof: drift, and rejections that depend on the setting."""
    words = []
    if proof.repeated:
        words.append(
            f"the speed of the machine changed: {proof.repeated} blocks were measured a second time"
        )
    if proof.unsteady:
        words.append(
            f"the speed of the machine changed all the time ({proof.unsteady} blocks "
            "differ from their median); only runs of the same block were compared"
        )
    for setting in disturbed(proof):
        words.append(
            f"{setting.key} is not recommended: its runs are rejected for foreign load "
            "more often than those of the reference, so its valid runs are a biased sample"
        )
    return words


def slow_words(seen: Mapping[str, Any]) -> str:
    """The rates of slow launches (:class:`SlowLaunches` as a dictionary) in one sentence."""
    said = (
        f"{seen['slow']} of {seen['launches']} launches took more than {SLOW:g} times "
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


def rejection_rows(history: RunHistory) -> list[dict[str, Any]]:
    """The settings with rejected runs, ``{setting, runs, rejected}``; the most rejections first."""
    counts = history.rejections()
    rows = [
        {"setting": key, "runs": runs, "rejected": rejected}
        for key, (rejected, runs) in counts.items()
        if rejected
    ]
    return sorted(rows, key=lambda row: (-row["rejected"], row["setting"]))


def _failures(trials: list[Trial]) -> list[str]:
    failed = [t for t in trials if t.state == "failed"]
    if not failed:
        return []
    reason, count = Counter(t.reason for t in failed).most_common(1)[0]
    return [f"{len(failed)} settings failed; most frequent reason ({count}): {reason}"]


def _rejections(history: RunHistory) -> list[str]:
    if not history.rejected:
        return []
    share = history.rejected / len(history.entries)
    if share < REJECTED_SHARE:
        return []
    return [f"{share * 100:.0f} % of all runs were rejected because other processes were busy"]


def _inactive(trials: list[Trial]) -> list[str]:
    unused, idle = _names(trials, UNUSED), _names(trials, INACTIVE)
    words = []
    if unused:
        names = ", ".join(sorted(unused))
        words.append(f"not used by this program or its transport, so not tuned: {names}")
    if idle - unused:
        words.append(
            "had no effect, so not tried again with the same placement, resources and "
            "components: " + ", ".join(sorted(idle - unused))
        )
    return words


def _names(trials: list[Trial], attribute: str) -> set[str]:
    """Names of the parameters that the trials have under an attribute."""
    found = [trial.attrs.get(attribute) for trial in trials]
    return {str(name) for names in found if isinstance(names, list) for name in names}
