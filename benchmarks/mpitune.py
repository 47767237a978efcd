"""Tables of collectives for Intel MPI against those of its own tuner ``mpitune_fast``.

    python -m benchmarks.mpitune --mpi BIN --keep DIR [--ranks 2 4] [--blocks 20] [--json FILE]

The tuner measures allreduce, bcast and alltoall; ``autotune collectives`` gets its wall time as
``--budget``. Then the default, the tuner's table (I_MPI_TUNING_BIN) and ours (I_MPI_ADJUST_*) run
interleaved on fresh runs. A cell is a collective, a number of ranks and a size. Its gain is the
median over the blocks of T_default / T, less 1. Where nothing of ours was proven, ours is the
default, with a gain of 0.

The tuner of 2021.18.1 measures only with I_MPI_TUNING_AUTO=1, which is set here. It then loses
what it measured: it merges files that the library does not write (``Missing file to merge``), and
returns the library's own tables. So the tables that the library dumps in each of the tuner's own
launches are kept and used: the peer gets the best of what it found.

Each finished part is stored in DIR, and the same command continues.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune.collectives.measurement import MICRO, micro_program
from autotune.collectives.result import TABLES
from autotune.dialects import dialect
from benchmarks.common import autotune, options, report, run_benchmark, table
from runner.guard import wait_quiet
from runner.launch import Runner
from runner.lock import MachineLock
from runner.machine import describe_machine
from runner.mpi.discover import adapter, find_library
from runner.mpi.library import Library
from runner.types import LIBRARY, LaunchSpec

COLLECTIVES = ("allreduce", "bcast", "alltoall")
SIZES = (8, 64, 512, 4096, 16384, 65536, 262144, 1048576)
DEFAULT, PEER, OURS = "default", "mpitune_fast", "autotune"
TUNING_FILE = "I_MPI_TUNING_BIN"
GIVE_UP, QUIET_S, TIMEOUT_S = 6, 20.0, 300.0
Values = Mapping[str, Mapping[str, str]]
"""Who tuned -> variables of the launch."""
Row = dict[str, Any]


def parser() -> argparse.ArgumentParser:
    made = options(__doc__)
    add = made.add_argument
    add("--mpi", required=True, metavar="BIN", help="directory of Intel MPI's commands")
    add("--keep", type=Path, required=True, metavar="DIR", help="finished parts and the database")
    add("--ranks", type=int, nargs="+", default=[2, 4])
    add("--collectives", nargs="+", choices=COLLECTIVES, default=list(COLLECTIVES))
    add("--sizes", type=int, nargs="+", default=list(SIZES), metavar="BYTES")
    add("--blocks", type=int, default=20, help="blocks of a default, a peer's and our run")
    add("--budget", type=float, metavar="S", help="seconds for ours; default: the tuner's time")
    add("--seed", type=int, default=0)
    return made


def main() -> int:
    given = parser().parse_args()
    library = find_library(given.mpi)
    if library.family != "impi":
        raise SystemExit(f"--mpi {given.mpi} is {library.family}; expected Intel MPI")
    given.keep = given.keep.absolute()
    given.keep.mkdir(parents=True, exist_ok=True)
    peer = once(given.keep / "peer.json", lambda: tuned(given, library))
    say(f"mpitune_fast: {peer['wall_s']:.0f} s, {len(peer['files'])} tables")
    ours = once(
        given.keep / "ours.json", lambda: searched(given, library, given.budget or peer["wall_s"])
    )
    say(f"autotune collectives: {ours['wall_s']:.0f} s, {ours['values'] or 'nothing proven'}")
    rows: list[Row] = []
    for ranks in given.ranks:
        for collective in given.collectives:
            theirs = {TUNING_FILE: peer["files"][case(collective, ranks)]}
            values = {DEFAULT: {}, PEER: theirs, OURS: own(ours, case(collective, ranks))}
            blocks = measured(given, library, collective, ranks, values)
            rows += cells(given.sizes, collective, ranks, blocks)
    print()
    table([shown(row) for row in rows])
    print()
    figures = {
        "mpi": f"{library.family} {library.version}",
        "guard": not given.guard,
        "blocks": given.blocks,
        "peer_wall_s": round(peer["wall_s"], 1),
        "our_wall_s": round(ours["wall_s"], 1),
        "peer_lost_its_merge": "Missing file to merge" in peer["said"],
        "proven": sorted(ours["values"]),
        **{f"mean_gain_{who}": round(mean_gain(rows, who), 4) for who in (PEER, OURS)},
        "cells": rows,
    }
    report("mpitune", figures, given.json)
    return 0


def once(path: Path, make: Any) -> Row:
    """The stored part at ``path``, or the one that is made now."""
    if path.exists():
        found: Row = json.loads(path.read_text())
        return found
    made: Row = make()
    path.write_text(json.dumps(made, indent=1) + "\n")
    return made


WRAPPER = """#!/bin/sh
'{bin}/mpiexec' "$@"
code=$?
case "$I_MPI_TUNING_BIN_DUMP" in
  */result_cluster_*) cp "$I_MPI_TUNING_BIN_DUMP" '{place}' ;;
