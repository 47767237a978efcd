"""MG on MATE: every level's faces as messages between ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runner.programs.nas.common.kernel import Check
from runner.programs.nas.common.on_mate import OnMate, Place, doubling
from runner.programs.nas.common.options import Options
from runner.programs.nas.common.steps import Message, Steps
from runner.programs.nas.mg import MG, Problem, checked_log2
from runner.programs.nas.mg_charges import COUNT
from runner.programs.nas.mg_grid import Level
from runner.programs.nas.mg_halo import HIGH, LOW, Grid, Halo
from runner.runtimes.core.kernels import load


def build(comm: Any, options: Options) -> OnMate[MGRank]:
    """The kernel; raises :class:`AppUsageError` for an impossible number of ranks. Collective."""

    def place_charges(ranks: Sequence[MGRank]) -> None:
        own = np.array([rank.charges.find() for rank in ranks])
        everyone = np.zeros((comm.size * len(ranks), 2, COUNT), np.uint64)
        comm.Allgather(own, everyone)
        for rank in ranks:
            rank.charges.place_among(everyone)

    return OnMate(
        comm,
        options,
        lambda place: MGRank(place, options),
        lambda ranks: ranks[0].checks(),
        place_charges,
    )


class HaloSteps(Halo):
    """The exchange of one grid on one level as steps."""

    def write_exchange(self, steps: Steps) -> None:
        """Fill all ghosts, or set the grid to zero on a level without points."""
        if self._level.dead:
            steps.clear(self._grid)
            return
        for axis in range(3):
            own, ghosts = self._own[axis], self._ghosts[axis]
            if set(self._level.neighbours[axis]) == {self._comm.rank}:
                for direction in (LOW, HIGH):
                    steps.copy(own[direction], ghosts[direction])
                continue
            outgoing, incoming = self._outgoing[axis], self._incoming[axis]
            for direction in (HIGH, LOW):
                steps.copy(own[direction], outgoing[direction])
            steps.exchange(self._sends(axis, outgoing), self._receives(axis, incoming))
            for direction in (LOW, HIGH):
                steps.copy(incoming[direction], ghosts[direction])

    def write_spread(self, steps: Steps) -> None:
        """Pass on interpolated points to ranks without coarse points."""
        for axis in range(3):
            if self._level.takes[axis]:
                layers = self._taken_layers(axis)
                buffers = [np.zeros(layer.shape) for layer in layers]
                steps.exchange([], self._receives(axis, buffers))
                for buffer, layer in zip(buffers, layers, strict=True):
                    steps.copy(buffer, layer)
            if self._level.gives[axis]:
                layers = self._given_layers(axis)
                buffers = [np.zeros(layer.shape) for layer in layers]
                for buffer, layer in zip(buffers, layers, strict=True):
                    steps.copy(layer, buffer)
                steps.exchange(self._sends(axis, buffers), [])

    def _sends(self, axis: int, buffers: Sequence[Grid]) -> list[Message]:
        neighbours = self._level.neighbours[axis]
        return [Message(neighbours[way], buffers[way], way) for way in (HIGH, LOW)]

    def _receives(self, axis: int, buffers: Sequence[Grid]) -> list[Message]:
        neighbours = self._level.neighbours[axis]
        return [Message(neighbours[1 - way], buffers[way], way) for way in (LOW, HIGH)]


class MGRank(MG):
    """One rank: see :class:`runner.programs.nas.common.on_mate.KernelRank`."""

    _u_halo: Sequence[HaloSteps]
    _r_halo: Sequence[HaloSteps]

    def __init__(self, place: Place, options: Options) -> None:
        problem: Problem = options.problem
        super().__init__(place, problem, checked_log2(problem, place.size))
        self._partners = doubling(place.size, place.rank)
        self._steps = Steps(options.split)
        self._write_steps()
        self.program = self._steps.finish()

    def _halo(self, grid: Grid, level: Level) -> HaloSteps:
        return HaloSteps(self._comm, grid, level, self.mpi)

    def start(self) -> None:
        self._u[-1].fill(0.0)

    def begin(self) -> None:
        """Nothing is done in Python."""

    def _write_steps(self) -> None:
        self._write_residual()
        self._write_norms()
        with self._steps.repeated(self._problem.iterations):
            self._write_cycle()
            self._write_residual()
        self._write_norms()

    def _write_residual(self) -> None:
        self._steps.call(self._residual)
        self._r_halo[-1].write_exchange(self._steps)

    def _write_cycle(self) -> None:
        """One V-cycle, as in the flat form."""
        steps = self._steps
        finest = len(self._levels) - 1
        for n in range(finest - 1, -1, -1):
            steps.call(self._restrict[n])
            self._r_halo[n].write_exchange(steps)
        steps.clear(self._u[0])
        self._write_smoothing(0)
        for n in range(1, finest + 1):
            if n < finest:
                steps.clear(self._u[n])
            steps.call(self._interpolate[n - 1])
            self._u_halo[n].write_spread(steps)
            if n < finest:
                steps.call(self._residual_in_place[n])
                self._r_halo[n].write_exchange(steps)
            else:
                self._write_residual()
            self._write_smoothing(n)

    def _write_smoothing(self, n: int) -> None:
        self._steps.call(self._smooth[n])
        self._u_halo[n].write_exchange(self._steps)

    def _write_norms(self) -> None:
        own, other = self._norms_local, self._norms_global
        merge = load("runner.programs.nas.mg_mate_kernels").bind("merge_norms", own, other)
        self._steps.call(self._norms)
        for partner in self._partners:
            self._steps.exchange([Message(partner, own)], [Message(partner, other)])
            self._steps.call(merge)

    def checks(self) -> list[Check]:
        self._norm = math.sqrt(self._norms_local[1] / 8.0**self._problem.log2_points)
        return super().checks()
