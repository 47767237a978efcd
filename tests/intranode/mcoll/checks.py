"""Checks under real MPI: all algorithms against plain MPI; prints what was wrong, or nothing.

    mpirun -n RANKS python -m tests.intranode.mcoll.checks NODES[,NODES...] [SEED [all]]

Without NODES, or with 0, the nodes are those of the machine, or of FAKE_NODES: a word such as
``turns:3``, which deals the ranks out to three nodes.  With ``all`` every number of objects is
tried with every radix, otherwise each with one.
"""

from __future__ import annotations

import random
import sys
import time
import traceback
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
from mpi4py import MPI

from runner.programs.apps.mcoll import theory
from runner.runtimes.intranode.mcoll import Config, MultiObject
from runner.runtimes.intranode.mcoll.config import FORMS

COMM = MPI.COMM_WORLD
SIZES = (0, 1, 3, 8, 1000, 4099, 100_003)
KINDS = ("i1", "u2", "i4", "i8", "u8", "f4", "f8")
LARGE = 1_500_007
WAITS = ("yield", "sleep", "auto", *(["spin"] if COMM.size <= 2 else []))


def settings(made: MultiObject, dice: random.Random, full: bool) -> list[Config]:
    """All numbers of objects with all radixes, or with one; the other switches at random."""
    every = []
    for objects in range(1, made.topology.locals + 1):
        radixes = range(2, objects + 2)
        for radix in radixes if full else [dice.choice(radixes)]:
            every.append(
                Config(
                    objects=objects,
                    radix=radix,
                    overlap=dice.random() < 0.5,
                    chunks=dice.choice(("p-way", "binomial")),
                    piece=dice.choice((0, 1000, 32768)),
                    copy=dice.choice(("temporary", "publish")),
                    waiting=dice.choice(WAITS),
                    spins=dice.choice((0, 5, 100)),
                )
            )
    return every


def forms(made: MultiObject, operation: str) -> list[str]:
    nodes = made.topology.nodes
    every = FORMS[operation]
    return [form for form in every if form != "rd" or nodes & (nodes - 1) == 0]


def sent_by_all(made: MultiObject, before: Any) -> tuple[int, int]:
    """Messages and bytes between nodes since ``before``."""
    now = made.counts
    pair = np.array([now.messages - before.messages, now.bytes - before.bytes])
    COMM.Allreduce(MPI.IN_PLACE, pair)
    return int(pair[0]), int(pair[1])


