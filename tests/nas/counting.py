"""Run kernels on a communicator that counts, and print what each rank sent.

``mpirun -n RANKS python -m tests.nas.counting CLASS KERNEL...`` prints one line of JSON per kernel:
its checks, and for every rank the messages of the timed part.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from runner.programs.apps.common.mpi import run, single_threaded_blas

single_threaded_blas()

PASSED_ON = {"rank", "size"}
SENDS = {"Send", "Isend"}
RECEIVES = {"Recv", "Irecv"}
COLLECTIVES = {"Allreduce", "Alltoall", "Alltoallv", "Allgather", "Reduce", "Bcast", "Barrier"}


class Counting:
    """A communicator that counts ``(operation, peer, bytes)`` while ``counting`` is set, also on
    the parts made of it by ``Split`` (there the peer is a rank of the part).

    Anything that is not on buffers (the lower-case, pickling methods) is then refused.
    """

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._parts: list[Counting] = []
        self.counting = False
        self.sent: Counter[tuple[str, int, int]] = Counter()

    def Split(self, color: int, key: int) -> Counting:
        part = Counting(self._comm.Split(color, key))
        part.sent = self.sent
        self._parts.append(part)
        return part

    def count(self, on: bool) -> None:
        for comm in (self, *self._parts):
            comm.counting = on

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._comm, name)
        if not self.counting or name in PASSED_ON | RECEIVES:
            return method
        if name in SENDS:
            return self._counted(name, method, lambda arguments: arguments[1])
        if name in COLLECTIVES:
            return self._counted(name, method, lambda arguments: -1)
        raise AssertionError(f"{name} in the timed part")

    def _counted(self, name: str, method: Any, peer: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self.sent[name, peer(arguments), _bytes(arguments[0]) if arguments else 0] += 1
            return method(*arguments, **options)

        return call


def _bytes(buffer: Any) -> int:
    """Bytes of an array, or of the counted part of ``[array, (counts, places)]``."""
    if isinstance(buffer, list):
        array, (counts, _) = buffer
        return int(sum(counts)) * int(array.itemsize)
    return int(buffer.nbytes)


def counted(comm: Any, build: Callable[[Any], Any]) -> dict[str, Any]:
    """Run the kernel that ``build(comm)`` makes: whether it is right, how many numbers were
    checked, and on rank 0 what every rank sent in the timed part."""
    counting = Counting(comm)
    kernel = build(counting)
    kernel.prepare()
    counting.count(True)
    kernel.solve()
    counting.count(False)
    checks = kernel.checks()
    mine = [[*key, count] for key, count in sorted(counting.sent.items())]
    return {
        "right": all(check.right for check in checks),
        "checks": len(checks),
        "sent": comm.gather(mine),
    }


def main(comm: Any) -> int:
    problem_class, *names = sys.argv[1:]
    for name in names:
        module = importlib.import_module(f"runner.programs.nas.{name}")
        build = functools.partial(module.build, problem=module.PROBLEMS[problem_class])
        result = counted(comm, build)
        if comm.rank == 0:
            print(json.dumps({"kernel": name, **result}), flush=True)
    return 0


if __name__ == "__main__":
    run("counting", "single", main)
