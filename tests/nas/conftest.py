"""Kernels run under the real mpirun, started as the applications are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apps.conftest import Finished, Launch
from tests.apps.conftest import launch as launch_app

__all__ = ["launch", "launch_app"]


@pytest.fixture
def launch(launch_app: Launch) -> Launch:
    """As for applications, but waiting ranks give way: beside other work, ranks that spin make
    the thousands of short exchanges of CG take a time slice each."""

    def run(ranks: int, *arguments: str) -> Finished:
        options: dict[str, Any] = {"env": {"OMPI_MCA_mpi_yield_when_idle": "1"}}
        return launch_app(ranks, *arguments, **options)

    return run
