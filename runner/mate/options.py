"""The configuration as command-line switches."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from runner.mate.config import AFFINITIES, THREAD_LEVELS, Config, Grid
from runner.mate.errors import ConfigError

_DEFAULT = Config()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the switches of the runtime, in a group of their own."""
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
    add("--rank-map", metavar="FILE", help="JSON file: for each process a list of global ranks")


def from_arguments(namespace: argparse.Namespace) -> Config:
    """The configuration; raises :class:`ConfigError` naming the switch that is wrong."""
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
        rank_map=None if namespace.rank_map is None else read_rank_map(Path(namespace.rank_map)),
    )
    config.require_useful()
    return config


def parse_grid(text: str) -> Grid:
    """``"1x8x4"`` as numbers; raises :class:`ConfigError` for anything else."""
    parts = text.lower().split("x")
    if len(parts) != 3 or not all(p.isascii() and p.isdigit() for p in parts):
        raise ConfigError(f"--local-grid {text}: expected three numbers, such as 1x8x4")
    return (int(parts[0]), int(parts[1]), int(parts[2]))


def _idle(text: str) -> tuple[int, int]:
    parts = text.split(":")
    if len(parts) != 2 or not all(p.isascii() and p.isdigit() for p in parts):
        raise ConfigError(
            f"--idle {text}: expected microseconds as SPIN:SLEEP, for example 200:2000"
        )
    return int(parts[0]), int(parts[1])


def read_rank_map(path: Path) -> tuple[tuple[int, ...], ...]:
    """A list of lists of numbers from a JSON file; raises :class:`ConfigError`."""
    try:
        data: Any = json.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"--rank-map {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--rank-map {path} is not JSON: {error}") from None
    if not isinstance(data, list) or not all(_ranks(p) for p in data):
        raise ConfigError(
            f"--rank-map {path}: expected a list with one list of ranks per process, such "
            "as [[0, 1, 2], [3]]"
        )
    return tuple(tuple(process) for process in data)


def _ranks(item: Any) -> bool:
    return isinstance(item, list) and all(type(rank) is int for rank in item)
