"""Entry: ``mpirun -n RANKS python -m runner.programs.apps.sparse_lu`` (``--help``: options)."""

import sys

from runner.programs.apps.common.mpi import run, single_threaded_blas

single_threaded_blas()

from runner.programs.apps.sparse_lu.application import main  # noqa: E402
from runner.programs.apps.sparse_lu.options import thread_level  # noqa: E402

if __name__ == "__main__":
    words = sys.argv[1:]
    run("sparse-lu", thread_level(words), lambda comm: main(comm, words))
