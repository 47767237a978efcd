"""The command line of the patterns."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.options import OptionParser, positive

WORD = 8
"""Bytes of a word; messages are whole words."""
KINDS = {
    "halo1d": "nonblocking exchange with 2 neighbours in a periodic line",
    "halo2d": "the same with 4 neighbours in a periodic 2-D grid",
    "halo3d": "the same with 6 neighbours in a periodic 3-D grid",
    "wavefront": "blocking sweeps over a 2-D grid, corner to corner, as in LU",
    "pipeline": "a chain of stages: receive, work, send to the next rank",
    "irregular": "random pairs of ranks, messages of SIZE / 4 to 4 SIZE",
    "transpose": "all-to-all, SIZE bytes for each pair of ranks",
    "broadcast": "broadcasts; the root changes from step to step",
    "reduce": "sums of doubles, on all ranks and on rank 0 by turns",
    "master-worker": "rank 0 hands out tasks, and gets results of SIZE bytes",
}
"""Every pattern, with a description of one step."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of one run."""

    kind: str
    size: int
    """Bytes of a message, or a rank's part of a collective operation."""
    steps: int
    work: int
    """Calls of the kernel in a step, for a rank of mean work."""
    imbalance: float
    """The first rank does 1 - this times the mean work, the last one 1 + this."""
    seed: int
    help: str | None = None
    """The text to print instead of running."""


def parse(arguments: list[str], ranks: int) -> Options:
    """The options; raises :class:`AppUsageError`, also for too few ranks."""
    parser = OptionParser(
        "python -m runner.programs.apps.pattern", "Run one pattern of communication and work."
    )
    add = parser.add_argument
    add("kind", nargs="?", metavar="KIND", help="the pattern (see below)")
    add("--size", type=_bytes, default=1024, metavar="BYTES",
        help="bytes of a message, a multiple of 8; default 1024")  # fmt: skip
    add("--steps", type=positive, default=1000, metavar="N", help="timed steps; default 1000")
    add("--work", type=_count, default=0, metavar="N",
        help="calls of the kernel per rank and step, some 0.35 us each; default 0")  # fmt: skip
    add("--imbalance", type=_share, default=0.0, metavar="F",
        help="work grows from 1 - F on the first rank to 1 + F on the last; 0 to 1")  # fmt: skip
    add("--seed", type=_count, default=0, metavar="S", help="of what is drawn at random")
    options = parser.parse_args(arguments)
    if options.help:
        lines = "\n".join(f"  {name:<14} {meaning}" for name, meaning in KINDS.items())
        return Options(**_fields(options), help=f"{parser.format_help()}\nKinds:\n{lines}")
    if options.kind not in KINDS:
        what = f"kind {options.kind} is not known" if options.kind else "no kind given"
        raise AppUsageError(
            f"{what}; expected one of {', '.join(KINDS)}", code="app_option.unknown"
        )
    if ranks < 2:
        raise AppUsageError(
            f"{options.kind} needs at least 2 ranks; start it with mpirun -n 2",
            code="app_option.ranks",
        )
    return Options(**_fields(options))


def _fields(options: argparse.Namespace) -> dict[str, Any]:
    values = dict(vars(options))
    del values["help"]
    return values


def _bytes(text: str) -> int:
    value = _count(text)
    if value == 0 or value % WORD:
        raise argparse.ArgumentTypeError(f"expected bytes, a multiple of {WORD}, not {text!r}")
    return value


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, not {text!r}")
    return int(text)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1, not {text!r}")
    return value
