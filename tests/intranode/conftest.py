"""Starting ranks, for all tests of the libraries of a node."""

from __future__ import annotations

import subprocess

import pytest

from runner.mpi.library import Library
from tests.intranode.programs import Start
from tests.started import python_ranks


@pytest.fixture
def start(open_mpi: Library) -> Start:
    """``start(ranks, "-m", "module", ...)`` runs Python under mpirun and waits for it."""

    def run(
        ranks: int, *words: str, more: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        return python_ranks(open_mpi, ranks, words, more)

    return run
