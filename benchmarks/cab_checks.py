"""What Ouyang shows of chunks in applications, looked for here: one table for each claim.

    python -m benchmarks.cab_checks [--only minighost-24 ...]

miniGhost runs over the edge nx of a process's cube, with as many variables as fill its memory, as
plain MPI, as copies that nobody steals, and with stealing. The block-sparse product runs over the
width of its blocks and the share of absent ones. The lines of a table run in blocks of random
order, guard on; the speed-up is over the first line, with a 95 % interval. Needs a machine without
other work; two ranks on two cores have no rank that only waits.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.checks import Check, held, one, rows_of, run_checks, words
from benchmarks.common import run_benchmark
from benchmarks.program_cells import Place

PUBLISHED = {4: 1.126, 8: 1.138, 12: 1.161, 16: 1.247, 24: 1.306, 32: 1.263, 48: 1.241}
"""Speed-up of the original over nx with 36 ranks a node (the first values of its curve)."""
MIB = 32
"""Of a process's cells, in MiB; the original has 1024."""
STEPS = {4: 10, 8: 10, 12: 10, 16: 10, 24: 10, 32: 10, 48: 10}
WIDTHS, ABSENT = (64, 128, 256), (50, 80)


def ghost(nx: int) -> Check:
    """miniGhost with cubes of one edge."""
    variables = max(1, (MIB << 20) // (8 * nx**3))
    common = f"--size {nx}x{nx}x{2 * nx} --grid 1x1x2 --variables {variables} --steps {STEPS[nx]}"
    none = "--steal-config none"
    return Check(
        f"minighost-{nx}",
        f"nx {nx}, {variables} variables; the original: {PUBLISHED[nx]}",
        (
            words("minighost", "flat MPI", common),
            words("minighost", "copies, no stealing", f"{common} --variant cab --steal off {none}"),
            words("minighost", "stealing", f"{common} --variant cab {none}"),
        ),
    )


def product(width: int, absent: int) -> Check:
    """The block-sparse product with blocks of one width."""
    times = max(4, 20 * 128**3 // width**3)
    common = (
        f"--program product --width {width} --absent {absent} --times {times} --rounds 3 "
        "--steal-config none"
    )
    return Check(
        f"product-{width}-{absent}",
        f"blocks of {width} rows, {absent} % absent; the original: 1.4 with 144 ranks",
        (
            words("cab", "no stealing", f"{common} --helpers 0"),
            words("cab", "stealing", f"{common} --helpers 1"),
        ),
    )


CHECKS = (
    *(ghost(nx) for nx in PUBLISHED),
    *(product(width, absent) for width in WIDTHS for absent in ABSENT),
)


def rows_for(check: Check, place: Place, given: argparse.Namespace) -> list[dict[str, Any]]:
    return rows_of(check, held(check, place, given, one))


def main() -> int:
    return run_checks("cab_checks", __doc__, CHECKS, rows_for)


if __name__ == "__main__":
    run_benchmark(main)
