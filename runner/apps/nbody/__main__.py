"""Entry: ``mpirun -n RANKS python -m runner.apps.nbody`` (``--help`` lists the options)."""

import sys

from runner.apps.common_mpi import run, single_threaded_blas

single_threaded_blas()

from runner.apps.nbody.application import main  # noqa: E402

if __name__ == "__main__":
    run("nbody", "single", lambda comm: main(comm, sys.argv[1:]))
