"""The class-wide result: one setting for a class of programs with its evidence.

``autotune publish`` publishes such results.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from autotune.artifacts import ArtifactStore, content_id
from autotune.names import names_path
from autotune.notes import Note
from autotune.space import Setting
from autotune.space.trust import check_name
from autotune.wording import count
from runner.types import all_finite

SCHEMA = "autotune-classwide-1"
Status = Literal["recommended", "keep_default", "unproven", "unguarded"]
"""``recommended``: proven by interleaved runs.  ``keep_default``: nothing was proven, or there was
nothing to prove.  ``unproven``: chosen from recorded runs only, so it must not become a default.
``unguarded``: measured without the guard, which proves nothing, so it must not become a default."""
Verdict = Literal["passed", "slower", "open", "failed", "unguarded"]
"""``passed``: shown not to be slower than the default by more than the margin.  ``slower``: shown
to be slower.  ``failed``: runs with the setting failed or did not end.  ``unguarded``: measured
without the guard, so nothing is shown."""
HeldOut = Literal["gain", "no loss", "loss", "open"]
"""What the programs held out show: a gain, no loss above the margin, a loss, or nothing yet."""
STATUSES: tuple[Status, ...] = ("recommended", "keep_default", "unproven", "unguarded")
_OF_A_PROOF = (
    "margin", "held_out_lo", "held_out_hi", "held_out_shows", "pruned_unclear", "not_pruned",
    "next_step",
)  # fmt: skip
_LISTS = ("pruned", "warnings", "pruned_unclear", "not_pruned")


@dataclass(frozen=True)
class ProgramEvidence:
    """The setting against the default on one program, from interleaved pairs.

    ``gain`` = T_default / T - 1 with the ends of its 95 % interval, which holds at all looks
    together; None while open.  ``verdict`` is a :data:`Verdict`.  ``held_out``: the program had no
    part in choosing the setting.  ``study``: ID of the study with the raw runs.
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
    checks: dict[str, Any] | None = None
    """What was checked of the results (:func:`autotune.study.output_check.result_checks`); None if
    it is not known.
    """


def evidence_checks(rows: Sequence[ProgramEvidence]) -> str:
    """On how many programs the results were verified and compared, in words; "" if not known."""
    known = [row.checks for row in rows if row.checks is not None]
    if not known:
        return ""
    verified = sum(checks["verified"] is not None for checks in known)
    equal = [checks["output"] for checks in known if checks["output"] is not None]
    same = sum(output["compared"] and output["lines"] > 0 for output in equal)
    said = "results were not checked"
    if verified:
        said = f"results verified on {verified} of {count(len(rows), 'program')}"
    return f"{said}; output lines compared on {same}"


@dataclass(frozen=True)
class ClasswideResult:
    """``setting`` is the setting to make the default; {} where ``status`` is "keep_default".

    ``machine`` is a fingerprint, as :attr:`runner.machine.Machine.fingerprint`.  ``method`` is
    "anova", "direct" or "default".  ``gain`` is the mean over the programs of the class with the
    ends of its 95 % interval, ``held_out_gain`` the mean over those held out; None without proof.
    ``margin``: each program was tested not to be slower by more than this share (0.02: 2 %); None
    without a proof.
    ``held_out_shows`` is a :data:`HeldOut`.

    ``pruned``: parameters that were removed.  Those also in ``pruned_unclear`` were not shown to
    cost less than the margin; the others were.  ``not_pruned``: parameters that stayed without
    being shown to act.  ``next_step`` says what would decide an open proof.  ``scores`` are the
    rows of the choice (see docs/explanation/anova.md), ``warnings`` notes on it.
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
    warnings: tuple[Note, ...] = field(default_factory=tuple)
    margin: float | None = None
    held_out_lo: float | None = None
    held_out_hi: float | None = None
    held_out_shows: HeldOut | None = None
    pruned_unclear: tuple[str, ...] = ()
    not_pruned: tuple[str, ...] = ()
    next_step: str = ""

    @property
    def id(self) -> str:
        """12 hexadecimal digits over the whole content: the ID of ``classwide:ID``."""
        return content_id(self._content())

    @property
    def proven(self) -> bool:
        """Whether every program was shown not to be slower by more than the margin."""
        return self.status == "recommended"

    def _content(self) -> dict[str, Any]:
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        if self.margin is None:
            plain = {name: value for name, value in plain.items() if name not in _OF_A_PROOF}
        plain["setting"] = self.setting.to_json()
        plain["evidence"] = [dataclasses.asdict(row) for row in self.evidence]
        plain["warnings"] = [note.to_json() for note in self.warnings]
        for name in _LISTS:
            if name in plain:
                plain[name] = list(plain[name])
        plain["scores"] = [dict(row) for row in self.scores]
        return {"schema": SCHEMA, **all_finite(plain)}

    def to_json(self) -> dict[str, Any]:
        """JSON types only, with the ``id``."""
        return {**self._content(), "id": self.id}


def _parse(data: dict[str, Any]) -> ClasswideResult:
    if data["status"] not in STATUSES:
        raise ValueError(f"status is {data['status']!r}, expected {', '.join(STATUSES)}")
    for name in data["setting"]:
        check_name(str(name), "its setting")
    for key in ("space", "cluster"):
        if names_path(data[key]):
            raise ValueError(f"{key} is {data[key]!r:.80}: a path, not a name")
    if data["status"] == "recommended" and data.get("margin") is None:
        raise ValueError("it is recommended, and no margin was shown")
    evidence = tuple(ProgramEvidence(**row) for row in data["evidence"])
    if data.get("held_out_shows") not in (None, *typing.get_args(HeldOut)):
        raise ValueError(f"held_out_shows is {data['held_out_shows']!r}")
    listed = ("pruned", "warnings", "scores", *(name for name in _LISTS if name in data))
    lists = {name: tuple(data[name]) for name in listed}
    lists["warnings"] = tuple(map(Note.from_json, data["warnings"]))
    return ClasswideResult(
        **data | lists | {"setting": Setting(data["setting"]), "evidence": evidence}
    )


RESULTS = ArtifactStore("classwide", "class-wide result", SCHEMA, _parse)
"""The artifact store of all class-wide results."""
