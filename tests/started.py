"""Starting real MPI programs without the runner."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

from runner.mpi.openmpi import OpenMPI


def started(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """The finished command; started again where the launcher failed before any rank ran.

    The runner does the same: Open MPI 5's launcher fails so now and then on a busy machine.
    """
    for _attempt in range(3):
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
        if not any(words in done.stdout + done.stderr for words in OpenMPI.hiccups):
            break
    return done
