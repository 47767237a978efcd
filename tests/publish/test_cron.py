"""``verify-published`` from cron: another directory, hardly any environment, relative words."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autotune.cli import main
from autotune.publish.recheck import Status
from autotune.store import Store
from runner.lock import VARIABLE
from runner.mpi.library import Library

pytestmark = pytest.mark.mpi
Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[2]
NOT_COMPARED: Status = "not compared"
BROKEN: Status = "cannot be run"
PROGRAM = """
import os, sys
from mpi4py import MPI
from helper import figure
assert os.environ["OMP_NUM_THREADS"] == "3", os.environ
if MPI.COMM_WORLD.rank == 0:
    print("time", figure(float(open(sys.argv[1]).read())))
"""
HELPER = """
import os, random
def figure(base):
    tuned = "OMPI_MCA_btl_sm_eager_limit" in os.environ
    return base / (1.5 if tuned else 1.0) * random.uniform(0.999, 1.001)
"""
ENTRY = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from autotune.cli import entry; entry()"


@pytest.fixture
def published(
    work: Path, store: Path, open_mpi: Library, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> Path:
    """Searched and published in a directory of its own, every word relative to it."""
    place = work / "here"
    (place / "lib").mkdir(parents=True)
    monkeypatch.chdir(place)
    Path("hello.py").write_text(PROGRAM)
    Path("lib/helper.py").write_text(HELPER)
    Path("data.txt").write_text("0.1\n")
    Path("one.toml").write_text("[parameters.btl_sm_eager_limit]\nlevels = [8192]\nunset = true\n")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"lib{os.pathsep}{ROOT}")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("AUTOTUNE_TEST_TOKEN", "secret")
    words = ["--space", "./one.toml", "--no-guard", "-n", "2", "--metric", "time ([0-9.]+)"]
    line = ["--", "python3", "hello.py", "data.txt"]
    assert main(["search", "--runs", "33", *words, *line]) == 0, capfd.readouterr().err
    with Store.open(store) as opened:
        (study,) = opened.studies()
    source = f"study:{study.hash[:12]}"
    words = ["publish", "--from", source, "--format", "tune", "-o", "p.tune", "--force"]
    code = main(words)
    said, err = capfd.readouterr()
    assert code == 0, err
    assert f" verify-published --run-recorded {place / 'p.tune'}" in said
    return place / "p.tune"


def from_cron(file: Path, store: Path) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """The command as cron starts it.  The lock is held by this test session."""
    words = ["verify-published", str(file), "--run-recorded", "--pairs", "6", "--no-guard"]
    out = store.with_name("out.json")
    kept = {n: v for n in (VARIABLE, "AUTOTUNE_LOCK_FILE") if (v := os.environ.get(n)) is not None}
    done = subprocess.run(
        [sys.executable, "-c", ENTRY, *words, "--store", str(store), "--json", str(out)],
        cwd="/",
        env={"PATH": "/usr/bin:/bin", **kept},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done, json.loads(out.read_text()) if out.exists() else {}


@pytest.mark.slow
def test_cron_runs_what_was_measured_as_it_was_measured(
    published: Path, store: Path, capfd: Capture
) -> None:
    text = published.read_text()
    assert "secret" not in text
    done, found = from_cron(published, store)
    assert done.returncode == 0, done.stdout + done.stderr
    (one,) = found["comparisons"]
    # Without the guard, and so in words alone: other tests run beside this one.
    assert (one["outcome"], one["still_better"]) == ("unguarded", None), one
    assert one["pairs"] == 6
    assert one["gain"] == pytest.approx(0.5, abs=0.05)
    _take_away_what_it_needs(published, capfd)


def _take_away_what_it_needs(published: Path, capfd: Capture) -> None:
    """One thing after the other; each is named."""
    place = published.parent
    words = ["verify-published", str(published), "--pairs", "6", "--no-guard"]

    def verified(code: int) -> dict[str, Any]:
        """The document of the one comparison, whose words are printed, too."""
        assert main([*words, "--json", "out.json"]) == code
        said = " ".join(capfd.readouterr().out.split())
        (one,) = json.loads(Path("out.json").read_text())["comparisons"]
        assert " ".join(one["words"].split()) in said
        return dict(one)

    asked = verified(0)
    assert asked["status"] == NOT_COMPARED
    assert asked["would_run"][-2:] == ["hello.py", "data.txt"]
    assert f"{place}, " in asked["words"]
    assert "--run-recorded" in asked["words"]
    words.append("--run-recorded")
    data = place / "data.txt"
    data.write_text("0.2\n")
    changed = verified(1)
    assert changed["status"] == BROKEN
    assert f"{data} " in changed["words"]
    (place / "hello.py").unlink()
    gone = verified(1)
    assert gone["status"] == BROKEN
    assert f"{place}/hello.py " in gone["words"]
    os.chdir(place.parent)
    kept = place.with_name("kept.tune")
    shutil.move(published, kept)
    shutil.rmtree(place)
    words[1] = str(kept)
    lost = verified(1)
    assert lost["status"] == BROKEN
    assert f" {place} " in lost["words"]
