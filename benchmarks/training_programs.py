"""The programs from which predictions learn: patterns drawn from a seed, and known programs.

:func:`training_plan` draws the patterns (``runner.apps.pattern``) so that they fill the space of
kinds, message sizes, shares of communication and imbalances evenly (a Latin hypercube). A cost
estimate turns the share into work, and the run's length into steps. ``pattern_costs.toml`` has the
measured times on which it rests; they need to be right to a factor only.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks.common import ROOT
from benchmarks.mpi_programs import python
from benchmarks.program_cells import PLACES, Cell, Place
from runner.apps.pattern.options import KINDS, WORD

COSTS = ROOT / "benchmarks" / "pattern_costs.toml"
SIZES = 8, 1 << 20
"""Smallest and largest message, bytes; the logarithm is drawn evenly."""
SHARES = 0.05, 0.9
"""Share of a run's time that is not computing."""
IMBALANCES = 0.0, 0.4
SECONDS = 0.6, 1.0
"""Length of a run by the estimate."""
RANKS = 2, 4
FEWEST_STEPS = 3
CORES = 2
"""Cores for which the costs were measured; more ranks share them."""
METRIC, VERIFY = "json:seconds", "json:verified"
NAS_CLASSES = {
    "is": "WA", "ep": "SW", "cg": "WA", "mg": "WA", "ft": "WA", "lu": "SW", "bt": "SW", "sp": "SW",
}  # fmt: skip
"""Two classes of each NAS-style kernel, the smaller one first."""
SQUARE = ("bt", "sp")
"""Kernels for a square number of ranks."""
MATED = {
    "jacobi3d": ("small", "face"),
    "cannon": ("small",),
    "cloverleaf3d": ("small",),
    "flowcart": ("small",),
}
"""Applications for the MATE runtime, with inputs; they are run as flat MPI."""
HYBRID = {
    "jacobi3d-openmp": ("runner.apps.jacobi3d", "--input", "face", "--variant", "openmp"),
    "cg-openmp": ("runner.nas", "cg", "--class", "S", "--openmp"),
}
"""Programs with two OpenMP threads in each rank."""


@dataclass(frozen=True)
class PatternProgram:
    """One drawn pattern; the options of ``runner.apps.pattern`` with ranks and place."""

    kind: str
    size: int
    """Bytes of a message."""
    steps: int
    work: int
    """Calls of the kernel in a step."""
    imbalance: float
    seed: int
    ranks: int
    place: Place
    share: float
    """Share of the time that is not computing, by the estimate."""
    seconds: float
    """Length of the timed part, by the estimate."""

    @property
    def name(self) -> str:
        """Kind and options, without ranks and place."""
        return f"{self.kind}-{self.size}-{self.work}-{self.imbalance}-{self.seed}"

    def cell(self) -> Cell:
        words = python(
            "runner.apps.pattern", self.kind, "--size", f"{self.size}", "--steps", f"{self.steps}",
            "--work", f"{self.work}", "--imbalance", f"{self.imbalance}", "--seed", f"{self.seed}",
        )  # fmt: skip
        return Cell(self.name, self.ranks, self.place, tuple(words), None, None, METRIC, VERIFY)


def training_plan(seed: int, count: int) -> list[PatternProgram]:
    """``count`` patterns; the same for the same seed on every machine.

    Every kind, number of ranks and place has an equal part, to within one.
    """
    if count < 1:
        raise ValueError(f"count {count}: expected 1 or more")
    draw = np.random.default_rng(seed)
    points = latin_hypercube(draw, count, 7)
    kinds = list(KINDS)
    return [_program(kinds, number, point.tolist()) for number, point in enumerate(points)]


def latin_hypercube(draw: np.random.Generator, count: int, axes: int) -> Any:
    """``count`` points in the unit cube; each of ``count`` slices of every axis has one."""
    slices = draw.permuted(np.tile(np.arange(count), (axes, 1)), axis=1).T
    return (slices + draw.random((count, axes))) / count


def _program(kinds: list[str], number: int, point: list[float]) -> PatternProgram:
    """The program at a point of the unit cube; ``number`` is also its seed."""
    kind, ranks, place, size, share, imbalance, length = point
    chosen = kinds[int(kind * len(kinds))]
    there = PLACES[int(place * len(PLACES))]
    on = RANKS[int(ranks * len(RANKS))]
    low, high = SIZES
    words = round(low * (high / low) ** size / WORD)
    seconds = between(SECONDS, length)
    bytes_ = words * WORD
    message_us = communication_us(chosen, bytes_, on, there)
    call_us = kernel_us(on)
    # A step must be short enough for some steps in a run.
    least = FEWEST_STEPS * message_us * 1e-6 / seconds
    wanted = min(max(between(SHARES, share), least), SHARES[1])
    work = round(message_us * (1 - wanted) / wanted / call_us)
    step_us = message_us + work * call_us
    steps = max(round(seconds * 1e6 / step_us), FEWEST_STEPS)
    return PatternProgram(
        kind=chosen,
        size=bytes_,
        steps=steps,
        work=work,
        imbalance=round(between(IMBALANCES, imbalance), 3),
        seed=number,
        ranks=on,
        place=there,
        share=message_us / step_us,
        seconds=steps * step_us * 1e-6,
    )


def between(bounds: tuple[float, float], part: float) -> float:
    """The value at ``part`` (0 to 1) of the way from the first bound to the second."""
    low, high = bounds
    return low + (high - low) * part


@cache
def costs() -> dict[str, Any]:
    """The measured times; :data:`COSTS` says what they are."""
    return tomllib.loads(COSTS.read_text(encoding="utf-8"))


def communication_us(kind: str, size: int, ranks: int, place: Place) -> float:
    """Microseconds of a step without work: between measured sizes by a straight line."""
    table = costs()
    return float(np.interp(size, table["sizes"], table[f"{place}-{ranks}"][kind]))


def kernel_us(ranks: int) -> float:
    """Microseconds of wall time of a call of the kernel on all ranks."""
    return float(costs()["kernel_us"]) * max(1.0, ranks / CORES)


def known_cells() -> list[Cell]:
    """The NAS-style kernels, the applications for MATE as flat MPI, and the hybrid programs.

    They are run on one node: with the testbed's latency most of them take many seconds.
    """
    found = []
    for ranks in RANKS:
        for kernel, classes in NAS_CLASSES.items():
            if kernel in SQUARE and ranks != 4:
                continue
            found += [
                Cell(f"nas-{kernel}-{name}", ranks, "node", app=f"nas-{kernel}", input=name)
                for name in classes
            ]
        for app, inputs in MATED.items():
            found += [Cell(f"{app}-{name}", ranks, "node", app=app, input=name) for name in inputs]
    for name, words in HYBRID.items():
        metric = "json:solver_s"
        line = ("env", "OMP_NUM_THREADS=2", *python(*words))
        found.append(Cell(name, 2, "node", line, None, None, metric, VERIFY))
    return found
