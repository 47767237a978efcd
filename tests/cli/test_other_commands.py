from __future__ import annotations

import json
import sys
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
    for words in ((), ("search",), ("space",), ("space", "check")):
        assert cli(*words, "-h").out == cli(*words, "--help").out


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


@pytest.mark.mpi
def test_spaces_are_listed_shown_checked_and_discovered(
    cli: Cli, library: object, work: Path
) -> None:
    assert "openmpi-thesis" in cli("space", "list").out
    assert "mpi_yield_when_idle" in cli("space", "show", "openmpi").out
    assert cli("space", "check", "openmpi").code == 0
    assert "btl_self_eager_limit" in cli("space", "discover", "eager_limit").out
    assert cli("space", "discover", "eager_limit", "-o", "mine.toml").code == 0
    assert cli("space", "check", "mine.toml").code == 0
    (work / "old.toml").write_text("[parameters.mpi_paffinity_alone]\nlevels = [0, 1]\n")
    refused = cli("space", "check", "old.toml")
    assert refused.code == 2
    assert "bind" in refused.text


@pytest.mark.mpi
def test_noise(cli: Cli, library: object) -> None:
    outcome = cli(
        "noise", "--app", "jacobi3d", "--input", "tiny", "--no-guard", "--runs", "6",
        "--store", "r.db", "--json", "n.json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    data = json.loads(Path("n.json").read_text())
    assert data["runs"] == 6
    gains = [row["gain"] for row in data["resolvable"]]
    assert gains == sorted(gains, reverse=True)
    assert len(gains) >= 3


@pytest.mark.mpi
def test_noise_keeps_to_a_budget(cli: Cli, library: object, work: Path) -> None:
    words = ("noise", "--no-guard", "--store", "r.db", "--metric", "t=([0-9.]+)", "--ranks", "1")
    program = work / "slow.py"
    program.write_text(
        "import time\nfrom mpi4py import MPI\nt = time.time()\ntime.sleep(0.5)\n"
        "print(f't={time.time() - t}')\n"
    )
    few = cli(*words, "--budget", "3s", "--", sys.executable, program)
    assert few.code == 1
    assert "the budget of 3.000 s held" in few.err
    some = cli(*words, "--budget", "8s", "--json", "n.json", "--", sys.executable, program)
    assert some.code == 0, some.err
    assert 6 <= json.loads((work / "n.json").read_text())["runs"] < 20
