"""The class-wide result: one setting for a class of programs with its evidence.

``autotune publish`` publishes such results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, computed_field

from autotune.artifacts import ArtifactStore, content_id
from autotune.document import Omitted, from_json, to_json
from autotune.json_types import Number
from autotune.measurement.result_checks import Checks
from autotune.names import names_path
from autotune.notes import Note
from autotune.space.outside_names import check_name
from autotune.space.setting import SettingValues
from autotune.targets.rows import MpiChoiceRow
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
_OF_A_PROOF = (
    "margin", "held_out_lo", "held_out_hi", "held_out_shows", "pruned_unclear", "not_pruned",
    "next_step",
)  # fmt: skip
_OF_PROOFS = Field(exclude_if=lambda _: False)
"""Marks those fields: without a proof they are left out."""


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
    gain: Number | None
    lo: Number | None
    hi: Number | None
    pairs: int
    verdict: str
    words: str
    study: str
    checks: Checks = None


@dataclass(frozen=True)
class OwnSetting:
    """The setting of one program that obeys a rule in words of layouts; {} is the default."""

    app: str
    input: str | None
    ranks: int
    setting: SettingValues


def evidence_checks(rows: Sequence[ProgramEvidence]) -> str:
    """On how many programs the results were verified and compared, in words; "" if not known."""
    checks_of_rows = [row.checks for row in rows if row.checks is not None]
    if not checks_of_rows:
        return ""
    verified_count = sum(checks["verified"] is not None for checks in checks_of_rows)
    equal = [checks["output"] for checks in checks_of_rows if checks["output"] is not None]
    same = sum(output["compared"] and output["lines"] > 0 for output in equal)
    text = "results were not checked"
    if verified_count:
        text = f"results verified on {verified_count} of {count(len(rows), 'program')}"
    return f"{text}; output lines compared on {same}"


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

    schema_: Annotated[Literal["autotune-classwide-1"], Field(alias="schema")] = field(
        default="autotune-classwide-1", kw_only=True
    )
    status: Status
    setting: SettingValues
    """Values by parameter; {} is the default."""
    cluster: str
    machine: str
    mpi: dict[str, str]
    space: str
    date: str
    method: str
    source: str
    gain: Number | None = None
    lo: Number | None = None
    hi: Number | None = None
    held_out_gain: Number | None = None
    evidence: tuple[ProgramEvidence, ...] = ()
    pruned: tuple[str, ...] = ()
    why: str = ""
    scores: tuple[dict[str, Any], ...] = ()
    warnings: tuple[Note, ...] = field(default_factory=tuple)
    margin: Omitted[Number] = None
    held_out_lo: Annotated[Number | None, _OF_PROOFS] = None
    held_out_hi: Annotated[Number | None, _OF_PROOFS] = None
    held_out_shows: Annotated[HeldOut | None, _OF_PROOFS] = None
    pruned_unclear: Annotated[tuple[str, ...], _OF_PROOFS] = ()
    not_pruned: Annotated[tuple[str, ...], _OF_PROOFS] = ()
    next_step: Annotated[str, _OF_PROOFS] = ""
    mpi_choice: Omitted[MpiChoiceRow] = None
    """Why this MPI library was taken."""
    programs: Omitted[tuple[OwnSetting, ...]] = None
    """Each program's own setting, if ``setting`` is a rule in words of layouts."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def id(self) -> str:
        """12 hexadecimal digits over the whole content but ``mpi_choice``: the ID of
        ``classwide:ID``."""
        return content_id(self._content("id", "mpi_choice"))

    @property
    def proven(self) -> bool:
        """True if every program was shown not to be slower by more than the margin."""
        return self.status == "recommended"

    def _content(self, *without: str) -> dict[str, Any]:
        unsaid = _OF_A_PROOF if self.margin is None else ()
        return dict(all_finite(to_json(self, *unsaid, *without)))

    def to_json(self) -> dict[str, Any]:
        """JSON types only, with the ``id``; without a proof, without what a proof shows."""
        return self._content()


def _parse(data: dict[str, Any]) -> ClasswideResult:
    for name in data["setting"]:
        check_name(str(name), "its setting")
    for key in ("space", "cluster"):
        if names_path(data[key]):
            raise ValueError(f"{key} is {data[key]!r:.80}: a path, not a name")
    if missing := {"evidence", "pruned", "scores", "warnings"} - data.keys():
        raise KeyError(*sorted(missing))
    if data["status"] == "recommended" and data.get("margin") is None:
        raise ValueError("it is recommended, and no margin was shown")
    return from_json(ClasswideResult, data)


RESULTS = ArtifactStore("classwide", "class-wide result", SCHEMA, _parse)
"""The artifact store of all class-wide results."""
