"""The layout of a job over processes, workers and ranks, checked before the job starts.

The parts are the configuration, the rank map (which process holds which ranks), and the
configuration as command-line switches.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.files import read_user_file
from runner.files.json_text import parse_json
from runner.runtimes.mate.errors import ConfigError

AFFINITIES = ("compact", "scatter", "none")
THREAD_LEVELS = ("multiple", "serialized")
CORES = ("native", "python")
QUEUES = ("home", "fixed", "shared")
STEALS = ("process", "node")
Grid = tuple[int, int, int]


@dataclass(frozen=True)
class Config:
    """The configuration of a job; the launcher alone sets the number of processes.

    Times are in microseconds. Raises :class:`ConfigError` that names the switch if a value is
    impossible.
    """

    workers: int = 1
    ranks_per_process: int = 0
    """Ranks of a process; 0 means one rank per worker, and is replaced by that number."""
    local_grid: Grid | None = None
    """How the ranks of a process divide its grid: parts along x, y, z."""
    block_size: int = 64
    split: int = 1
    in_process: bool = False
    affinity: str = "compact"
    idle_spin_us: int = 200
    idle_sleep_us: int = 3000
    thread_level: str = "multiple"
    core: str = "native"
    """``native``: compiled code schedules; ``python``: Python code does, and all regions are Python
    functions."""
    queue: str = "home"
    """How ready ranks wait (native core): each at its home worker, with stealing by idle workers
    (``home``) or without (``fixed``), or all in one queue (``shared``)."""
    steal: str = "process"
    """Whose ranks an idle worker runs (native core): those of its own process, or also compiled
    regions of other processes on its node (``node``), whose arrays lie in an arena."""
    rank_map: tuple[tuple[int, ...], ...] | None = None
    schedule_seed: int | None = None
    time_line: str | None = None
    """The file for the time line of the run; None: none is recorded."""

    def __post_init__(self) -> None:
        self._at_least("--workers", self.workers, 1)
        if self.local_grid is not None and (len(self.local_grid) != 3 or min(self.local_grid) < 1):
            text = "x".join(map(str, self.local_grid))
            raise ConfigError(
                f"--local-grid {text}: expected three numbers of 1 or more, such as 1x8x4",
                code="mate.option",
            )
        if self.ranks_per_process == 0:
            object.__setattr__(self, "ranks_per_process", self._default_ranks())
        self._at_least("--ranks-per-process", self.ranks_per_process, 1)
        if self.ranks_per_process > MAX_LOCAL_RANKS:
            raise ConfigError(
                f"--ranks-per-process {self.ranks_per_process}: at most {MAX_LOCAL_RANKS}",
                code="mate.option",
            )
        self._at_least("--block-size", self.block_size, 1)
        self._at_least("--split", self.split, 1)
        self._at_least("--idle", self.idle_spin_us, 0)
        self._at_least("--idle", self.idle_sleep_us, 0)
        self._one_of("--affinity", self.affinity, AFFINITIES)
        self._one_of("--thread-level", self.thread_level, THREAD_LEVELS)
        self._one_of("--core", self.core, CORES)
        self._one_of("--queue", self.queue, QUEUES)
        self._one_of("--steal", self.steal, STEALS)
        if self.steal == "node" and self.core != "native":
            raise ConfigError(
                "--steal node: workers of other processes run compiled regions only, so it needs "
                "--core native",
                code="mate.option",
            )
        if self.steal == "node" and self.queue == "fixed":
            raise ConfigError(
                "--steal node and --queue fixed (no stealing) exclude each other: leave one out",
                code="mate.option",
            )
        if self.local_grid is not None:
            self._check_local_grid(self.local_grid)
        if self.rank_map is not None:
            RankMap(self.rank_map)

    def _default_ranks(self) -> int:
        return math.prod(self.local_grid) if self.local_grid else max(self.workers, 1)

    def _at_least(self, switch: str, value: int, least: int) -> None:
        if value < least:
            raise ConfigError(f"{switch} {value}: expected {least} or more", code="mate.option")

    def _one_of(self, switch: str, value: str, choices: tuple[str, ...]) -> None:
        if value not in choices:
            raise ConfigError(
                f"{switch} {value}: expected one of {', '.join(choices)}", code="mate.option"
            )

    def _check_local_grid(self, grid: Grid) -> None:
        text = "x".join(map(str, grid))
        if math.prod(grid) != self.ranks_per_process:
            raise ConfigError(
                f"--local-grid {text} makes {math.prod(grid)} ranks, but --ranks-per-process is "
                f"{self.ranks_per_process}: the product must be the number of ranks",
                code="mate.option",
            )

    @property
    def overdecomposition(self) -> float:
        """Ranks per worker."""
        return self.ranks_per_process / self.workers

    def require_useful(self) -> None:
        """Refuse a configuration that would waste cores: more workers than ranks.

        Raises :class:`ConfigError` (Martin 2018, chapter 4).
        """
        if self.rank_map is None and self.workers > self.ranks_per_process:
            raise ConfigError(
                f"--workers {self.workers} is more than --ranks-per-process "
                f"{self.ranks_per_process}: some workers would never have work; use fewer "
                "workers",
                code="mate.option",
            )

    def map_for(self, processes: int) -> RankMap:
        """The rank map of a job; raises :class:`ConfigError` if it does not fit the processes."""
        if self.rank_map is None:
            return RankMap.uniform(processes, self.ranks_per_process)
        if len(self.rank_map) != processes:
            raise ConfigError(
                f"--rank-map is for {len(self.rank_map)} processes, but {processes} were started",
                code="mate.option",
            )
        return RankMap(self.rank_map)

    def rank_extent(self, subgrid: Grid, ghost: int = 1) -> Grid:
        """Cells of one rank along x, y, z if the process has ``subgrid`` cells.

        Raises :class:`ConfigError` if there is no local grid, if it does not divide the subgrid, or
        if a rank would be thinner than the ghost layer.
        """
        if self.local_grid is None:
            raise ConfigError(
                "--local-grid is missing; expected three numbers, such as 1x8x4", code="mate.option"
            )
        cells = []
        for axis, extent, parts in zip("xyz", subgrid, self.local_grid, strict=True):
            if extent % parts:
                raise ConfigError(
                    f"--local-grid: {extent} cells of a process along {axis} cannot be cut into "
                    f"{parts} equal parts",
                    code="mate.option",
                )
            if extent // parts < ghost:
                raise ConfigError(
                    f"--local-grid: {extent} cells along {axis} in {parts} parts are thinner than "
                    f"the ghost layer of {ghost}: use fewer parts",
                    code="mate.option",
                )
            cells.append(extent // parts)
        return (cells[0], cells[1], cells[2])

    def local_coordinates(self, local: int) -> Grid:
        """Position of a local rank in the local grid (x runs fastest)."""
        if self.local_grid is None:
            raise ConfigError(
                "--local-grid is missing; expected three numbers, such as 1x8x4", code="mate.option"
            )
        x, y, _ = self.local_grid
        return (local % x, local // x % y, local // (x * y))


MAX_LOCAL_RANKS = 4096
"""Largest number of ranks per process; the original has 256 (Martin 2018, chapter 4)."""


class RankMap:
    """A partition of the global ranks 0..size-1 over the processes, in any order and size."""

    def __init__(self, ranks: Sequence[Sequence[int]]) -> None:
        self.ranks = tuple(tuple(r) for r in ranks)
        """The global ranks of each process, in the order of their local ids."""
        flat = [rank for process in self.ranks for rank in process]
        if sorted(flat) != list(range(len(flat))):
            raise ConfigError(
                "--rank-map: every global rank from 0 on must be named exactly once; "
                f"got {sorted(flat)}",
                code="mate.option",
            )
        for number, process in enumerate(self.ranks):
            if not 1 <= len(process) <= MAX_LOCAL_RANKS:
                raise ConfigError(
                    f"--rank-map: process {number} has {len(process)} ranks; expected 1 to "
                    f"{MAX_LOCAL_RANKS}",
                    code="mate.option",
                )
        self.order = flat
        """Global ranks in the order of processes and local ids."""
        self.locations = [(0, 0)] * len(flat)
        """(process, local id) of each global rank."""
        for number, process in enumerate(self.ranks):
            for local, rank in enumerate(process):
                self.locations[rank] = (number, local)

    @classmethod
    def uniform(cls, processes: int, per_process: int) -> RankMap:
        """The map with global rank = process * per_process + local id."""
        starts = range(0, processes * per_process, per_process)
        return cls([range(start, start + per_process) for start in starts])

    @property
    def size(self) -> int:
        return len(self.order)

    @property
    def largest(self) -> int:
        """Number of ranks of the largest process."""
        return max(len(process) for process in self.ranks)


_MOST_BYTES = 64 << 20
"""Limit for a file with a rank map."""
_DEFAULT = Config()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the switches of the runtime in a separate group."""
    group = parser.add_argument_group("MATE runtime")
    add = group.add_argument
    add("--workers", type=int, default=1, metavar="N", help="number of worker threads per process")
    add(
        "--ranks-per-process",
        type=int,
        default=0,
        metavar="M",
        help="number of (virtual) ranks per process; default: as many as workers",
    )
    add("--local-grid", metavar="XxYxZ", help="how the ranks divide the grid of a process")
    add(
        "--block-size",
        type=int,
        default=_DEFAULT.block_size,
        help="cache block of the kernels, in cells",
    )
    add("--split", type=int, default=1, metavar="N", help="number of pieces of each message")
    add(
        "--in-process",
        action="store_true",
        help="copy messages within a process directly, without MPI",
    )
    add(
        "--affinity",
        default=_DEFAULT.affinity,
        help=f"how workers are pinned to CPUs: {', '.join(AFFINITIES)}",
    )
    idle = f"{_DEFAULT.idle_spin_us}:{_DEFAULT.idle_sleep_us}"
    add(
        "--idle",
        default=idle,
        metavar="SPIN:SLEEP",
        help="time that an idle worker spins and then sleeps, in microseconds; a SLEEP of 0 "
        "never sleeps",
    )
    add(
        "--thread-level",
        default=_DEFAULT.thread_level,
        help=f"thread level asked of MPI: {', '.join(THREAD_LEVELS)}",
    )
    add(
        "--core",
        default=_DEFAULT.core,
        help=f"who schedules: {', '.join(CORES)}; python also runs compiled regions as Python "
        "functions",
    )
    add(
        "--queue",
        default=_DEFAULT.queue,
        help="where ready ranks wait: home (each at its own worker, others may steal), fixed (no "
        "stealing), shared (one queue)",
    )
    add(
        "--steal",
        default=_DEFAULT.steal,
        help="whose ranks idle workers run: process (their own process's), node (also regions of "
        "other processes of the node, if the program shares its arrays)",
    )
    add("--rank-map", metavar="FILE", help="JSON file: for each process a list of global ranks")
    add(
        "--time-line",
        metavar="FILE",
        help="write when each worker ran which rank to this file (autotune mate timeline draws it)",
    )


