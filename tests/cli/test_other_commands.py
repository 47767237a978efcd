from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


def test_apps(cli: Cli) -> None:
    assert "jacobi3d" in cli("apps").out
    assert "tiny" in cli("apps", "jacobi3d").out
    assert cli("apps", "nothing").code == 2
    names = [a["name"] for a in json.loads(cli("apps", "--json", "-").out)]
    assert "jacobi3d" in names


def test_version_and_help(cli: Cli) -> None:
    assert "autotune" in cli("--version").out
    assert "search" in cli("--help").out


@pytest.mark.mpi
def test_doctor(cli: Cli, library: object) -> None:
    outcome = cli("doctor")
    assert outcome.code == 0
    assert "start-up" in outcome.out
    found = {f["what"] for f in json.loads(cli("doctor", "--quick", "--json", "-").out)["findings"]}
    assert {"machine", "MPI", "inherited MPI settings"} <= found


@pytest.mark.mpi
def test_doctor_lists_inherited_settings(
    cli: Cli, library: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMPI_MCA_btl_sm_eager_limit", "8192")
    assert "OMPI_MCA_btl_sm_eager_limit = 8192" in cli("doctor", "--quick").out.replace("\n", " ")


@pytest.mark.mpi
def test_cluster_init(cli: Cli, library: object, work: Path) -> None:
    assert cli("cluster", "init", "mine").code == 0
    assert (work / "configs" / "clusters" / "mine.toml").exists()
    assert "mine" in cli("cluster", "list").out
    assert cli("cluster", "init", "mine").code == 2
    assert cli("cluster", "init", "../evil").code == 2
