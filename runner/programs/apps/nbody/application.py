"""One run: steps of time with an allgather each, checks, and the output."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from runner.programs.apps.common.errors import AppError
from runner.programs.apps.common.intranode import run_program
from runner.programs.apps.common.mpi import agree
from runner.programs.apps.common.report import json_line
from runner.programs.apps.nbody.bodies import plummer
from runner.programs.apps.nbody.options import Options, parse
from runner.runtimes.core.kernels import load
from runner.runtimes.intranode.mcoll import MultiObject

_STACK = 480
"""Cells on the stack of a walk through the tree (kernels.STACK)."""
_SAMPLE = 32
"""Bodies of a rank whose force is compared with the direct sum."""
MOST_ERROR, MOST_ENERGY, MOST_MOMENTUM = 0.05, 0.02, 0.02
"""Bounds: relative error of forces (root mean square), drift of energy, momentum."""


class System:
    """The bodies of one rank (``own``), and those of all in ``everyone``."""

    def __init__(self, comm: Any, options: Options) -> None:
        self.comm, self.options = comm, options
        count = options.bodies
        each = -(-count // comm.size)
        first = min(comm.rank * each, count)
        last = min(first + each, count)
        bodies, velocities = plummer(count, options.seed)
        # Every rank sends equally many; entries without a body come last.
        self.own, self.gather_buffer = np.zeros((each, 4)), np.zeros((each * comm.size, 4))
        self.own[: last - first] = bodies[first:last]
        self.velocities = velocities[first:last].copy()
        self.everyone = self.gather_buffer[:count]
        room = 4 * count + 64
        self._children, self._chain = np.zeros((room, 8), np.int64), np.zeros(count, np.int64)
        self._cells, self._status = np.zeros((room, 5)), np.zeros(4)
        self.forces, self._potential = np.zeros((last - first, 3)), np.zeros(last - first)
        self._terms = np.zeros(2 + _STACK)
        self._terms[:2] = options.theta**2, options.softening**2
        self._numbers = np.array([count, room, first, last], np.uint64)
        self.number = last - first
        kernels = load("runner.programs.apps.nbody.kernels")
        tree = self.everyone, self._children, self._chain, self._cells
        self._build = kernels.bind("build", *tree, self._status, self._numbers)
        self._accelerate = kernels.bind(
            "accelerate", *tree, self.forces, self._terms, self._numbers
        )
        self._direct_forces = np.zeros((last - first, 3))
        self._direct = kernels.raw("direct")

    def accelerate(self) -> None:
        """Forces on the own bodies; raises :class:`AppError` if the tree needs too much memory."""
        self._build()
        if not self._status[0]:
            raise AppError(
                "the bodies are too close to each other for the octree: other --seed",
                code="app_option.size",
            )
        if self.number:
            self._accelerate()

    def error(self) -> float:
        """Relative error of the forces on some bodies, root mean square over all ranks."""
        sample = min(self.number, _SAMPLE)
        self._sum_directly(sample)
        off = self.forces[:sample] - self._direct_forces[:sample]
        return float(
            np.sqrt(
                self._sum((off**2).sum()) / self._sum((self._direct_forces[:sample] ** 2).sum())
            )
        )

    def _sum_directly(self, number: int) -> None:
        numbers = self._numbers.copy()
        numbers[3] = numbers[2] + number
        arrays = self.everyone, self._direct_forces, self._potential, self._terms, numbers
        self._direct(*(array.ctypes.data for array in arrays))

    def energy(self) -> float:
        """Kinetic and potential energy of all bodies, by direct sums."""
        self._sum_directly(self.number)
        masses = self.own[: self.number, 3]
        kinetic = 0.5 * (masses * (self.velocities**2).sum(axis=1)).sum()
        return self._sum(kinetic + 0.5 * self._potential.sum())

    def momentum(self) -> float:
        """The momentum of all bodies as a share of the sum of its absolute values."""
        own = self.own[: self.number, 3, None] * self.velocities
        whole = [self._sum(value) for value in own.sum(axis=0)]
        return float(np.linalg.norm(whole)) / self._sum(np.abs(own).sum())

    def _sum(self, value: Any) -> float:
        every: list[float] = self.comm.allgather(float(value))
        return sum(every)

    def kick(self, dt: float) -> None:
        """Change the velocities by the forces."""
        self.velocities += dt * self.forces

    def drift(self, dt: float) -> None:
        """Move the own bodies."""
        self.own[: self.number, :3] += dt * self.velocities


def main(comm: Any, arguments: list[str]) -> int:
    """The program on one rank; returns the exit code.

    Raises :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    return run_program(comm, "nbody", lambda: parse(arguments), _run)


def _run(comm: Any, options: Options) -> int:
    system = agree(comm, lambda: System(comm, options))
    mcoll: MultiObject | None = None
    gather: Callable[[], Any] = lambda: comm.Allgather(system.own, system.gather_buffer)  # noqa: E731
    if options.variant == "mcoll":
        mcoll = agree(comm, lambda: MultiObject(comm, options.config, options.nodes))
        gather = agree(comm, lambda: mcoll.allgather_init(system.own, system.gather_buffer)).run
    gather()
    agree(comm, system.accelerate)
    error, energy = system.error(), system.energy()
    seconds, gathering = _steps(comm, system, options, gather)
    drift = abs(system.energy() / energy - 1.0)
    momentum = system.momentum()
    right = error <= MOST_ERROR and drift <= MOST_ENERGY and momentum <= MOST_MOMENTUM
    if comm.rank == 0:
        digest = hashlib.sha256(system.everyone.tobytes()).hexdigest()[:16]
        us = 1e6 * seconds / options.steps
        print(f"{options.bodies} bodies, {options.steps} steps, {comm.size} ranks, "
              f"{options.variant}")  # fmt: skip
        print(f"error of forces {error:.2e}, drift of energy {drift:.2e}, momentum {momentum:.2e}")
        print(f"{seconds:.4f} s, {gathering:.4f} s in allgather, {us:.1f} us a step")
        print("the data are right" if right else "verification failed: a bound is exceeded")
        nodes = (mcoll.topology.nodes, mcoll.assumed) if mcoll else (None, None)
        result = {
            "app": "nbody",
            "variant": options.variant,
            "ranks": comm.size,
            "nodes": nodes[0],
            "assumed": nodes[1],
            "bodies": options.bodies,
            "steps": options.steps,
            "theta": options.theta,
            "seconds": seconds,
            "allgather_s": gathering,
            "us": us,
            "force_error": error,
            "energy_drift": drift,
            "momentum": momentum,
            "digest": digest,
            "configured": options.config_source,
            "verified": right,
        }
        print(json_line(result), flush=True)
    if mcoll:
        mcoll.close()
    return 0 if right else 1


def _steps(
    comm: Any, system: System, options: Options, gather: Callable[[], Any]
) -> tuple[float, float]:
    """Leapfrog (kick, drift, kick); seconds of the slowest rank, in all and in allgather."""
    half = 0.5 * options.dt
    gathering = 0.0
    comm.Barrier()
    begin = perf_counter()
    for _ in range(options.steps):
        system.kick(half)
        system.drift(options.dt)
        before = perf_counter()
        gather()
        gathering += perf_counter() - before
        system.accelerate()
        system.kick(half)
    seconds = perf_counter() - begin
    every = comm.allgather((seconds, gathering))
    return max(answer[0] for answer in every), max(answer[1] for answer in every)
