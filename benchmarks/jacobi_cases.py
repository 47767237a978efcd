"""Jacobi3D's variants as cases of a benchmark: run in blocks, compared with flat MPI, and drawn."""

from __future__ import annotations

import dataclasses
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from autotune.report.figures import Point, curve
from autotune.space import DEFAULT, Setting, Space
from autotune.stats import Comparison, compare, estimate
from autotune.targets.target import Target
from runner.guard import wait_quiet
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.types import LaunchSpec, RunRecord

FACTORS = (1, 2, 4, 8, 16)
CURVES = ("over", "barrier", "mate")
SIDE_BY_SIDE = 4
"""The over-decomposition factor (and number of tiles) in the comparison of all variants."""
BREAKDOWN = ("compute_s", "mpi_s", "buffering_s", "waiting_s", "other_s", "end_s", "compute_cpu_s")
POLLING = "mpi_event_tick_rate"
QUIET_S = 60.0
GIVE_UP = 20
"""Number of rejections of one run in a row after which the machine counts as too busy."""


class Launched(Protocol):
    """What a case must say to be run: of Jacobi3D here, of another application elsewhere."""

    @property
    def name(self) -> str: ...
    @property
    def variant(self) -> str: ...
    @property
    def processes(self) -> int: ...
    @property
    def workers(self) -> int: ...
    @property
    def tuned(self) -> bool: ...
    @property
    def before(self) -> str: ...
    @property
    def words(self) -> tuple[str, ...]: ...


L = TypeVar("L", bound=Launched)


@dataclass(frozen=True)
class Case:
    """One layout on all cores; ``factor`` is the number of ranks per worker, or of tiles.

    ``tuned``: it runs under the setting that a search found for the flat program. ``before``: the
    directory of another version of the program, which is run instead. ``apart``: a second layout
    of the variant, with one worker in each process.
    """

    variant: str
    processes: int
    workers: int
    factor: int
    tuned: bool = False
    before: str = ""
    apart: bool = False

    @property
    def name(self) -> str:
        factor = "" if self.variant in ("mpi", "threads") else f" {self.factor}"
        layout = f" {self.processes}x{self.workers}" * self.apart
        tuned, before = " tuned" * self.tuned, " before" * bool(self.before)
        return self.variant + factor + layout + tuned + before

    @property
    def words(self) -> tuple[str, ...]:
        """The program's options."""
        words = ["--variant", self.variant]
        if self.variant == "threads":
            words += ["--workers", str(self.workers)]
        elif self.variant == "overlap":
            words += ["--ranks-per-process", str(self.factor)]
        elif self.variant != "mpi":
            ranks = str(self.workers * self.factor)
            words += ["--workers", str(self.workers), "--ranks-per-process", ranks]
        return tuple(words)


def cases(cores: int, workers: int, factors: Sequence[int]) -> list[Case]:
    """The cases, flat MPI first; the factor of the side-by-side comparison is always included."""
    processes = cores // workers
    found = [
        Case("mpi", cores, 1, 1),
        Case("overlap", cores, 1, SIDE_BY_SIDE),
        Case("threads", processes, workers, 1),
    ]
    for factor in sorted({*factors, SIDE_BY_SIDE}):
        found.append(Case("over", cores, 1, factor))
        found += [Case(variant, processes, workers, factor) for variant in ("barrier", "mate")]
        if workers > 1:
            found.append(Case("mate", cores, 1, factor, apart=True))
    return found


def with_before(every: Sequence[Case], directory: str) -> list[Case]:
    """The cases, and those on MATE once more with the version of the program in a directory."""
    older = [dataclasses.replace(c, before=directory) for c in every if c.variant in CURVES]
    return [*every, *older]


@dataclass(frozen=True)
class Tuned:
    """The setting of a flat program, and the space that says how it is launched."""

    space: Space | None = None
    setting: Setting = DEFAULT

    @property
    def others(self) -> Setting:
        """The part of the setting under which the other variants run.

        This part says how often TCP is polled. It does not depend on over-decomposition, so the
        tuner's value applies to all variants.
        """
        return Setting({name: value for name, value in self.setting.items() if name == POLLING})

    def of(self, case: Launched) -> Setting:
        """The setting of one case; what is not tuned runs under the default."""
        if case.tuned:
            return self.setting
        return DEFAULT if case.variant == "mpi" else self.others


