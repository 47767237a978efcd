"""Entry: ``mpirun -n RANKS python -m runner.apps.jacobi3d`` (``--help`` lists the options)."""

from time import perf_counter

_BEGIN = perf_counter()

import sys  # noqa: E402  (the clock starts before anything heavy is imported)

from runner.apps.common_mpi import run, single_threaded_blas  # noqa: E402

single_threaded_blas()

from runner.apps.jacobi3d.application import main  # noqa: E402

if __name__ == "__main__":
    run("jacobi3d", "single", lambda comm: main(comm, sys.argv[1:], _BEGIN))
