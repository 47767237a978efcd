"""Tasks that talk in pairs across processes; as a program, under many configurations."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np

from runner.runtimes import tpod


class Pair(tpod.Task):
    """Adds what its partner sends to its own number; ``form`` is how they talk."""

    def __init__(self, number: int, partner: tpod.Partner, leads: bool, form: int) -> None:
        super().__init__([partner])
        self.leads, self.form, self.steps = int(leads), form, 0
        self.value = np.array([number + 1.0])
        self.mine, self.theirs = np.zeros(300), np.zeros(300)

    def step(self, step: int) -> None:
        """Talk, and add."""
        if self.form == 2 and step == 0:
            self.ctx.post(self.theirs, self.peers[0], 5)
        self.mine[0] = self.value[0]
        self.mine[299] = self.value[0]
        if self.form == 0:
            if self.leads != 0:
                self.ctx.send(self.mine, self.peers[0], 5)
                self.ctx.recv(self.theirs, self.peers[0], 5)
            else:
                self.ctx.recv(self.theirs, self.peers[0], 5)
                self.ctx.send(self.mine, self.peers[0], 5)
        elif self.form == 1:
            self.ctx.irecv(self.theirs, self.peers[0], 5)
            self.ctx.isend(self.mine, self.peers[0], 5)
            self.ctx.wait()
        else:
            self.ctx.send(self.mine, self.peers[0], 5)
            self.ctx.take()
        self.value[0] = self.value[0] % 1000 + 2 * (self.theirs[0] + self.theirs[299])
        if self.form == 2 and step + 1 < self.steps:
            self.ctx.post(self.theirs, self.peers[0], 5)


def expected(number: int, other: int, steps: int) -> float:
    """The value of the task ``number`` whose partner is the task ``other``."""
    a, b = number + 1.0, other + 1.0
    for _ in range(steps):
        a, b = a % 1000 + 4 * b, b % 1000 + 4 * a
    return a


def run(comm: Any, config: tpod.Config, count: int, steps: int, form: int) -> bool:
    """Whether all values are right; ``comm`` has an even number of processes."""
    runtime = tpod.Tpod(comm, config)
    other = comm.rank ^ 1
    tasks = []
    for number in range(count):
        mirror = (number * 7 + 3) % count if comm.rank < other else 0
        if comm.rank > other:
            (mirror,) = [n for n in range(count) if (n * 7 + 3) % count == number]
        task = Pair(count * comm.rank + number, (other, mirror), comm.rank < other, form)
        task.steps = steps
        tasks.append((task, count * other + mirror))
        runtime.spawn(task)
    for number, (task, _) in enumerate(tasks):
        task.after = [n for n in (number - 1, number + 1) if 0 <= n < count]
    runtime.run(steps)
    runtime.finalize()
    return all(
        task.value[0] == expected(count * comm.rank + number, mirror, steps)
        for number, (task, mirror) in enumerate(tasks)
    )


def main() -> int:
    """Run configurations drawn at random; returns 1 if a result is wrong."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    for seed in range(int(sys.argv[1])):
        dice = random.Random(seed)
        workers = dice.randint(1, 3)
        config = tpod.Config(
            workers=workers,
            pinning="none",
            barrier=dice.choice(("global", "process", "neighbours")),
            queue=dice.choice(("shared", "private", "stealing")),
            polls=dice.choice((0, 3, 100)),
            thread_level=dice.choice(("multiple", "serialized", "funneled")),
            schedule_seed=seed,
        )
        # Seven has no common factor with these.
        count, steps, form = dice.choice((1, 2, 5, 10)), dice.randint(0, 20), dice.randint(0, 2)
        right = run(comm, config, count, steps, form)
        if not all(comm.allgather(right)):
            print(f"seed {seed} is wrong: {config}, {count} tasks, form {form}", flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
