"""Tables that were found, with their evidence: JSON files, one each, as class-wide results are."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.anova.result import results_folder
from autotune.collectives.candidates import OPERATIONS
from autotune.collectives.prove import SizeEvidence
from autotune.errors import UsageError
from autotune.publish.content import Rule

SCHEMA = "autotune-collectives-1"
_ID = re.compile(r"[0-9a-f]{4,16}")


@dataclass(frozen=True)
class Part:
    """One operation on one number of ranks.

    ``rules`` is what stands, ``evidence`` the proof of what was found, ``points`` how many
    measurements of a candidate at a size the search took of the ``grid``'s, ``launches`` how often
    the program was started, for search and proof.
    """

    operation: str
    ranks: int
    rules: tuple[Rule, ...]
    evidence: tuple[SizeEvidence, ...]
    points: int
    grid: int
    launches: int
    check: tuple[str, ...]

    @property
    def proven(self) -> bool:
        """Whether any rule of it leaves the library's own choice."""
        return any(rule.algorithm != "0" for rule in self.rules)


@dataclass(frozen=True)
class CollectiveResult:
    """Tables of a cluster; ``algorithms`` maps an operation's numbers to their names."""

    cluster: str
    machine: str
    mpi: dict[str, str]
    date: str
    parts: tuple[Part, ...]
    algorithms: dict[str, dict[str, str]]

    @property
    def id(self) -> str:
        """12 hexadecimal digits over the whole content."""
        return hashlib.sha256(json.dumps(self._content(), sort_keys=True).encode()).hexdigest()[:12]

    @property
    def proven(self) -> bool:
        return any(part.proven for part in self.parts)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What goes into a file: for more ranks than were measured the library decides."""
        found: list[Rule] = []
        for operation in dict.fromkeys(part.operation for part in self.parts):
            own = [part for part in self.parts if part.operation == operation]
            if not any(part.proven for part in own):
                continue
            for part in own:
                found += part.rules
            found.append(Rule(operation, max(part.ranks for part in own) + 1, 0, "0"))
        return tuple(found)

    def algorithm(self, part: Part, size: int) -> str:
        """What stands in the table at a size, by name; "-" where the library decides."""
        whole = part.ranks if OPERATIONS[part.operation] else 1
        rule = [r for r in part.rules if r.message <= size * whole][-1]
        if rule.algorithm == "0":
            return "-"
        name = self.algorithms[part.operation].get(rule.algorithm, rule.algorithm)
        segment = f" {rule.segment // 1024}k" if rule.segment else ""
        return f"{name}{segment}" + (f" x{rule.fanout}" if rule.fanout else "")

    def _content(self) -> dict[str, Any]:
        plain = dataclasses.asdict(self)
        return {"schema": SCHEMA, **json.loads(json.dumps(plain))}

    def to_json(self) -> dict[str, Any]:
        """JSON types only, with the ``id``."""
        return {**self._content(), "id": self.id}

    @classmethod
    def from_json(cls, data: Any, origin: str) -> CollectiveResult:
        """Inverse of :meth:`to_json`; raises UsageError for anything else, or altered content."""
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise UsageError(
                f"{origin} is no table of collectives (schema {SCHEMA!r}); make one with autotune "
                "collectives"
            )
        try:
            parts = tuple(
                Part(
                    **part
                    | {
                        "rules": tuple(Rule(**rule) for rule in part["rules"]),
                        "evidence": tuple(SizeEvidence(**row) for row in part["evidence"]),
                        "check": tuple(part["check"]),
                    }
                )
                for part in data["parts"]
            )
            values = {k: v for k, v in data.items() if k not in ("schema", "id", "parts")}
            result = cls(**values, parts=parts)
        except (KeyError, TypeError, AttributeError) as problem:
            raise UsageError(
                f"{origin}: damaged or incomplete ({problem}); make it again"
            ) from None
        if data.get("id") != result.id:
            raise UsageError(
                f"{origin}: its content does not belong to its id {data.get('id')!r}: it was "
                "changed by hand or cut off; make it again with autotune collectives"
            )
        return result


def folder() -> Path:
    """Where tables are kept."""
    return results_folder().parent / "collectives"


def save(result: CollectiveResult) -> Path:
    """Write it, whole or not at all; raises UsageError where that cannot be."""
    path = folder() / f"{result.id}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps(result.to_json(), indent=2) + "\n")
        Path(name).replace(path)
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror}") from None
    return path


def read(path: Path) -> CollectiveResult:
    """A table from a file; raises UsageError for one that cannot be read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise UsageError(f"cannot read the table of collectives {path}: {problem}") from None
    return CollectiveResult.from_json(data, str(path))


def find(wanted: str) -> CollectiveResult:
    """The table whose id begins with ``wanted``; raises UsageError where none or several do."""
    if not _ID.fullmatch(wanted):
        raise UsageError(
            f"collectives:{wanted} is no id of a table; expected 4 to 12 of the digits that "
            f"autotune collectives printed (kept in {folder()})"
        )
    there = sorted(folder().glob("*.json"))
    fitting = [p for p in there if p.stem.startswith(wanted)]
    if len(fitting) != 1:
        words = "none begins so" if not fitting else f"{len(fitting)} begin so"
        have = ", ".join(p.stem for p in there[-8:]) or "none yet"
        raise UsageError(f"collectives:{wanted}: {words} in {folder()}; there are: {have}")
    return read(fitting[0])


def latest(cluster: str) -> CollectiveResult | None:
    """The newest table of a cluster."""
    found = [r for r in map(read, sorted(folder().glob("*.json"))) if r.cluster == cluster]
    return max(found, key=lambda r: (r.date, r.id), default=None)
