"""Jacobi3D on one node: the six variants side by side, and the over-decomposition curve.

    python -m benchmarks.jacobi_variants [--input large] [--blocks 7] [--json FILE] [--figure FILE]

A block is one run of every case in random order, so that drifts affect all cases alike. Every case
uses all cores: flat MPI, overlap and over with one process per core; threads, barrier and mate with
``--workers`` per process. Ratios are times over those of flat MPI in the same block (below 1:
faster), with the exact interval of their median. A run rejected for foreign load is repeated. No
new block is begun after ``--minutes``; the whole takes at most that time and one block.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from pathlib import Path

from autotune.api.target import find_target
from autotune.stats import comparison_words
from autotune.targets.request import TargetRequest
from benchmarks.common import ROOT, report, run_benchmark, table
from benchmarks.jacobi_cases import (
    CURVES,
    FACTORS,
    SIDE_BY_SIDE,
    CaseRunner,
    against_flat,
    cases,
    draw,
    measure,
    row,
    seconds,
    with_before,
)
from runner.launch import Runner
from runner.lock import MachineLock
from runner.mpi.discover import adapter

FIGURE = ROOT / "docs" / "figures" / "jacobi_odf.svg"
MIN_BLOCKS = 6
"""Smallest number of blocks that gives a 95 % interval."""


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--input", default="large", help="input of Jacobi3D")
    add("--blocks", type=int, default=7, help=f"below {MIN_BLOCKS} there are no intervals")
    add("--cores", type=int, help="default: all of the machine")
    add("--workers", type=int, help="per process in threads, barrier, mate; default: the cores")
    add("--factors", type=int, nargs="+", default=FACTORS, help="ranks per core")
    add("--minutes", type=float, default=11.0, help="begin no block after that")
    add("--only", nargs="+", metavar="VARIANT", help="only flat MPI and these variants")
    add("--before", metavar="DIR", help="another version of autotune, to run MATE's cases with too")
    add("--json", metavar="FILE", help="write the figures as JSON")
    add("--figure", type=Path, default=FIGURE, metavar="FILE", help="SVG")
    add("--no-guard", dest="guard", action="store_false", help="for trying out, not for figures")
    return parser


def main() -> int:
    given = options().parse_args()
    words = TargetRequest(
        None, "jacobi3d", given.input, given.cores, "local", None, None, None, 120
    )
    target = find_target(words)
    cores = given.cores or target.cores
    target = dataclasses.replace(target, ranks=cores)
    workers = given.workers or cores
    if cores % workers:
        options().error(f"--workers {workers} does not divide {cores} cores")
    every = cases(cores, workers, given.factors)
    if given.only:
        every = [every[0], *(case for case in every if case.variant in given.only)]
    if given.before:
        every = with_before(every, str(Path(given.before).resolve()))
    began = time.monotonic()
    with MachineLock("exclusive"), Runner(adapter(target.library), guard=given.guard) as runner:
        bench = CaseRunner(runner, target)
        found = measure(bench, every, given.blocks, given.minutes)
    flat = found[every[0]]
    side = [c for c in every if c.variant not in CURVES or c.factor == SIDE_BY_SIDE]
    print("the six variants; parts of the solver's time are medians of the mean per core, seconds")
    table([row(case, flat, found[case]) for case in side])
    print("\nover the over-decomposition factor (the number after the variant)")
    table([row(case, flat, found[case]) for case in every if case.variant in (*CURVES, "mpi")])
    title = f"Jacobi3D, input {given.input}, {cores} cores, {len(flat)} blocks"
    draw(found, flat, given.figure, title)
    compared = {c.name: comparison_words(against_flat(flat, found[c])) for c in every[1:]}
    raw = {
        "rows": {c.name: row(c, flat, found[c]) for c in every},
        "runs": {c.name: seconds(found[c]) for c in every},
    }
    figures = {
        "input": given.input,
        "blocks": len(flat),
        "guard": given.guard,
        "rejected": bench.rejected,
        "wall_s": round(time.monotonic() - began),
        **compared,
    }
    print()
    report("jacobi variants", figures, given.json)
    if given.json:
        # Too long to print; the tables above show the main figures.
        path = Path(given.json)
        path.write_text(json.dumps({**json.loads(path.read_text()), **raw}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    run_benchmark(main)
