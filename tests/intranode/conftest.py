"""Starting ranks, for all tests of the libraries of a node."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

import pytest

from runner.mpi.library import Library
from tests.apps import commands
from tests.apps.conftest import WAITING
from tests.intranode.programs import Commands, Finished, Start
from tests.started import python_ranks


@pytest.fixture(scope="session")
def start(open_mpi: Library) -> Start:
    """``start(ranks, "-m", "module", ...)`` runs Python under mpirun and waits for it."""

    def run(
        ranks: int, *words: str, more: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        return python_ranks(open_mpi, ranks, words, [*WAITING, *more])

    return run


@pytest.fixture(scope="session")
def lines(start: Start) -> Commands:
    """``lines(ranks, [["module", ...], ...])`` runs all of these programs by one job."""

    def run(ranks: int, words: Sequence[Sequence[str]]) -> list[commands.Process]:
        return commands.ended(start(ranks, "-m", commands.MODULE, json.dumps(words)), words)

    return run


@pytest.fixture(scope="module")
def shared(request: pytest.FixtureRequest, start: Start, lines: Commands) -> Start:
    """``shared(ranks, "module", ...)`` gives what one of the short programs has said.

    TOGETHER of the test's file has those of each number of ranks, which run as one job; any other
    program runs alone.
    """
    together: dict[int, list[tuple[str, ...]]] = request.module.TOGETHER
    jobs: dict[int, dict[tuple[str, ...], Finished]] = {}

    def run(ranks: int, *words: str) -> Finished:
        if words not in together.get(ranks, ()):
            return start(ranks, "-m", *words)
        if ranks not in jobs:
            jobs[ranks] = dict(zip(together[ranks], lines(ranks, together[ranks]), strict=True))
        return jobs[ranks][words]

    return run