def from_arguments(namespace: argparse.Namespace) -> Config:
    """The configuration; raises :class:`ConfigError` with the invalid switch."""
    spin, sleep = _idle(namespace.idle)
    config = Config(
        workers=namespace.workers,
        ranks_per_process=namespace.ranks_per_process,
        local_grid=None if namespace.local_grid is None else parse_grid(namespace.local_grid),
        block_size=namespace.block_size,
        split=namespace.split,
        in_process=namespace.in_process,
        affinity=namespace.affinity,
        idle_spin_us=spin,
        idle_sleep_us=sleep,
        thread_level=namespace.thread_level,
        core=namespace.core,
        queue=namespace.queue,
        steal=namespace.steal,
        rank_map=None if namespace.rank_map is None else read_rank_map(Path(namespace.rank_map)),
        time_line=namespace.time_line,
    )
    config.require_useful()
    return config


def parse_grid(text: str) -> Grid:
    """``"1x8x4"`` as numbers; raises :class:`ConfigError` for any other text."""
    parts = text.lower().split("x")
    if len(parts) != 3 or not all(p.isascii() and p.isdigit() for p in parts):
        raise ConfigError(
            f"--local-grid {text}: expected three numbers, such as 1x8x4", code="mate.option"
        )
    return (int(parts[0]), int(parts[1]), int(parts[2]))


def _idle(text: str) -> tuple[int, int]:
    parts = text.split(":")
    if len(parts) != 2 or not all(p.isascii() and p.isdigit() for p in parts):
        raise ConfigError(
            f"--idle {text}: expected microseconds as SPIN:SLEEP, for example 200:2000",
            code="mate.option",
        )
    return int(parts[0]), int(parts[1])


def read_rank_map(path: Path) -> tuple[tuple[int, ...], ...]:
    """A list of lists of numbers from a JSON file; raises :class:`ConfigError`."""
    try:
        data: Any = parse_json(read_user_file(path, _MOST_BYTES))
    except OSError as error:
        raise ConfigError(f"--rank-map {path}: {error.strerror}", code="mate.option") from None
    except ValueError as error:
        raise ConfigError(f"--rank-map {path} is not JSON: {error}", code="mate.option") from None
    if not isinstance(data, list) or not all(_ranks(p) for p in data):
        raise ConfigError(
            f"--rank-map {path}: expected a list with one list of ranks per process, such "
            "as [[0, 1, 2], [3]]",
            code="mate.option",
        )
    return tuple(tuple(process) for process in data)


def _ranks(item: Any) -> bool:
    return isinstance(item, list) and all(type(rank) is int for rank in item)
