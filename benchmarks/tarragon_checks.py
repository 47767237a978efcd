"""What Cicotti's thesis shows of graphs of tasks, looked for here: one table for each claim.

    python -m benchmarks.tarragon_checks [--place node|testbed] [--only tasks ...] [--blocks 8]

A table has the lines of one claim, all on two cores: command lines, or settings of an application
in its space.  They run in blocks of random order, guard on; the speed-up is the first line's time
over the line's, with a 95 % interval.  On the testbed every line has the larger eager limit of TCP,
so that no form loses by the library's default alone.  Needs a machine without other work.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autotune.space import Setting
from autotune.stats import compare
from benchmarks.common import options, report, run_benchmark, table
from benchmarks.jacobi_cases import GIVE_UP, QUIET_S
from benchmarks.program_cells import PLACES, Cell, Place
from runner.guard import wait_quiet
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.types import LaunchSpec

RANKS = 2
EAGER = {"btl_tcp_eager_limit": 262144}


@dataclass(frozen=True)
class Line:
    """One line of a table: an application's setting, or else ``words`` of its module."""

    name: str
    app: str
    input: str = ""
    setting: tuple[tuple[str, str | int], ...] = ()
    words: tuple[str, ...] = ()
    ranks: int = RANKS

    def spec(self, place: Place, testbed: str, adapter_of: dict[str, Any]) -> LaunchSpec:
        """What is started."""
        if self.words:
            module = f"runner.apps.{self.app.replace('-', '_')}"
            metric = {"jacobi3d": "json:solver_s", "ring": "json:latency_us"}.get(
                self.app, "json:seconds"
            )
            cell = Cell(self.name, self.ranks, place, (sys.executable, "-m", module, *self.words),
                        metric=metric, verify="json:verified")  # fmt: skip
            own = ""
        else:
            cell = Cell(self.name, self.ranks, place, app=self.app, input=self.input)
            own = "+tarragon"
        target = cell.target(testbed)
        adapter_of.setdefault("library", target.library)
        adapter_of.setdefault("own", target.cluster.own_processes)
        far = place == "testbed"
        space = target.space(f"openmpi{'+openmpi-tcp' * far}{own}")
        return target.spec(space, Setting({**dict(self.setting), **(EAGER if far else {})}))


@dataclass(frozen=True)
class Check:
    """A claim, and the lines that show it; the first one is what the others are compared with."""

    key: str
    claim: str
    lines: tuple[Line, ...]


def words(app: str, name: str, text: str, ranks: int = RANKS) -> Line:
    return Line(name, app, words=tuple(text.split()), ranks=ranks)


def setting(app: str, input_: str, **values: str | int) -> Line:
    return Line(",".join(f"{k}={v}" for k, v in values.items()), app, input_, (*values.items(),))


