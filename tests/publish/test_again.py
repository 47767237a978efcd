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
from tests.publish.apps import define_flip
from tests.publish.test_trust import EAGER, forged

pytestmark = pytest.mark.mpi
Capture = pytest.CaptureFixture[str]
GAIN = 0.25


@pytest.fixture
def file(work: Path, home: Path, store: Path, open_mpi: Library) -> Path:
    """A published setting; the program prints the figure that ``mode`` says."""
    define_flip(work, open_mpi)
    check = {"app": "flip", "input": None, "ranks": 1}
    seen = evidence(check=(check,), gain=GAIN, source="study:abc")
    return forged(work / "f.tune", find("tune"), EAGER, open_mpi, seen=seen)


@pytest.mark.parametrize(
    ("mode", "status", "code"),
    [
        pytest.param("there", "still there", 0, marks=pytest.mark.slow),  # data
        pytest.param("shrunk", "still there", 0, marks=pytest.mark.slow),  # data
        ("gone", "gone", 1),
        pytest.param("open", "cannot be told", 0, marks=pytest.mark.slow),  # data
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
    assert one["words"] in said
    assert bool(one["status_why"]) == (mode != "there")
    assert ("--pairs" in said) == (mode == "open")


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
    assert (one["status"], one["guard"], one["outcome"]) == (
        "cannot be told",  # data
        False,
        "unguarded",
    )  # data
    assert one["words"] in said
