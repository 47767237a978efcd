"""Run kernels on a communicator that counts, and print what each rank sent.

``mpirun -n RANKS python -m tests.nas.counting CLASS KERNEL...`` prints one line of JSON per kernel:
its checks, and for every rank the messages of the timed part.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter
from typing import Any

from runner.apps.common_mpi import run, single_threaded_blas

single_threaded_blas()

PASSED_ON = {"rank", "size"}
SENDS = {"Send", "Isend"}
RECEIVES = {"Recv", "Irecv"}
COLLECTIVES = {"Allreduce", "Alltoall", "Alltoallv", "Allgather", "Reduce", "Bcast", "Barrier"}


class Counting:
    """A communicator that counts ``(operation, peer, bytes)`` while ``counting`` is set.

    Anything that is not on buffers (the lower-case, pickling methods) is then refused.
    """

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.counting = False
        self.sent: Counter[tuple[str, int, int]] = Counter()

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


def main(comm: Any) -> int:
    problem_class, *names = sys.argv[1:]
    for name in names:
        module = importlib.import_module(f"runner.nas.{name}")
        counting = Counting(comm)
        kernel = module.build(counting, module.PROBLEMS[problem_class])
        kernel.prepare()
        counting.counting = True
        kernel.solve()
        counting.counting = False
        checks = kernel.checks()
        mine = [[*key, count] for key, count in sorted(counting.sent.items())]
        everyone = comm.gather(mine)
        if comm.rank == 0:
            right = all(check.right for check in checks)
            line = {"kernel": name, "right": right, "checks": len(checks), "sent": everyone}
            print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    run("counting", "single", main)