def grids(count: int) -> str:
    """Parts of a process's block: y and z as equal as can be, and x from 2048 on."""
    x = 2 if count >= 2048 else 1
    y = 2 ** ((count // x).bit_length() // 2)
    return f"--ranks-per-process {count} --local-grid {x}x{y}x{count // x // y}"


JACOBI = "--input face --variant"
MEMORY = "--input large --variant"
GRAPH = "tarragon --priority edges"
RING = "--laps 300 --size"
NW, LU = "needleman-wunsch", "sparse-lu"
BIG: dict[str, str | int] = {"rows": 512, "columns": 512}
FINE: dict[str, str | int] = {"rows": 128, "columns": 64}
TWO: dict[str, str | int] = {"threads": "service", "workers": 2}

CHECKS = (
    Check(
        "tasks",
        "speed rises, has a plateau and falls over the number of tasks of a core",
        (
            words("jacobi3d", "flat MPI", f"{JACOBI} mpi"),
            *(
                words("jacobi3d", f"{n} tasks", f"{JACOBI} {GRAPH} {grids(n)}")
                for n in (1, 2, 4, 8, 16, 64, 256, 1024, 2048)
            ),
        ),
    ),
    Check(
        "memory",
        "split phase is not faster than BSP for a stencil bound by memory, the graph is not slower",
        (
            words("jacobi3d", "flat MPI", f"{MEMORY} mpi"),
            words("jacobi3d", "split phase", f"{MEMORY} overlap"),
            *(words("jacobi3d", f"{n} tasks", f"{MEMORY} {GRAPH} {grids(n)}") for n in (4, 16)),
        ),
    ),
    *(
        Check(
            f"padding-{pad}",
            "the speed-up follows the share of communication",
            (
                words("jacobi3d", "flat MPI", f"{JACOBI} mpi --padding {pad}"),
                words("jacobi3d", "split phase", f"{JACOBI} overlap --padding {pad}"),
                *(
                    words("jacobi3d", f"{n} tasks", f"{JACOBI} {GRAPH} --padding {pad} {grids(n)}")
                    for n in (2, 4, 8)
                ),
            ),
        )
        for pad in (1, 2, 4, 8, 16)
    ),
    Check(
        "threads",
        "fine tasks with several threads collapse; panels or single threads repair it",
        (
            setting(NW, "small", variant="mpi", **BIG),
            setting(NW, "small", variant="block", **BIG),
            setting(NW, "small", variant="block", **FINE),
            setting(NW, "small", variant="panel", **FINE),
            setting(NW, "small", variant="block", **TWO, **FINE),
            setting(NW, "small", variant="panel", **TWO, **FINE),
            setting(NW, "small", variant="block", **TWO, **BIG),
        ),
    ),
    Check(
        "priorities",
        "priorities are neutral when there is little parallelism",
        (
            setting(NW, "default", variant="panel", **BIG),
            setting(NW, "default", variant="panel", priority="edges", **BIG),
            setting(NW, "default", variant="panel", priority="wavefront", **BIG),
        ),
    ),
    Check(
        "tags",
        "tags gain a little, aggregation nothing",
        (
            setting(LU, "poisson", variant="tarragon"),
            setting(LU, "poisson", variant="tarragon", tagging=1),
            setting(LU, "poisson", variant="tarragon", aggregation=1),
            setting(LU, "poisson", variant="tarragon", priority="edges"),
        ),
    ),
    *(
        Check(
            f"hand-over-{size}",
            "within a process short messages are handed over slower than by MPI, long ones faster",
            (
                words("ring", "MPI, two processes", f"{RING} {size} --variant mpi"),
                words("ring", "in process", f"{RING} {size} --tasks 4 --variant tarragon", 1),
                words("ring", "compiled", f"{RING} {size} --tasks 4 --variant compiled", 1),
            ),
        )
        for size in (8, 4096, 65536, 1048576)
    ),
)


def held(check: Check, place: Place, given: Any) -> list[dict[str, Any]]:
    """Run the blocks; one row for each line."""
    found: dict[str, Any] = {}
    specs = [line.spec(place, given.testbed, found) for line in check.lines]
    seconds: list[list[float]] = [[] for _ in specs]
    order = random.Random(given.seed)
    with Runner(adapter(found["library"]), guard=not given.guard,
                own_processes=found["own"]) as runner:  # fmt: skip
        for spec in specs:
            one(runner, spec)  # Code is compiled, connections are known.
        for _ in range(given.blocks):
            for n in order.sample(range(len(specs)), len(specs)):
                seconds[n].append(one(runner, specs[n]))
    return rows_of(check, seconds)


def one(runner: Runner, spec: LaunchSpec) -> float:
    """The time of a valid run; ends the benchmark if there is none."""
    for _ in range(GIVE_UP):
        record = runner.run(spec)
        if record.valid:
            return float(record.value_s)
        if record.state != "foreign_load":
            sys.exit(f"{' '.join(spec.program)}: {record.state}: {record.reason}")
        wait_quiet(QUIET_S)
    sys.exit(f"{' '.join(spec.program)}: the machine is too busy")


def rows_of(check: Check, seconds: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    """The median time of each line and its speed-up over the first one."""
    rows = []
    for line, own in zip(check.lines, seconds, strict=True):
        row: dict[str, Any] = {"line": line.name, "median": f"{statistics.median(own):.4f}"}
        gain = compare(seconds[0], own) if own is not seconds[0] else None
        row["speed-up"] = f"{1 + gain.gain:.3f}" if gain else ""
        row["95 %"] = f"{1 + gain.lo:.3f} .. {1 + gain.hi:.3f}" if gain else ""
        rows.append(row)
    return rows


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--place", choices=PLACES, default="node")
    parser.add_argument("--only", nargs="+", metavar="KEY", choices=[c.key for c in CHECKS])
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--testbed", default="testbed", metavar="NAME")
    given = parser.parse_args()
    every = {}
    for check in CHECKS:
        if given.only and check.key not in given.only:
            continue
        rows = held(check, given.place, given)
        print(f"\n{check.key} on {given.place}: {check.claim}")
        table(rows)
        sys.stdout.flush()
        every[check.key] = rows
    report("tarragon_checks", {"place": given.place, "checks": every}, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
