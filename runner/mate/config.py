"""How a job is laid out over processes, workers and ranks, checked before anything starts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from runner.mate.errors import ConfigError
from runner.mate.rankmap import MAX_LOCAL_RANKS, RankMap

AFFINITIES = ("compact", "scatter", "none")
THREAD_LEVELS = ("multiple", "serialized")
Grid = tuple[int, int, int]


@dataclass(frozen=True)
class Config:
    """Everything about a job except the number of processes, which is the launcher's.

    Raises :class:`ConfigError` naming the switch if a value is impossible.  Times in microseconds.
    """

    workers: int = 1
    ranks_per_process: int = 0
    """0 stands for one rank per worker and is replaced by that number."""
    local_grid: Grid | None = None
    """How the ranks of a process cut its grid: parts along x, y, z."""
    block_size: int = 64
    split: int = 1
    in_process: bool = False
    affinity: str = "compact"
    idle_spin_us: int = 200
    idle_sleep_us: int = 3000
    thread_level: str = "multiple"
    rank_map: tuple[tuple[int, ...], ...] | None = None
    schedule_seed: int | None = None

    def __post_init__(self) -> None:
        self._at_least("--workers", self.workers, 1)
        if self.local_grid is not None and (len(self.local_grid) != 3 or min(self.local_grid) < 1):
            text = "x".join(map(str, self.local_grid))
            raise ConfigError(
                f"--local-grid {text}: expected three numbers of 1 or more, such as 1x8x4"
            )
        if self.ranks_per_process == 0:
            object.__setattr__(self, "ranks_per_process", self._default_ranks())
        self._at_least("--ranks-per-process", self.ranks_per_process, 1)
        if self.ranks_per_process > MAX_LOCAL_RANKS:
            raise ConfigError(
                f"--ranks-per-process {self.ranks_per_process}: at most {MAX_LOCAL_RANKS}"
            )
        self._at_least("--block-size", self.block_size, 1)
        self._at_least("--split", self.split, 1)
        self._at_least("--idle", self.idle_spin_us, 0)
        self._at_least("--idle", self.idle_sleep_us, 0)
        self._one_of("--affinity", self.affinity, AFFINITIES)
        self._one_of("--thread-level", self.thread_level, THREAD_LEVELS)
        if self.local_grid is not None:
            self._check_local_grid(self.local_grid)
        if self.rank_map is not None:
            RankMap(self.rank_map)

    def _default_ranks(self) -> int:
        return math.prod(self.local_grid) if self.local_grid else max(self.workers, 1)

    def _at_least(self, switch: str, value: int, least: int) -> None:
        if value < least:
            raise ConfigError(f"{switch} {value}: expected {least} or more")

    def _one_of(self, switch: str, value: str, choices: tuple[str, ...]) -> None:
        if value not in choices:
            raise ConfigError(f"{switch} {value}: expected one of {', '.join(choices)}")

    def _check_local_grid(self, grid: Grid) -> None:
        text = "x".join(map(str, grid))
        if math.prod(grid) != self.ranks_per_process:
            raise ConfigError(
                f"--local-grid {text} makes {math.prod(grid)} ranks, but --ranks-per-process is "
                f"{self.ranks_per_process}: the product must be the number of ranks"
            )

    @property
    def overdecomposition(self) -> float:
        """Ranks per worker."""
        return self.ranks_per_process / self.workers

    def require_useful(self) -> None:
        """Refuse what runs but wastes cores: more workers than ranks (Martin 2018, chapter 4)."""
        if self.rank_map is None and self.workers > self.ranks_per_process:
            raise ConfigError(
                f"--workers {self.workers} is more than --ranks-per-process "
                f"{self.ranks_per_process}: some workers would never have work; use fewer "
                "workers"
            )

    def map_for(self, processes: int) -> RankMap:
        """The rank map of a job; raises :class:`ConfigError` if it is for other processes."""
        if self.rank_map is None:
            return RankMap.uniform(processes, self.ranks_per_process)
        if len(self.rank_map) != processes:
            raise ConfigError(
                f"--rank-map is for {len(self.rank_map)} processes, but {processes} were started"
            )
        return RankMap(self.rank_map)

    def rank_extent(self, subgrid: Grid, ghost: int = 1) -> Grid:
        """Cells of one rank along x, y, z where the process has ``subgrid`` cells.

        Raises :class:`ConfigError` if there is no local grid, if it does not divide the subgrid, or
        if a rank would be thinner than the ghost layer.
        """
        if self.local_grid is None:
            raise ConfigError("--local-grid is missing; expected three numbers, such as 1x8x4")
        cells = []
        for axis, extent, parts in zip("xyz", subgrid, self.local_grid, strict=True):
            if extent % parts:
                raise ConfigError(
                    f"--local-grid: {extent} cells of a process along {axis} cannot be cut into "
                    f"{parts} equal parts"
                )
            if extent // parts < ghost:
                raise ConfigError(
                    f"--local-grid: {extent} cells along {axis} in {parts} parts are thinner than "
                    f"the ghost layer of {ghost}: use fewer parts"
                )
            cells.append(extent // parts)
        return (cells[0], cells[1], cells[2])

    def local_coordinates(self, local: int) -> Grid:
        """Place of a local rank in the local grid (x runs fastest)."""
        if self.local_grid is None:
            raise ConfigError("--local-grid is missing; expected three numbers, such as 1x8x4")
        x, y, _ = self.local_grid
        return (local % x, local // x % y, local // (x * y))
