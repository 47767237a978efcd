"""The profile of a traced run: its communication time by kind of call.

A row holds the calls of one operation, size class, communicator size and partner scope. All times
are in seconds, and all figures are means over the ranks of the run unless stated otherwise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from runner.trace.checks import EntryChecks
from runner.trace.compute import communication_ns
from runner.trace.counts import OPERATIONS, RankCounts, RowKind
from runner.trace.schema import SIZE_BINS

_SLACK = 1e-9


@dataclass(frozen=True)
class ProfileRow:
    """The calls of one kind.

    ``operation`` is one of counts.OPERATIONS, ``size_bin`` a bin of schema.SIZE_BINS. ``comm_size``
    is 0 if no communicator matters (``send``, ``recv``, ``wait``, ``rma``, ``other``). ``far``: the
    receiver, or a part of the communicator, is on another node.

    ``calls``, ``bytes`` and ``seconds`` are means over all ranks. ``bytes`` of ``wait`` is the
    number of requests handed to its calls. The calls of ``send`` are messages; the time of a call
    without a message (to MPI_PROC_NULL, or the start of persistent requests) is in a row of size 0,
    and persistent messages have no time. ``least_seconds`` is the smallest time of a rank that made
    such calls: the time without waiting for others. ``rank_share`` is the share of the ranks (above
    0, at most 1) that made such calls.
    """

    operation: str
    nonblocking: bool
    size_bin: int
    comm_size: int
    far: bool
    calls: float
    bytes: float
    seconds: float
    least_seconds: float
    rank_share: float = 1.0

    @property
    def kind(self) -> RowKind:
        """The key of the row, unique in the profile."""
        return RowKind(self.operation, self.nonblocking, self.size_bin, self.comm_size, self.far)

    @property
    def waiting_s(self) -> float:
        """Seconds beyond the rank with the least time, mean over all ranks; only for this row.

        Rows with calls of different ranks cannot be added: use Profile.waiting for an operation.
        """
        return max(self.seconds - self.rank_share * self.least_seconds, 0.0)


@dataclass(frozen=True)
class Profile:
    """The profile of one run.

    ``rows`` have distinct kinds. ``compute_s`` is the time from Init to Finalize outside of MPI
    calls. ``waiting`` maps each operation of the rows to the seconds beyond the calling rank that
    spent the least in it. Both are means over all ranks.
    """

    rows: tuple[ProfileRow, ...]
    compute_s: float
    waiting: dict[str, float]

    @property
    def communication_s(self) -> float:
        """Seconds in MPI calls; with several threads in MPI it may exceed the run's time."""
        return sum(row.seconds for row in self.rows)

    @property
    def waiting_s(self) -> float:
        """Seconds of waiting for other ranks in all operations."""
        return sum(self.waiting.values())

    def seconds(self, operation: str) -> float:
        """Seconds in the calls of an operation; 0 if it was not called."""
        return sum(row.seconds for row in self.rows if row.operation == operation)

    def to_json(self) -> dict[str, Any]:
        """The profile as JSON types."""
        return {
            "compute_s": self.compute_s,
            "waiting": dict(self.waiting),
            "rows": [dataclasses.asdict(row) for row in self.rows],
        }


def profile_of(ranks: Sequence[RankCounts]) -> Profile:
    """The profile of a run from the counts of all its ranks; rows in the order of the operations.

    There must be at least one rank.
    """
    kinds = sorted(
        {kind for rank in ranks for kind in rank.rows},
        key=lambda kind: (OPERATIONS.index(kind.operation), kind),
    )
    return Profile(
        rows=tuple(_row(kind, ranks) for kind in kinds),
        compute_s=sum(rank.wall_ns - communication_ns(rank) for rank in ranks) / len(ranks) / 1e9,
        waiting={name: _waiting(name, ranks) for name in dict.fromkeys(k.operation for k in kinds)},
    )


