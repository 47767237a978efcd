"""A picture of ranks, threads and cores: a row for each rank, a column for each core."""

from __future__ import annotations

from collections.abc import Iterable

from autotune.api.launch_check import CheckedLaunch, RankPlacement
from runner.cpus import cpus_of

_MOST_RANKS = 16
_MOST_COLUMNS = 48


def rank_picture(launch: CheckedLaunch) -> list[str]:
    """The lines of the picture; empty if no rank was seen.

    ``#`` is a CPU of the rank, ``-`` one to which no thread of it is bound though the rank may use
    it, ``.`` a CPU of others. On large nodes a column stands for several CPUs.
    """
    if not launch.ranks:
        return []
    used = frozenset().union(*(cpus_of(rank.cpus) for rank in launch.ranks))
    cpus = sorted(used | cpus_of(launch.cpus))
    width = -(-len(cpus) // _MOST_COLUMNS)
    columns = [frozenset(cpus[at : at + width]) for at in range(0, len(cpus), width)]
    each = f", {width} in each column" if width > 1 else ""
    rows = [f"  rank  CPUs {launch.cpus}{each}"]
    rows += [_row(rank, columns) for rank in launch.ranks[:_MOST_RANKS]]
    rest = len(launch.ranks) - _MOST_RANKS
    return [*rows, f"  ... and {rest} more"] if rest > 0 else rows


def _row(rank: RankPlacement, columns: Iterable[frozenset[int]]) -> str:
    cpus = cpus_of(rank.cpus)
    threads = frozenset().union(*(cpus_of(text) for text in rank.threads)) or cpus
    cells = "".join(
        "#" if column & threads else "-" if column & cpus else "." for column in columns
    )
    number = max(1, len(rank.threads))
    word = "thread" if number == 1 else "threads"
    return f"  {rank.rank:>4}  {cells}  {number} {word}"
