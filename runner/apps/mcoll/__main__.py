"""Entry: ``mpirun -n RANKS python -m runner.apps.mcoll`` (``--help`` lists the options)."""

import sys

from runner.apps.common_mpi import run, single_threaded_blas

single_threaded_blas()

from runner.apps.mcoll.application import main  # noqa: E402

if __name__ == "__main__":
    run("mcoll", "single", lambda comm: main(comm, sys.argv[1:]))