def _row(kind: RowKind, ranks: Sequence[RankCounts]) -> ProfileRow:
    sums = [rank.rows[kind] for rank in ranks if kind in rank.rows]
    return ProfileRow(
        *kind,
        calls=sum(one.calls for one in sums) / len(ranks),
        bytes=sum(one.bytes for one in sums) / len(ranks),
        seconds=sum(one.ns for one in sums) / len(ranks) / 1e9,
        least_seconds=min(one.ns for one in sums) / 1e9,
        rank_share=len(sums) / len(ranks),
    )


def _waiting(operation: str, ranks: Sequence[RankCounts]) -> float:
    """Computed over all rows of the operation, because ranks' calls may fall into different
    rows."""
    times_ns = [
        sum(sums.ns for kind, sums in rank.rows.items() if kind.operation == operation)
        for rank in ranks
        if any(kind.operation == operation for kind in rank.rows)
    ]
    return (sum(times_ns) - len(times_ns) * min(times_ns)) / len(ranks) / 1e9


_KEYS = ("compute_s", "waiting", "rows")
_ROW_KEYS = tuple(field.name for field in dataclasses.fields(ProfileRow))


def profile_from_json(data: Any, check: EntryChecks) -> Profile:
    """The profile in a features file; raises FeaturesError with file and key if it is invalid."""
    raw = check.mapping("profile", data)
    check.keys("profile", raw, _KEYS)
    rows: dict[RowKind, ProfileRow] = {}
    for at, one in enumerate(check.elements("profile.rows", raw["rows"])):
        row = _row_from_json(f"profile.rows[{at}]", one, check)
        if row.kind in rows:
            check.fail(f"profile.rows[{at}]", tuple(row.kind), "one row of each kind")
        rows[row.kind] = row
    return Profile(
        rows=tuple(rows.values()),
        compute_s=check.number("profile.compute_s", raw["compute_s"]),
        waiting=_waiting_from_json(raw["waiting"], rows.values(), check),
    )


def _row_from_json(key: str, data: Any, check: EntryChecks) -> ProfileRow:
    raw = check.mapping(key, data)
    check.keys(key, raw, _ROW_KEYS)
    row = ProfileRow(
        operation=check.one_of(f"{key}.operation", raw["operation"], OPERATIONS),
        nonblocking=check.truth(f"{key}.nonblocking", raw["nonblocking"]),
        size_bin=check.whole(f"{key}.size_bin", raw["size_bin"], SIZE_BINS - 1),
        comm_size=check.whole(f"{key}.comm_size", raw["comm_size"]),
        far=check.truth(f"{key}.far", raw["far"]),
        **{
            name: check.number(f"{key}.{name}", raw[name])
            for name in ("calls", "bytes", "seconds", "least_seconds", "rank_share")
        },
    )
    if not 0 < row.rank_share <= 1:
        check.fail(f"{key}.rank_share", row.rank_share, "a number above 0, at most 1")
    most = row.seconds / row.rank_share
    if row.least_seconds > most * (1 + _SLACK) + _SLACK:
        check.fail(f"{key}.least_seconds", row.least_seconds, f"{most:g} (the mean) at most")
    return row


def _waiting_from_json(
    data: Any, rows: Iterable[ProfileRow], check: EntryChecks
) -> dict[str, float]:
    raw = check.mapping("profile.waiting", data)
    seconds: dict[str, float] = {}
    for row in rows:
        seconds[row.operation] = seconds.get(row.operation, 0.0) + row.seconds
    check.keys("profile.waiting", raw, seconds)
    waiting = {}
    for name, most in seconds.items():
        key = f"profile.waiting.{name}"
        waiting[name] = check.number(key, raw[name])
        if waiting[name] > most * (1 + _SLACK) + _SLACK:
            check.fail(key, waiting[name], f"{most:g} (the seconds of its rows) at most")
    return waiting
