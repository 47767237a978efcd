"""Claims of the sources that are looked for here: lines of a table that run in random blocks.

A claim has lines, all on two cores: command lines, or settings of an application in its space. They
run in blocks of random order, guard on; the speed-up is the first line's time over the line's, with
a 95 % interval. On the testbed every line has the larger eager limit of TCP, so that no form loses
by the library's default alone.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from autotune.space import Setting
from autotune.stats import compare
from benchmarks.common import options, report, table
from benchmarks.jacobi_cases import GIVE_UP, QUIET_S
from benchmarks.program_cells import PLACES, Cell, Place
from runner.guard import wait_quiet
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.types import LaunchSpec, RunRecord

RANKS = 2
METRICS = {
    "jacobi3d": "json:solver_s",
    "minighost": "json:solver_s",
    "ring": "json:latency_s",
    "cab": "json:seconds",
}
"""What a command line is measured by, where that is not its ``seconds``."""
T = TypeVar("T")
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
            metric = METRICS.get(self.app, "json:seconds")
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


def held(
    check: Check, place: Place, given: argparse.Namespace, run: Callable[[Runner, LaunchSpec], T]
) -> list[list[T]]:
    """What ``run`` returned for each line, in each block."""
    found: dict[str, Any] = {}
    specs = [line.spec(place, given.testbed, found) for line in check.lines]
    results: list[list[T]] = [[] for _ in specs]
    order = random.Random(given.seed)
    with Runner(adapter(found["library"]), guard=not given.guard,
                own_processes=found["own"]) as runner:  # fmt: skip
        for spec in specs:
            run(runner, spec)  # Code is compiled, connections are known.
        for _ in range(given.blocks):
            for n in order.sample(range(len(specs)), len(specs)):
                results[n].append(run(runner, specs[n]))
    return results


def valid(runner: Runner, spec: LaunchSpec) -> RunRecord:
    """A valid run; ends the benchmark if there is none."""
    for _ in range(GIVE_UP):
        record = runner.run(spec)
        if record.valid:
            return record
        if record.state != "foreign_load":
            sys.exit(f"{' '.join(spec.program)}: {record.state}: {record.reason}")
        wait_quiet(QUIET_S)
    sys.exit(f"{' '.join(spec.program)}: the machine is too busy")


def one(runner: Runner, spec: LaunchSpec) -> float:
    """The time of a valid run."""
    return float(valid(runner, spec).value_s)


def rows_of(check: Check, seconds: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    """The median time of each line and its speed-up over the first one."""
    rows = []
    for line, own in zip(check.lines, seconds, strict=True):
        row: dict[str, Any] = {"line": line.name, "median": f"{statistics.median(own):.4g}"}
        gain = compare(seconds[0], own) if own is not seconds[0] else None
        row["speed-up"] = f"{1 + gain.gain:.3f}" if gain else ""
        row["95 %"] = f"{1 + gain.lo:.3f} .. {1 + gain.hi:.3f}" if gain else ""
        rows.append(row)
    return rows


def run_checks(
    name: str,
    title: str | None,
    checks: Sequence[Check],
    rows_for: Callable[[Check, Place, argparse.Namespace], list[dict[str, Any]]],
) -> int:
    """The command line of a benchmark of checks: run those that are wanted, print their tables."""
    parser = options(title)
    parser.add_argument("--place", choices=PLACES, default="node")
    parser.add_argument("--only", nargs="+", metavar="KEY", choices=[c.key for c in checks])
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--testbed", default="testbed", metavar="NAME")
    given = parser.parse_args()
    every = {}
    for check in checks:
        if given.only and check.key not in given.only:
            continue
        rows = rows_for(check, given.place, given)
        print(f"\n{check.key} on {given.place}: {check.claim}")
        table(rows)
        sys.stdout.flush()
        every[check.key] = rows
    report(name, {"place": given.place, "testbed": given.testbed, "checks": every}, given.json)
    return 0
