"""Entry: ``mpirun -n RANKS python -m runner.programs.apps.cannon`` (``--help``: options)."""

from time import perf_counter

_BEGIN = perf_counter()

import sys  # noqa: E402  (the clock starts before anything heavy is imported)

from runner.programs.apps.common.mpi import run, single_threaded_blas  # noqa: E402

single_threaded_blas()

from runner.programs.apps.cannon.application import main  # noqa: E402
from runner.programs.apps.cannon.options import thread_level  # noqa: E402

if __name__ == "__main__":
    words = sys.argv[1:]
    run("cannon", thread_level(words), lambda comm: main(comm, words, _BEGIN))