esac
exit $code
"""
"""In place of the tuner's ``mpiexec``: keeps the tables that a launch dumps."""


def tuned(given: argparse.Namespace, library: Library) -> Row:
    """Run the tuner for all collectives and numbers of ranks; returns its tables and wall time."""
    place, dumps = given.keep / "mpitune", given.keep / "dumps"
    for folder in (place, dumps, place / "bin"):
        folder.mkdir(exist_ok=True)
    wrapper = place / "bin" / "mpiexec"
    wrapper.write_text(WRAPPER.format(bin=library.bin, place=dumps))
    wrapper.chmod(0o755)
    env = adapter(library).environment(LaunchSpec(("true",), 1), dict(os.environ))
    env["PATH"] = os.pathsep.join([str(wrapper.parent), library.bin, env["PATH"]])
    env["I_MPI_TUNING_AUTO"] = "1"
    words = [f"{library.bin}/mpitune_fast", "-hosts", "localhost", "-n", "1"]
    words += ["-ppn", ",".join(map(str, given.ranks)), "-c", ",".join(given.collectives)]
    words += ["-d", str(place), "-pd", str(place / "performance")]
    with MachineLock("exclusive"):
        began = time.monotonic()
        done = subprocess.run(
            words, env=env, cwd=place, capture_output=True, text=True, check=False
        )
        wall_s = time.monotonic() - began
    said = done.stdout + done.stderr
    files = {
        case(collective, ranks): sorted(dumps.glob(f"result_cluster_{collective}_1_{ranks}_*.dat"))
        for ranks in given.ranks
        for collective in given.collectives
    }
    if done.returncode or not all(files.values()):
        raise SystemExit(f"mpitune_fast failed:\n{said}")
    found = {name: str(paths[-1]) for name, paths in files.items()}
    return {"wall_s": wall_s, "files": found, "command": words, "said": said}


def case(collective: str, ranks: int) -> str:
    return f"{collective} {ranks}x"


def searched(given: argparse.Namespace, library: Library, budget_s: float) -> Row:
    """Our tables within the budget, as variables by collective."""
    words = ["collectives", "--operations", ",".join(given.collectives), "--mpi", library.bin]
    words += [
        "--ranks",
        ",".join(map(str, given.ranks)),
        "--sizes",
        ",".join(map(str, given.sizes)),
    ]
    words += ["--budget", f"{math.ceil(budget_s)}s", "--seed", str(given.seed), *given.guard]
    answer = autotune(
        *words, "--store", str(given.keep / "results.db"), timeout_s=4 * budget_s + 60
    )
    found = {"wall_s": answer.wall_s, "values": {}, "result": answer.result, "said": answer.text}
    if answer.code == 0:
        # A value of Intel MPI is for every number of ranks, so each table is loaded alone.
        for part in TABLES.find(answer.result["id"]).parts:
            if part.proven:
                ((name, value),) = dialect(library.family).variables(part.rules).values()
                found["values"][case(part.operation, part.ranks)] = {name: value}
    elif "the budget of" not in answer.text:
        raise SystemExit(answer.text)
    return found


