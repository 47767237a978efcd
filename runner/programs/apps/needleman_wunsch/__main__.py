"""Entry: ``mpirun -n RANKS python -m runner.programs.apps.needleman_wunsch`` (see ``--help``)."""

import sys

from runner.programs.apps.common.mpi import run, single_threaded_blas

single_threaded_blas()

from runner.programs.apps.needleman_wunsch.application import main  # noqa: E402
from runner.programs.apps.needleman_wunsch.options import thread_level  # noqa: E402

if __name__ == "__main__":
    words = sys.argv[1:]
    run("needleman-wunsch", thread_level(words), lambda comm: main(comm, words))
