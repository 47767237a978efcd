"""A calibration of few levels on this machine, and a prediction with it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from autotune.calibration.launch_rounds import REPEATS, TIMES
from autotune.calibration.points import COLLECTIVES, MESSAGES
from autotune.wording import share
from tests.cli.conftest import Cli, cli  # noqa: F401

SPACE = """
description = "limits"
library = "openmpi>=4.1"
[parameters.btl_sm_eager_limit]
levels = LEVELS
"""
PROGRAM = """
from mpi4py import MPI
world = MPI.COMM_WORLD
data = bytearray(8192)
for _ in range(3000):
    if world.rank == 0:
        world.Send(data, 1)
        world.Recv(data, 1)
    elif world.rank == 1:
        world.Recv(data, 0)
        world.Send(data, 0)
"""
WORDS = ("calibrate", "--ranks", "2", "--space", "./limits.toml", "--no-guard", "--store", "r.db")


@pytest.fixture
def data(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(work / "data"))
    return work


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("collectives", "times"),
    [(("barrier",), 1), pytest.param(COLLECTIVES, TIMES, marks=pytest.mark.slow)],
    ids=["few", "all"],
)
def test_a_calibration_is_measured_once_and_used_by_predict(
    cli: Cli,  # noqa: F811
    open_mpi: object,
    compiler: str,
    data: Path,
    collectives: tuple[str, ...],
    times: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``times``: how often the fastest settings are timed again at the end."""
    for module in ("points", "launch_rounds", "calibrate"):
        monkeypatch.setattr(f"autotune.calibration.{module}.COLLECTIVES", collectives)
    monkeypatch.setattr("autotune.calibration.launch_rounds.TIMES", times)
    levels, repeats = ([32768], 1) if times == 1 else ([1024, 32768], REPEATS)
    monkeypatch.setattr("autotune.calibration.launch_rounds.REPEATS", repeats)
    (data / "limits.toml").write_text(SPACE.replace("LEVELS", str(levels)))
    # Beside other work ranks that spin take a time slice for every message.
    monkeypatch.setenv("OMPI_MCA_mpi_yield_when_idle", "1")
    short = cli(*WORDS, "--budget", "0.1s", "--json", "short.json")
    assert short.code == 1
    assert json.loads((data / "short.json").read_text())["code"] == "budget.too_small"
    assert "[budget.too_small]" in short.err
    assert "--budget" in short.err
    done = cli(*WORDS, "--json", "c.json")
    assert done.code == 0, done.text
    assert "2 ranks " in done.out
    found = json.loads((data / "c.json").read_text())
    assert found["mpi_choice"]["reason"] == "mpi4py"
    (one,) = found["tables"]
    assert (one["ranks"], one["nodes"]) == (2, 1)
    settings = [row["setting"] for row in one["responses"]]
    assert {"btl_sm_eager_limit": levels[0]} in settings
    # Above the usual limit of 4 KiB a message of 8 KiB needs no handshake any more.
    assert not found["guarded"]
    points = {(row[0], row[1]) for row in one["default"]}
    assert {("pingpong", 4096), ("exchange", 8), ("barrier", 0)} <= points
    assert {operation for operation, _ in points} == {*MESSAGES, *collectives}
    again = cli(*WORDS, "--json", "d.json")
    assert again.code == 0
    assert json.loads((data / "d.json").read_text())["tables"] == found["tables"]

    (data / "p.py").write_text(PROGRAM)
    traced = cli("features", "-o", "f.json", "-n", "2", "--no-guard", "--", sys.executable, "p.py")
    assert traced.code == 0, traced.text
    answer = cli("predict", "f.json")
    assert answer.code == 0, answer.text
    said = " ".join(answer.out.split())
    told = json.loads(cli("predict", "f.json", "--json", "-").out)
    assert share(told["composed"]["share_that_responds"]) in said
    assert share(told["composed"]["largest_possible_gain"]) in said
    assert " 2 ranks" in said
    assert told["composed"]["calibration"] == json.loads((data / "d.json").read_text())["id"]
    assert told["composed"]["work"][0]["bytes"] == 8192
    assert told["setting"] == {}  # Three runs do not see a machine that changes its state.
    # A model that is named is used.
    shipped = Path("autotune") / "prediction" / "shipped.json"
    root = Path(__file__).parents[2]
    other = json.loads(cli("predict", "f.json", "--model", root / shipped, "--json", "-").out)
    assert other["composed"] is None


@pytest.mark.parametrize("ranks", ["1", "2,x", "", "0"])
def test_wrong_ranks_are_refused(cli: Cli, data: Path, ranks: str) -> None:  # noqa: F811
    refused = cli("calibrate", "--ranks", ranks)
    assert refused.code == 2
    assert "[ranks.range]" in refused.err
