"""A table as a rules file against the default: what is not proven leaves the table."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.collectives.candidates import Entry, as_rules
from autotune.collectives.machine import Machine, pairs
from autotune.errors import UsageError
from autotune.rules import ENABLE, FILE, check_rules, rules_text
from autotune.space import DEFAULT, Setting, Space
from autotune.space.parameter import Parameter
from autotune.stats import compare
from autotune.stats.exact import sign_rank
from runner import places

PAIRS = 12
_ALPHA = 0.05
_FILE_SPACE = "rules file"


@dataclass(frozen=True)
class SizeEvidence:
    """The table against the default at one size: gain (a fraction) with the ends of an interval
    that holds at all sizes together with 95 %; ``between``: no size that was searched at."""

    size: int
    setting: str
    gain: float
    lo: float | None
    hi: float | None
    verdict: str
    between: bool


@dataclass(frozen=True)
class Proven:
    """What of a table stands, and what was seen at each size."""

    entries: tuple[Entry, ...]
    evidence: tuple[SizeEvidence, ...]
    launches: int


def between(sizes: Sequence[int]) -> list[int]:
    """A size halfway between each two, a multiple of 8 that is no power of two."""
    return [(a + b) // 16 * 8 for a, b in itertools.pairwise(sizes) if b - a >= 32]


def fewest_pairs(sizes: Sequence[int]) -> int:
    """Pairs without which nothing can be proven at all of the sizes together, however clear."""
    alpha = _ALPHA / len({*sizes, *between(sizes)})
    return next(n for n in itertools.count(6) if sign_rank(n, alpha / 2))


def at(entries: Sequence[Entry], size: int) -> Setting:
    """What the table says for one size."""
    return next((e.setting for e in reversed(entries) if e.size <= size), DEFAULT)


def prove(
    machine: Machine, entries: Sequence[Entry], sizes: Sequence[int], count: int = PAIRS
) -> Proven:
    """Run the table as a file, interleaved with the default, at all sizes and between them.

    An entry stays where it is proven faster at half of its sizes at least and slower at none.
    Raises WorkError where it does not run.
    """
    extra = between(sizes)
    every = sorted({*sizes, *extra})
    path = write_rules(machine, entries, _folder())
    runner = dataclasses.replace(machine, space=_with_file(str(path)), launches=0)
    seen = pairs(runner, Setting({FILE: str(path)}), every, max(count, fewest_pairs(sizes)))
    rows = []
    for size in every:
        found = compare(*seen[size], alpha=_ALPHA / len(every), min_gain=0.0)
        rows.append(
            SizeEvidence(
                size,
                at(entries, size).key,
                found.gain,
                found.lo if found.interval else None,
                found.hi if found.interval else None,
                _verdict(found.lo, found.hi) if found.interval else "open",
                size in extra,
            )
        )
    kept = [_kept(entry, entries, rows) for entry in entries]
    return Proven(_merged(kept), tuple(rows), runner.launches)


def _verdict(low: float, high: float) -> str:
    return "better" if low > 0 else "worse" if high < 0 else "open"


def _kept(entry: Entry, entries: Sequence[Entry], rows: Sequence[SizeEvidence]) -> Entry:
    later = [e.size for e in entries if e.size > entry.size]
    end = min(later) if later else float("inf")
    own = [row for row in rows if entry.size <= row.size < end]
    better = sum(row.verdict == "better" for row in own)
    worse = any(row.verdict == "worse" for row in own)
    if entry.setting != DEFAULT and (worse or 2 * better < len(own)):
        return Entry(entry.size, DEFAULT)
    return entry


def _merged(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Without entries that say what the one before says."""
    found: list[Entry] = []
    for entry in entries:
        if not found or found[-1].setting != entry.setting:
            found.append(entry)
    return tuple(found)


def _folder() -> Path:
    """Where tables lie while they are proven."""
    return places.cache("collectives")


def write_rules(machine: Machine, entries: Sequence[Entry], place: Path) -> Path:
    """The table as a rules file that every Open MPI up to 5 reads.

    The same table has the same name, since the name is part of what the runs are stored under.
    Raises UsageError where it cannot be written.
    """
    rules = tuple(as_rules(machine.space, machine.operation, machine.target.ranks, list(entries)))
    check_rules(rules, machine.target.library)
    text = rules_text(rules)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    path = place / f"{machine.operation}-{machine.target.ranks}-{digest}.rules"
    try:
        place.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror}") from None
    return path


def _with_file(path: str) -> Space:
    """A space of one parameter: the rules file."""
    parameter = Parameter(FILE, (path,), "mca", implies={ENABLE: 1})
    return Space(_FILE_SPACE, (parameter,))
