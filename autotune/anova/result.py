"""One setting for a class of programs with its evidence: what ``autotune publish`` may rely on.

Results are JSON files, one each, in ``$XDG_DATA_HOME/autotune/classwide``: they are small, made
rarely, and carried to other machines by people.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from autotune.errors import UsageError
from autotune.space import Setting

SCHEMA = "autotune-classwide-1"
Status = Literal["recommended", "keep_default", "unproven"]
"""``recommended``: proven by interleaved runs.  ``keep_default``: nothing was proven, or there was
nothing to prove.  ``unproven``: chosen from recorded runs only; must not become anyone's default.
"""
STATUSES: tuple[Status, ...] = ("recommended", "keep_default", "unproven")
_ID = re.compile(r"[0-9a-f]{4,16}")


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
        text = json.dumps(self._content(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

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

    @classmethod
    def from_json(cls, data: dict[str, Any], origin: str = "the result") -> ClasswideResult:
        """Inverse of :meth:`to_json`; ``origin`` names the file in messages.

        Raises UsageError for another schema, a missing or unknown key, or an altered content.
        """
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            found = data.get("schema") if isinstance(data, dict) else None
            raise UsageError(
                f"{origin}: schema is {found!r}, expected {SCHEMA!r}: not a class-wide result, "
                "or one of another version of autotune; make it again with autotune classwide"
            )
        plain = {k: v for k, v in data.items() if k not in ("schema", "id")}
        try:
            plain["setting"] = Setting(plain["setting"])
            plain["evidence"] = tuple(ProgramEvidence(**row) for row in plain["evidence"])
            for name in ("pruned", "warnings", "scores"):
                plain[name] = tuple(plain[name])
            result = cls(**plain)
            own = result.id
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as problem:
            raise UsageError(
                f"{origin}: damaged or incomplete ({problem}); make it again with autotune "
                "classwide"
            ) from None
        if result.status not in STATUSES:
            raise UsageError(
                f"{origin}: status is {result.status!r}, expected {', '.join(STATUSES)}"
            )
        if data.get("id") != own:
            raise UsageError(
                f"{origin}: its content does not belong to its id {data.get('id')!r}: it was "
                "changed by hand or cut off; make it again with autotune classwide"
            )
        return result


def results_folder() -> Path:
    """Where class-wide results are kept."""
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    if not base.is_absolute():
        base = Path.home() / ".local" / "share"
    return base / "autotune" / "classwide"


def save_result(result: ClasswideResult, folder: Path | None = None) -> Path:
    """Write the result, whole or not at all; raises UsageError where that cannot be."""
    place = folder or results_folder()
    text = json.dumps(result.to_json(), indent=2) + "\n"
    path = place / f"{result.id}.json"
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place, prefix=".new.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror}") from None
    return path


def read_result(path: Path) -> ClasswideResult:
    """A result from a file; raises UsageError for one that cannot be read or is damaged."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise UsageError(f"cannot read the class-wide result {path}: {problem}") from None
    return ClasswideResult.from_json(data, str(path))


def find_result(wanted: str, folder: Path | None = None) -> ClasswideResult:
    """The result whose id begins with ``wanted`` (4 hexadecimal digits at least).

    Raises UsageError, listing what there is, where none or several fit.
    """
    place = folder or results_folder()
    if not _ID.fullmatch(wanted):
        raise UsageError(
            f"classwide:{wanted} is no id of a class-wide result; expected 4 to 12 of the digits "
            f"that autotune classwide printed (kept in {place})"
        )
    there = sorted(p for p in place.glob("*.json"))
    fitting = [p for p in there if p.stem.startswith(wanted)]
    if len(fitting) != 1:
        words = "none begins so" if not fitting else f"{len(fitting)} begin so"
        have = ", ".join(p.stem for p in there[-8:]) or "none yet"
        raise UsageError(f"classwide:{wanted}: {words} in {place}; there are: {have}")
    return read_result(fitting[0])


def latest_result(
    cluster: str, folder: Path | None = None, *, proven: bool = True
) -> ClasswideResult | None:
    """The newest result for a cluster, only proven ones unless told otherwise; None for none."""
    place = folder or results_folder()
    found = [read_result(path) for path in sorted(place.glob("*.json"))]
    fitting = [r for r in found if r.cluster == cluster and (r.proven or not proven)]
    return max(fitting, key=lambda r: (r.date, r.id), default=None)


def _finite(value: Any) -> Any:
    """JSON has no infinities: an open end is None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value
