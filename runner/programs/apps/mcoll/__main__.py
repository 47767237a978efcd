"""Entry: ``mpirun -n RANKS python -m runner.programs.apps.mcoll`` (``--help``: options)."""

import sys

from runner.programs.apps.common.mpi import run, single_threaded_blas

single_threaded_blas()

from runner.programs.apps.mcoll.application import main  # noqa: E402

if __name__ == "__main__":
    run("mcoll", "single", lambda comm: main(comm, sys.argv[1:]))