def own(ours: Row, name: str) -> dict[str, str]:
    """The variables of our table for a case; empty where nothing was proven."""
    return dict(ours["values"].get(name, {}))


def measured(
    given: argparse.Namespace, library: Library, collective: str, ranks: int, values: Values
) -> list[Row]:
    """Blocks of one run under each of ``values``, in random order: who -> size -> us."""
    path = given.keep / f"blocks-{collective}-{ranks}.json"
    blocks: list[Row] = json.loads(path.read_text()) if path.exists() else []
    # Where nothing was proven, our launch is the default's.
    names = [who for who, named in values.items() if named or who == DEFAULT]
    with (
        MachineLock("exclusive"),
        Runner(adapter(library), guard=not given.guard) as runner,
    ):
        while len(blocks) < given.blocks:
            order = random.Random(f"{given.seed} {collective} {ranks} {len(blocks)}")
            block = {}
            for who in order.sample(names, len(names)):
                spec = launch(given.sizes, collective, ranks, values[who])
                block[who] = by_size(runner, spec)
            blocks.append(block)
            path.write_text(json.dumps(blocks) + "\n")
            say(f"{collective} on {ranks} ranks: block {len(blocks)} of {given.blocks}")
    return blocks[: given.blocks]


def launch(
    sizes: Sequence[int], collective: str, ranks: int, values: Mapping[str, str]
) -> LaunchSpec:
    return LaunchSpec(
        program=(sys.executable, "-m", f"runner.{MICRO}", *micro_program(collective, sizes)),
        ranks=ranks,
        parameters={LIBRARY: dict(values)} if values else {},
        oversubscribe=ranks > describe_machine().cores,
        metric="json:seconds",
        timeout_s=TIMEOUT_S,
    )


def by_size(runner: Runner, spec: LaunchSpec) -> dict[str, float]:
    """Microseconds at each size of a valid run; a run with foreign load is made again."""
    for _ in range(GIVE_UP):
        record = runner.run(spec)
        if record.valid:
            return {str(row["size"]): row["us"] for row in record.extra["sizes"]}
        if record.state != "foreign_load":
            raise SystemExit(f"{record.state}: {record.reason}\n{record.stderr_tail}")
        wait_quiet(QUIET_S)
    raise SystemExit("machine too busy; the same command continues")


def cells(sizes: Sequence[int], collective: str, ranks: int, blocks: Sequence[Row]) -> list[Row]:
    """For each size the gains, None without blocks."""
    return [
        {"collective": collective, "ranks": ranks, "size": size}
        | {who: gain(blocks, who, str(size)) for who in (PEER, OURS)}
        for size in sizes
    ]


def gain(blocks: Sequence[Row], who: str, size: str) -> float:
    """The median gain over the default; 0 for who runs as the default does."""
    ratios = [math.log(b[DEFAULT][size] / b[who][size]) for b in blocks if who in b]
    return math.expm1(statistics.median(ratios)) if ratios else 0.0


def mean_gain(rows: Sequence[Row], who: str) -> float:
    """The geometric mean of T_default / T over the cells, less 1."""
    return math.expm1(statistics.fmean(math.log1p(row[who]) for row in rows))


def shown(row: Row) -> Row:
    gains = {who: f"{100 * row[who]:+.1f} %" for who in (PEER, OURS)}
    return {k: row[k] for k in ("collective", "ranks", "size")} | gains


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run_benchmark(main)