def launch_of(case: Launched, target: Target, tuned: Tuned = Tuned()) -> LaunchSpec:
    """The case's run under the cluster's own launch options and, if it is tuned, the setting."""
    plain = target.spec(tuned.space, tuned.of(case))
    launcher = adapter(target.library)
    where = launcher.share_cores(plain.placement, case.workers, plain.launch_options)
    if case.before:
        # ``python -m`` finds modules in the current directory first.
        plain = dataclasses.replace(plain, cwd=case.before)
    return dataclasses.replace(
        plain, program=(*plain.program, *case.words), ranks=case.processes, placement=where
    )


class CaseRunner:
    """Counts the runs that count and those that do not."""

    def __init__(self, runner: Runner, target: Target, tuned: Tuned = Tuned()) -> None:
        self._runner, self._target, self._tuned = runner, target, tuned
        self.rejected = 0

    def run(self, case: Launched) -> RunRecord:
        """One valid run; ends the program if there is none."""
        return self.launch(case.name, launch_of(case, self._target, self._tuned))

    def launch(self, name: str, spec: LaunchSpec) -> RunRecord:
        """One valid run of any program; ends the benchmark if there is none."""
        for _ in range(GIVE_UP):
            record = self._runner.run(spec)
            if record.valid:
                return record
            if record.state != "foreign_load":
                sys.exit(f"{name}: {record.state}: {record.reason}\n{record.stderr_tail}")
            self.rejected += 1
            wait_quiet(QUIET_S)
        sys.exit(f"{name}: the machine is too busy: {record.reason}")


def measure(
    bench: CaseRunner, every: list[L], blocks: int, minutes: float
) -> dict[L, list[RunRecord]]:
    """The runs of each case, one per block."""
    found: dict[L, list[RunRecord]] = {case: [] for case in every}
    began = time.monotonic()
    order = random.Random(0)
    bench.run(every[0])  # the very first run is an outlier
    for block in range(blocks):
        if block and time.monotonic() - began > 60 * minutes:
            print(f"stopped after {block} of {blocks} blocks: {minutes:g} minutes are over")
            break
        for case in order.sample(every, len(every)):
            found[case].append(bench.run(case))
    return found


def seconds(records: list[RunRecord]) -> list[float]:
    return [record.value_s for record in records]


def against_flat(flat: list[RunRecord], records: list[RunRecord]) -> Comparison:
    return compare(seconds(flat), seconds(records))


def ratio(comparison: Comparison) -> Point:
    """Time over that of flat MPI: median, and low and high end of its interval."""
    return (
        1 / (1 + comparison.gain),
        1 / (1 + comparison.hi),
        1 / (1 + comparison.lo),
    )


def middle(records: list[RunRecord], key: str) -> float:
    """Median of one figure of the program's JSON line."""
    return statistics.median(float(record.extra[key]) for record in records)


def row(case: Case, flat: list[RunRecord], records: list[RunRecord]) -> dict[str, Any]:
    """A line of the tables; times in seconds, parts as means per core."""
    time_s = estimate(seconds(records))
    value, low, high = ratio(against_flat(flat, records))
    line: dict[str, Any] = {
        "case": case.name,
        "layout": f"{case.processes} x {case.workers}",
        "solver_s": f"{time_s.median:.4f}",
        "from..to": f"{time_s.lo:.4f}..{time_s.hi:.4f}",
        "time/mpi": f"{value:.3f}" if case.variant != "mpi" else "1",
        "interval": f"{low:.3f}..{high:.3f}" if case.variant != "mpi" else "-",
    }
    line |= {key.removesuffix("_s"): f"{middle(records, key):.3f}" for key in BREAKDOWN}
    line |= {"messages": f"{middle(records, 'messages'):.0f}"}
    line |= {"MB": f"{middle(records, 'bytes') / 1e6:.1f}"}
    return line


def draw(found: dict[Case, list[RunRecord]], flat: list[RunRecord], path: Path, title: str) -> None:
    """Draw the curve over the factor into a file."""
    lines = {
        variant: {
            case.factor: ratio(against_flat(flat, records))
            for case, records in found.items()
            if case.variant == variant and not (case.before or case.tuned or case.apart)
        }
        for variant in CURVES
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    text = curve(lines, title, "ranks per core", "time / time of flat MPI")
    path.write_text(text, encoding="utf-8")
