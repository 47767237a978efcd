"""``verify-published`` on a real program whose gain stays, is lost, or comes and goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autotune.cli import main
from autotune.publish.formats import find
from autotune.testing.format import evidence
from runner.mpi.library import Library
from tests.publish.test_trust import EAGER, forged

pytestmark = pytest.mark.mpi
Capture = pytest.CaptureFixture[str]
GAIN = 0.25
PROGRAM = """
import os, pathlib, random
from mpi4py import MPI
place = pathlib.Path(__file__).parent
mode = (place / "mode").read_text()
tuned = "OMPI_MCA_btl_sm_eager_limit" in os.environ
count = place / f"count-{tuned}"
figure = 0.1
runs = int(count.read_text()) if count.exists() else 0
if MPI.COMM_WORLD.rank == 0:
    count.write_text(str(runs + 1))
if tuned:
    faster = {"there": 1.25, "shrunk": 1.06, "gone": 1.0, "open": 1.6 if runs % 2 else 0.7}
    figure /= faster[mode]
if MPI.COMM_WORLD.rank == 0:
    noise = random.Random(2 * runs + tuned).uniform(-0.001, 0.001)
    print(f"time {figure * (1 + noise):.15f}")
"""


@pytest.fixture
def file(work: Path, home: Path, store: Path, open_mpi: Library) -> Path:
    """A published setting; the program prints the figure that ``mode`` says."""
    apps = work / "configs" / "apps"
    apps.mkdir(parents=True)
    (work / "flip.py").write_text(PROGRAM)
    (apps / "flip.toml").write_text(
        f"name = 'flip'\ncommand = ['{{python}}', '{work}/flip.py']\nmetric = 'time ([0-9.]+)'\n"
        "default_input = ''\n"
    )
    check = {"app": "flip", "input": None, "ranks": 1}
    seen = evidence(check=(check,), gain=GAIN, source="study:abc")
    return forged(work / "f.tune", find("tune"), EAGER, open_mpi, seen=seen)


@pytest.mark.parametrize(
    ("mode", "status", "code"),
    [
        ("there", "still there", 0),
        pytest.param("shrunk", "still there", 0, marks=pytest.mark.slow),
        ("gone", "gone", 1),
        ("open", "cannot be told", 0),
    ],
)
def test_a_gain_is_looked_at_again(
    file: Path, work: Path, quiet: None, capfd: Capture, mode: str, status: str, code: int
) -> None:
    (work / "mode").write_text(mode)
    words = ["verify-published", str(file), "--pairs", "6"]
    assert main([*words, "--json", "out.json"]) == code
    said = " ".join(capfd.readouterr().out.split())
    found: dict[str, Any] = json.loads((work / "out.json").read_text())
    (one,) = found["comparisons"]
    assert one["status"] == status
    assert found["ok"] is (code == 0)
    assert one["published_gain"] == GAIN
    assert one["published_inside_interval"] is (mode in ("there", "open"))
    assert one["below_half_of_published"] is (mode in ("shrunk", "gone"))
    assert one["pairs"] == 6
    assert f"{status}: " in said
    assert "published +25.0 %" in said
    assert ("with 6 pairs" in said) == (mode == "open")
    assert ("less than half" in said) == (mode == "shrunk")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["there", "gone"])
def test_without_the_guard_nothing_is_told_of_a_gain(
    file: Path, work: Path, capfd: Capture, mode: str
) -> None:
    (work / "mode").write_text(mode)
    words = ["verify-published", str(file), "--pairs", "6", "--no-guard"]
    assert main([*words, "--json", "out.json"]) == 0
    said = " ".join(capfd.readouterr().out.split())
    (one,) = json.loads((work / "out.json").read_text())["comparisons"]
    assert (one["status"], one["guard"], one["outcome"]) == ("cannot be told", False, "unguarded")
    assert "measured without the guard, which shows nothing" in said
