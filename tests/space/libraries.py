"""Two Open MPI libraries as their (trimmed) ``ompi_info`` describes them; no MPI is needed."""

from __future__ import annotations

from pathlib import Path

from runner.mpi.library import Library
from runner.mpi.openmpi.parameters import parse_ompi_info

_DATA = Path(__file__).parents[1] / "runner" / "data"


def _library(version: str) -> Library:
    params = parse_ompi_info((_DATA / f"ompi_info_{version}.txt").read_text())
    return Library("openmpi", version, "/opt/openmpi/bin", "/opt/openmpi/bin/mpirun", params)


OLD = _library("4.1.8")
NEW = _library("5.0.11")
ONE_NODE = {"ranks": 2, "cores": 2, "nodes": 1}
CROWDED = {"ranks": 4, "cores": 2, "nodes": 1}
CLUSTER = {"ranks": 8, "cores": 8, "nodes": 4}
