"""Simulated studies on all cores, rows of their figures, and the end of such a benchmark."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from benchmarks.common import report

MANY = 100
"""Number of studies from which on they are handed out by fives."""

Row = dict[str, Any]
Run = Callable[[Callable[[int], Any], int], list[Any]]
"""Runs a study with each seed from 0; the study must be known to other processes by its name."""


@contextmanager
def simulated(processes: int | None = None) -> Iterator[Run]:
    """The runner of studies; ``processes`` None: one for each core, 1: this one."""
    if processes == 1:
        yield lambda study, count: list(map(study, range(count)))
        return
    # Separate processes, not forks: they inherit only the seed.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield lambda study, count: list(
            pool.map(study, range(count), chunksize=5 if count > MANY else 1)
        )


def say(row: Row) -> Row:
    """Print a row where the progress is shown, and return it."""
    print("  ".join(f"{name} {value}" for name, value in row.items()), file=sys.stderr, flush=True)
    return row


def study_options(description: str | None, studies: int) -> argparse.ArgumentParser:
    """The options that all simulations have; ``studies`` is the usual number of a row."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=studies, help="of each row")
    parser.add_argument("--json", metavar="FILE")
    return parser


def conclude_rows(
    name: str, tables: Mapping[str, Any], rows: Sequence[Row], out: str | None
) -> int:
    """Report the tables; returns exit code 1 if a row has more false answers than allowed."""
    report(name, dict(tables), out)
    return int(any(row["false"] > row["allowed"] for row in rows if "allowed" in row))
