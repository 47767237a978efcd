"""One-sided calls in a search: what is tuned, and what is said where nothing is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.mpi.library import Library
from tests.cli.conftest import Cli

MESSAGES = """
from mpi4py import MPI
world = MPI.COMM_WORLD
for _ in range(100):
    world.sendrecv(world.rank, 1 - world.rank)
"""
WINDOWS = """
import numpy as np
from mpi4py import MPI
world, data = MPI.COMM_WORLD, np.zeros(1 << 16, np.uint8)
window = MPI.Win.Create(data, comm=world)
window.Fence(0)
for _ in range(20):
    window.Put(np.ones(1 << 16, np.uint8), 1 - world.rank)
    window.Fence(0)
window.Free()
"""
Program = Callable[[str], list[str]]


@pytest.fixture
def search(cli: Cli, program: Program, open_mpi: Library) -> Callable[[str, str], str]:
    """One short search without the guard; what it printed."""

    def once(source: str, space: str) -> str:
        options = ("--no-guard", "--strategy", "random", "--runs", "36", "--store", "r.db")
        done = cli("search", "--space", space, *options, "-n", "2", "--", *program(source))
        assert done.code == 0, done.err
        return " ".join(done.text.split())

    return once


@pytest.mark.mpi
@pytest.mark.slow
def test_a_program_without_windows_gets_no_parameter_of_them(
    search: Callable[[str, str], str], cli: Cli, work: Path
) -> None:
    said = search(MESSAGES, "openmpi-rma")
    assert "osc, osc_rdma_acc_use_amo" in said  # data
    study = json.loads(cli("studies", "--store", "r.db", "--json", "-").out)[0]["hash"]
    shown = json.loads(cli("show", study, "--store", "r.db", "--limit", "99", "--json", "-").out)
    assert not [one["key"] for one in shown["best"] if "osc" in one["key"]]


@pytest.mark.mpi
@pytest.mark.slow
def test_a_space_without_parameters_of_windows_is_named(
    search: Callable[[str, str], str], cli: Cli, work: Path
) -> None:
    said = search(WINDOWS, "openmpi")
    assert "openmpi+openmpi-rma" in said
    study = json.loads(cli("studies", "--store", "r.db", "--json", "-").out)[0]["hash"]
    shown = json.loads(cli("show", study, "--store", "r.db", "--json", "-").out)
    assert "rdma" in shown["carried"]["default"]["windows"]
