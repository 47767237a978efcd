"""Starting real MPI programs without the runner."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runner.mpi.hydra import python_variables
from runner.mpi.library import Library
from runner.mpi.openmpi.adapter import OpenMPI

ROOT = Path(__file__).parents[1]
RANKS_PATH = os.pathsep.join([str(ROOT), str(ROOT / "tests/ranks")])
"""PYTHONPATH of ranks in Python, with the sitecustomize of ``tests/ranks``."""


def rank_environment() -> dict[str, str]:
    """The environment with :data:`RANKS_PATH`, for any short process of Python."""
    return {**os.environ, "PYTHONPATH": RANKS_PATH}


def started(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """The finished command; started again where the launcher failed before any rank ran.

    The runner does the same: Open MPI 5's launcher fails so now and then on a busy machine.
    """
    for _attempt in range(3):
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
        if not any(words in done.stdout + done.stderr for words in OpenMPI.hiccups):
            break
    return done


def python_ranks(
    library: Library, ranks: int, words: Sequence[str], more: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Python with these words under mpirun of Open MPI or MPICH; ``more``: options of mpirun."""
    launch, variables = [library.launcher], {}
    if library.family == "openmpi":
        launch += ["--bind-to", "none", "--oversubscribe"]
        launch += ["--mca", "pml", "ob1", "--mca", "btl", "self,sm,vader"]
    else:
        variables = python_variables(library, os.environ)
    environment = {
        **os.environ,
        **variables,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PYTHONPATH": RANKS_PATH,
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [*launch, *more, "-n", str(ranks), sys.executable, *words]
    return started(command, env=environment, cwd=ROOT, timeout=180)