class Checks:
    """The checks of one object, with delays drawn from ``dice`` (alike) and ``own`` (of a rank)."""

    def __init__(self, made: MultiObject, seed: int, full: bool) -> None:
        self.made, self.full = made, full
        self.dice, self.own = random.Random(seed), random.Random(seed + 1000 * COMM.rank)
        self.done = 0

    def pause(self) -> None:
        if self.own.random() < 0.15:
            time.sleep(self.own.random() * 2e-3)

    def traffic(self, before: Any, told: theory.Traffic, times: int) -> None:
        found = sent_by_all(self.made, before)
        assert found == (times * told.messages, times * told.bytes), (found, told)

    def allgather(self, config: Config, form: str, size: int) -> None:
        made, nodes, locals_ = self.made, self.made.topology.nodes, self.made.topology.locals
        made.configure(replace(config, allgather=form))
        send = np.zeros(size, np.uint8)
        recv = np.zeros((COMM.size, size), np.uint8)
        prepared = made.allgather_init(send, recv)
        assert prepared.form == form
        before, times = made.counts, 3
        for n in range(times):
            send[:] = np.arange(size) * 7 + COMM.rank + n
            recv[:] = 0
            self.pause()
            if n == 1:
                made.allgather(send, recv)
            else:
                prepared.run()
            for rank in range(COMM.size):
                expected = (np.arange(size) * 7 + rank + n).astype(np.uint8)
                assert np.array_equal(recv[rank], expected), (form, size, n, rank)
        if form != "library":
            k = config.objects
            self.traffic(
                before, theory.allgather(form, size, nodes, locals_, k, config.radix), times
            )
        self.done += 1

    def allreduce(self, config: Config, form: str, size: int) -> None:
        made = self.made
        made.configure(replace(config, allreduce=form))
        kind, op = np.dtype(self.dice.choice(KINDS)), self.dice.choice(("sum", "min", "max"))
        count = size // kind.itemsize
        every = [
            # Open MPI does not let sums of 1 and 2 bytes wrap around.
            np.random.default_rng([size, rank]).integers(0, 8, count).astype(kind)
            for rank in range(COMM.size)
        ]
        if kind.kind == "f":
            every = [(values / 7 - 5).astype(kind) for values in every]
        send, recv = every[COMM.rank].copy(), np.zeros(count, kind)
        plain = np.zeros(count, kind)
        COMM.Allreduce(send, plain, getattr(MPI, op.upper()))
        prepared = made.allreduce_init(send, recv, op)
        before, times = made.counts, 2
        for n in range(times):
            recv[:] = 1
            self.pause()
            if n:
                made.allreduce(send, recv, op)
            else:
                prepared.run()
            if kind.kind != "f" or op != "sum":
                assert np.array_equal(recv, plain), (form, kind, op, count)
            else:
                near = 1e-5 if kind.itemsize == 4 else 1e-13
                assert np.allclose(recv, np.sum(every, 0, np.float64), near, 100 * near)
            if form != "library":
                assert len(set(COMM.allgather(recv.tobytes()))) == 1, "bits differ"
        if form != "library":
            exact = kind.kind != "f"
            nodes, k = made.topology.nodes, config.objects
            told = theory.allreduce(form, count, kind.itemsize, nodes, k, config.radix, exact)
            self.traffic(before, told, times)
        # In place.
        prepared = made.allreduce_init(recv, recv, "max")
        prepared.run()
        if form != "library":
            assert np.array_equal(recv, np.max(COMM.allgather(recv), 0))
        self.done += 1

    def scatter(self, config: Config, size: int) -> None:
        made = self.made
        config = replace(config, scatter=self.dice.choice(("tree", "tree", "library")))
        made.configure(config)
        recv = np.zeros(size, np.int16)
        before, roots = made.counts, [self.dice.randrange(COMM.size) for _ in range(3)]
        for root in roots:
            whole = (np.arange(COMM.size * size) * 3 + root).astype(np.int16)
            self.pause()
            made.scatter(whole if COMM.rank == root else None, recv, root)
            assert np.array_equal(recv, whole[COMM.rank * size :][:size]), (root, size)
        if config.scatter == "tree":
            t = made.topology
            self.traffic(
                before, theory.scatter(2 * size, t.nodes, t.locals, config.radix), len(roots)
            )
        self.done += 1

    def in_node(self, config: Config, size: int) -> None:
        made = self.made
        made.configure(config)
        mine = made.topology.ranks[made.node]
        root = self.dice.randrange(len(mine))
        data = np.full(size, COMM.rank, np.int32)
        self.pause()
        made.node_bcast(data, root)
        assert (data == mine[root]).all()
        own, all_ = np.full(size, COMM.rank, np.int32), np.zeros((len(mine), size), np.int32)
        made.node_gather(own, all_ if made.local == root else None, root)
        assert made.local != root or (all_ == np.array(mine)[:, None]).all()
        least = np.zeros(size, np.int32)
        self.pause()
        made.node_reduce(own, least if made.local == root else None, MPI.SUM, root)
        assert made.local != root or (least == sum(mine)).all()
        made.barrier()
        self.done += 1

    def keeps_arrays(self) -> None:
        """Who has ``run`` needs neither the collective nor its arrays."""
        for form in ("bruck", "library"):
            self.made.configure(Config(allgather=form, allreduce=form))
            runs, arrays = [], []
            for _ in range(2):
                send, recv = np.zeros(9), np.zeros(9)
                runs.append(self.made.allreduce_init(send, recv).run)
                whole = np.zeros(9 * COMM.size)
                runs.append(self.made.allgather_init(send, whole).run)
                arrays += [weakref.ref(send), weakref.ref(recv), weakref.ref(whole)]
            del send, recv, whole
            assert all(array() is not None for array in arrays), form
            for run in runs:
                run()

    def mixed(self, times: int) -> None:
        """Prepared collectives with both kinds of copies in turn; nothing else keeps ranks in step.

        A rank that is late reads its data late.
        """
        made, size = self.made, 20_000
        jobs = []
        for copy in ("temporary", "publish"):
            for form in ("bruck", "ring"):
                made.configure(Config(copy=copy, allgather=form, waiting="sleep", spins=0))
                send, recv = np.zeros(size, np.int32), np.zeros((COMM.size, size), np.int32)
                jobs.append((made.allgather_init(send, recv), send, recv))
        for n in range(times):
            job, send, recv = self.dice.choice(jobs)
            send[:] = 100 * n + COMM.rank
            if self.own.random() < 0.3:
                time.sleep(self.own.random() * 1e-3)
            job.run()
            assert (recv == 100 * n + np.arange(COMM.size)[:, None]).all(), (n, job.form)
        self.done += 1

    def run(self) -> None:
        few, times, large = (3, 80, LARGE) if self.full else (2, 20, LARGE // 5)
        self.keeps_arrays()
        self.mixed(times)
        config = self.dice.choice(settings(self.made, self.dice, self.full))
        for form in forms(self.made, "allgather"):
            self.allgather(config, form, large // COMM.size)
        for form in forms(self.made, "allreduce"):
            self.allreduce(config, form, large)
        for config in settings(self.made, self.dice, self.full):
            jobs: list[Any] = []
            for job, name in ((self.allgather, "allgather"), (self.allreduce, "allreduce")):
                for form in forms(self.made, name):
                    jobs += [(job, config, form, size) for size in self.dice.sample(SIZES, few)]
            jobs += [(self.scatter, config, size) for size in self.dice.sample(SIZES[:-1], few)]
            jobs += [(self.in_node, config, size) for size in self.dice.sample(SIZES[:-1], few - 1)]
            self.dice.shuffle(jobs)
            for job, *words in jobs:
                job(*words)


def main() -> None:
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    full, done = sys.argv[3:] == ["all"], 0
    for word in sys.argv[1].split(","):
        made = MultiObject(comm_of(word), nodes=int(word.removeprefix("turns:")))
        expected = [made.topology.places[COMM.rank]]
        assert expected == [(made.node, made.local)]
        checks = Checks(made, seed, full)
        checks.run()
        made.close()
        done += checks.done
    if COMM.rank == 0:
        print(f"checks done: {done}")


def comm_of(word: str) -> Any:
    """The world; its ranks are dealt out to nodes in turn where the word says so.

    Only the question which ranks share a machine is answered otherwise.
    """
    if not word.startswith("turns:"):
        return COMM
    nodes = int(word.removeprefix("turns:"))

    from runner.runtimes.intranode.mcoll import multi_object
    from runner.runtimes.intranode.mcoll.topology import Topology

    turns = Topology.of([rank % nodes for rank in range(COMM.size)])
    multi_object.topology_of = lambda comm, asked: (turns, True)  # type: ignore[assignment]
    return COMM


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        COMM.Abort(1)
