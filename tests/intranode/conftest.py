"""Starting ranks, for all tests of the libraries of a node."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

import pytest

from runner.mpi.library import Library
from tests.apps import commands
from tests.apps.conftest import WAITING
from tests.intranode.programs import Commands, Start
from tests.started import python_ranks


@pytest.fixture
def start(open_mpi: Library) -> Start:
    """``start(ranks, "-m", "module", ...)`` runs Python under mpirun and waits for it."""

    def run(
        ranks: int, *words: str, more: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        return python_ranks(open_mpi, ranks, words, [*WAITING, *more])

    return run


@pytest.fixture
def lines(start: Start) -> Commands:
    """``lines(ranks, [["module", ...], ...])`` runs all of these programs by one job."""

    def run(ranks: int, words: Sequence[Sequence[str]]) -> list[commands.Process]:
        return commands.ended(start(ranks, "-m", commands.MODULE, json.dumps(words)), words)

    return run
