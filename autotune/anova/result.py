"""One setting for a class of programs with its evidence: what ``autotune publish`` may rely on."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Literal

from autotune.kept import Kept, content_id
from autotune.space import Setting

SCHEMA = "autotune-classwide-1"
Status = Literal["recommended", "keep_default", "unproven"]
"""``recommended``: proven by interleaved runs.  ``keep_default``: nothing was proven, or there was
nothing to prove.  ``unproven``: chosen from recorded runs only; must not become anyone's default.
"""
STATUSES: tuple[Status, ...] = ("recommended", "keep_default", "unproven")


@dataclass(frozen=True)
class ProgramEvidence:
    """The setting against the default on one program, from interleaved pairs.

    ``gain`` = T_default / T - 1 with the ends of its 95 % interval; None where open.  ``verdict``
    as in :class:`autotune.stats.Decision`, or "failed" where the program did not run with it.
    ``held_out``: the program had no part in choosing the setting.  ``study`` holds the raw runs.
    """

    app: str
    input: str | None
    ranks: int
    cluster: str
    held_out: bool
    gain: float | None
    lo: float | None
    hi: float | None
    pairs: int
    verdict: str
    words: str
    study: str


@dataclass(frozen=True)
class ClasswideResult:
    """``setting`` is what to make the default; {} where ``status`` says "keep_default".

    ``machine`` is a fingerprint, as :attr:`runner.machine.Machine.fingerprint`.  ``method`` is
    "anova", "direct" or "default".  ``gain`` is the mean over the programs of the class with the
    ends of its 95 % interval, ``held_out_gain`` the mean over those held out; None without proof.
    ``pruned`` are parameters that were taken out because that made nothing worse.
    ``scores`` are the rows of the choice (see docs/anova.md), ``warnings`` plain sentences.
    """

    status: Status
    setting: Setting
    cluster: str
    machine: str
    mpi: dict[str, str]
    space: str
    date: str
    method: str
    source: str
    gain: float | None = None
    lo: float | None = None
    hi: float | None = None
    held_out_gain: float | None = None
    evidence: tuple[ProgramEvidence, ...] = ()
    pruned: tuple[str, ...] = ()
    why: str = ""
    scores: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = field(default_factory=tuple)

    @property
    def id(self) -> str:
        """12 hexadecimal digits over the whole content: the ID of ``classwide:ID``."""
        return content_id(self._content())

    @property
    def proven(self) -> bool:
        return self.status == "recommended"

    def _content(self) -> dict[str, Any]:
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        plain["setting"] = self.setting.to_json()
        plain["evidence"] = [dataclasses.asdict(row) for row in self.evidence]
        for name in ("pruned", "warnings"):
            plain[name] = list(plain[name])
        plain["scores"] = [dict(row) for row in self.scores]
        return {"schema": SCHEMA, **_finite(plain)}

    def to_json(self) -> dict[str, Any]:
        """JSON types only, with the ``id``."""
        return {**self._content(), "id": self.id}


def _parse(data: dict[str, Any]) -> ClasswideResult:
    if data["status"] not in STATUSES:
        raise ValueError(f"status is {data['status']!r}, expected {', '.join(STATUSES)}")
    evidence = tuple(ProgramEvidence(**row) for row in data["evidence"])
    lists = {name: tuple(data[name]) for name in ("pruned", "warnings", "scores")}
    return ClasswideResult(
        **data | lists | {"setting": Setting(data["setting"]), "evidence": evidence}
    )


RESULTS = Kept("classwide", "class-wide result", SCHEMA, _parse)
"""All that were found."""


def _finite(value: Any) -> Any:
    """JSON has no infinities: an open end is None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value
