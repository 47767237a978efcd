"""The answer of a study as one JSON document (DESIGN, "One command-line contract")."""

from __future__ import annotations

import dataclasses
import statistics
from dataclasses import dataclass, field
from typing import Any, Literal

from autotune.space import DEFAULT, Setting
from autotune.stats import estimate
from autotune.study.confirm import Confirmation, finite
from autotune.study.ledger import Ledger
from autotune.study.procedure import Answer
from autotune.study.warnings import rejection_rows

SCHEMA = "autotune-result-1"
Status = Literal["recommended", "keep_default", "inconclusive", "too_noisy", "interrupted"]


@dataclass
class Finalist:
    """One setting of the confirmation and what became of it; gains are fractions."""

    setting: Setting
    verdict: str
    gain: float | None
    lo: float | None
    hi: float | None
    blocks: int
    words: str

    def to_json(self) -> dict[str, Any]:
        return {
            "setting": self.setting.to_json(),
            "verdict": self.verdict,
            "gain": self.gain,
            "gain_ci": [self.lo, self.hi],
            "blocks": self.blocks,
            "words": self.words,
        }


@dataclass
class Result:
    """Everything the command line prints at the end; ``to_json`` is the published form."""

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
    finalists: list[Finalist] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    inherited: dict[str, str] = field(default_factory=dict)
    params_file: str | None = None
    mpirun: str = ""
    wall_s: float = 0.0
    waiting_s: float = 0.0
    launched_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
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
            "finalists": [f.to_json() for f in self.finalists],
            "warnings": self.warnings,
            "inherited": self.inherited,
            "params_file": self.params_file,
            "mpirun": self.mpirun,
            "wall_s": round(self.wall_s, 3),
            "waiting_s": round(self.waiting_s, 3),
            "overhead_s": round(max(self.wall_s - self.launched_s - self.waiting_s, 0.0), 3),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Result:
        """Inverse of :meth:`to_json` for a stored result."""
        names = {f.name for f in dataclasses.fields(cls)}
        plain = {k: v for k, v in data.items() if k in names}
        plain["recommended"] = Setting(data["recommended"]["setting"])
        ends = data.get("gain_ci95")
        plain["gain_ci"] = None if ends is None else (ends[0], ends[1])
        plain["finalists"] = [
            Finalist(
                Setting(row["setting"]),
                row["verdict"],
                row["gain"],
                row["gain_ci"][0],
                row["gain_ci"][1],
                row["blocks"],
                row.get("words", ""),
            )
            for row in data["finalists"]
        ]
        result = cls(**plain)
        result.launched_s = result.wall_s - result.waiting_s - float(data["overhead_s"])
        return result


def count_runs(result: Result, ledger: Ledger) -> None:
    """Fill in what is counted from the runs of the whole study, continuations included."""
    values = ledger.default_values()
    result.search_runs = ledger.search_runs
    result.confirmation_runs = ledger.confirmation_runs
    result.runs_rejected = ledger.rejected
    result.rejections = rejection_rows(ledger)
    result.default = {
        "median_s": statistics.median(values) if values else None,
        "n": len(values),
    }


def best_seen(ledger: Ledger, setting: Setting | None) -> dict[str, Any] | None:
    """The best setting seen with the median of all its valid runs, significant or not."""
    if setting is None or setting == DEFAULT:
        return None
    values = [e.record.value_s for e in ledger.entries if e.key == setting.key and e.record.valid]
    if not values:
        return None
    return {
        "setting": setting.to_json(),
        "median_s": statistics.median(values),
        "n": len(values),
    }


NOISY_SPREAD = 0.25
"""Relative spread of the default from which an open question is put down to noise."""


def judge_status(answer: Answer, ledger: Ledger) -> Status:
    """What the confirmation means; without finalists nothing beat the default."""
    proof = answer.proof
    if answer.chosen is not None:
        return "recommended"
    if proof is None or not (proof.open or proof.winners):
        return "keep_default"
    spread = estimate(ledger.default_values()).spread
    return "too_noisy" if spread is not None and spread > NOISY_SPREAD else "inconclusive"


def finalist_rows(proof: Confirmation | None) -> list[Finalist]:
    """The finalists in the order of their gains, open ends as None."""
    if proof is None:
        return []
    rows = []
    for setting in proof.settings:
        decision = proof.decisions[setting]
        seen = decision.comparison
        rows.append(
            Finalist(
                setting,
                decision.outcome,
                finite(seen.gain),
                finite(seen.lo) if seen.interval else None,
                finite(seen.hi) if seen.interval else None,
                seen.n,
                decision.why,
            )
        )
    return sorted(rows, key=lambda row: -(row.gain if row.gain is not None else -1))
