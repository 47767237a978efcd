"""A rank is outside of the library while others work on its memory; prints what went wrong.

Nobody measures time: where progress is expected, the first rank waits for it, and the program would
hang without; where none is expected, counters and memory are looked at after a pause.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from runner.runtimes.intranode.daps import Config, Daps, Request, Window
from runner.runtimes.intranode.daps.daps_records import OWNER

_PAUSE_S = 0.2
_GO = 5
"""Tag of MPI's message that lets the target go on."""
SMALL, LARGE = 10, 5000
"""Elements of messages that are eager, and that are not."""


class Case:
    """One rank: the first one is the origin, ``target`` sleeps, all others wait and may help."""

    def __init__(self, daps: Daps, target: int) -> None:
        self.daps, self.target = daps, target
        self.memory = daps.zeros((6, 8))
        self.counter = daps.zeros(1, np.int64)
        self.memory[...] = 1.0
        self.window: Window = daps.window(self.memory)
        self.numbers: Window = daps.window(self.counter)
        self.source, self.back = daps.zeros((3, 4)), daps.zeros((3, 4))
        self.source[...] = np.arange(12.0).reshape(3, 4)
        self.part, self.other = (slice(0, 6, 2), slice(0, 8, 2)), (slice(1, 6, 2), slice(0, 8, 2))
        self.messages = [daps.zeros(n) for n in (SMALL, LARGE, SMALL, LARGE)]
        self.wrong: list[str] = []

    def expect(self, what: str, good: Any) -> None:
        if not good:
            self.wrong.append(f"{self.daps.config.progress}: {what}")

    def run(self, progress: bool) -> None:
        """The origin works on the target's memory, which ``progress`` lets it end."""
        self.memory[...], self.counter[...], self.back[...] = 1.0, 0, 0.0
        self.memory[1::2] = 2.0
        for number, message in enumerate(self.messages):
            message[:] = number + 1.0 if self.daps.rank == 0 else 0.0
        self.daps.barrier()
        if self.daps.rank == 0:
            self.originate(progress)
        elif self.daps.rank == self.target:
            self.sleep(progress)
        self.daps.barrier()
        if self.daps.rank == self.target:
            self.expect("memory", np.array_equal(self.memory[self.part], 1 + 2 * self.source))
            self.expect("messages", [m[-1] for m in self.messages] == [1.0, 2.0, 3.0, 4.0])
        elif self.daps.rank == 0:
            self.expect("get", (self.back == 2.0).all())

    def originate(self, progress: bool) -> None:
        daps, window, target = self.daps, self.window, self.target
        daps.comm.recv(source=target, tag=_GO)
        window.accumulate(target, self.source, self.part)
        window.get(target, self.back, self.other)
        window.accumulate(target, self.source, self.part)
        sends = [daps.isend(one, target, tag) for tag, one in enumerate(self.messages)]
        if progress:
            daps.flush()
            self.expect("number", self.numbers.fetch_add(target, 0, 5) == 0)
            daps.waitall(sends)
        else:
            time.sleep(_PAUSE_S)
        daps.comm.send(None, target, _GO)
        if not progress:
            daps.flush()
            self.expect("number", self.numbers.fetch_add(target, 0, 5) == 0)
            daps.waitall(sends)

    def sleep(self, progress: bool) -> None:
        daps = self.daps
        coming: list[Request] = [daps.irecv(m, 0, tag) for tag, m in enumerate(self.messages)]
        # Only now does the first rank begin.
        before = daps.counts
        daps.comm.send(None, 0, _GO)
        daps.comm.recv(source=0, tag=_GO)
        after = daps.counts
        self.expect("no step of its own", after.own == before.own)
        if progress:
            self.expect("steps by others", after.given > before.given)
            self.expect("counter", self.counter[0] == 5)
            # Those of another node may still be on their way.
            same = daps.nodes[0] == daps.nodes[daps.rank]
            self.expect("received", not same or all(request.over for request in coming))
        else:
            self.expect("no steps by others", after.given == before.given)
            self.expect("untouched", (self.memory[::2] == 1.0).all() and self.counter[0] == 0)
            self.expect("not received", not any(request.over for request in coming))
        daps.waitall(coming)

    def held(self) -> None:
        """Rule 1: nobody makes the progress of a rank for which somebody is said to make it."""
        daps = self.daps
        daps.barrier()
        record = daps.record_of(daps.rank)
        if daps.rank == self.target:
            record[OWNER.in_progress >> 3] = 1000
        daps.comm.Barrier()
        if daps.rank == 0:
            self.window.put(self.target, self.source, self.part)
            time.sleep(_PAUSE_S)
            daps.comm.send(None, self.target, _GO)
            daps.flush()
        elif daps.rank == self.target:
            before = daps.counts
            daps.comm.recv(source=0, tag=_GO)
            self.expect("held", daps.counts == before)
            record[OWNER.in_progress >> 3] = 0
        daps.barrier()

    def unexpected(self, likely: bool) -> None:
        """Rule 2: without a window or receive, a letter is handled by others only if asked."""
        daps = self.daps
        daps.barrier()
        if daps.rank == 0:
            daps.comm.recv(source=self.target, tag=_GO)
            request = daps.isend(self.messages[0], self.target, 9)
            if likely:
                # A short letter is over when it is copied to the receiver's memory.
                daps.wait(request)
            else:
                time.sleep(_PAUSE_S)
                self.expect("not handled", not request.over)
            daps.comm.send(None, self.target, _GO)
            if not likely:
                daps.wait(request)
        elif daps.rank == self.target:
            before = daps.counts.given
            daps.comm.send(None, 0, _GO)
            daps.comm.recv(source=0, tag=_GO)
            self.expect("unexpected", (daps.counts.given > before) is likely)
            daps.recv(self.messages[0], 0, 9)
        daps.barrier()


def main(nodes: int) -> int:
    """Returns 1 if something is wrong."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    daps = Daps(comm, Config(eager=8 * SMALL), nodes)
    target = next((r for r in range(daps.size) if daps.nodes[r]), 1)
    case = Case(daps, target)
    for progress in ("none", "thread", "ghosts", "dynamic", "none"):
        for order in ("network-first", "shm-first"):
            daps.configure(Config(progress=progress, order=order, eager=8 * SMALL))
            case.run(progress != "none")
    case.held()
    case.window.free()
    case.numbers.free()
    if nodes == 1:
        for likely in (True, False, True):
            daps.configure(Config(filter=not likely, eager=8 * SMALL))
            case.unexpected(likely)
    wrong = [text for one in comm.allgather(case.wrong) for text in one]
    daps.close()
    if wrong and comm.rank == 0:
        print("\n".join(wrong), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
