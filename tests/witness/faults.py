"""What survives: a search that is killed, and the attacks that were shown once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from tests.revision import ROOT
from tests.witness.plain import write_document, write_lines

KILLS = 20
SURVIVED = (
    "acknowledged_enough", "acknowledged_runs_lost", "continuation_exit_code",
    "finished_runs_lost", "orphans", "times_the_database_shrank",
)  # fmt: skip
LIST = Path(__file__).with_name("attacks.txt")


def record(name: str, out: Path, place: Path) -> None:
    """Write what was lost, or the outcome of each test that carries an attack."""
    if name == "attacks":
        listed = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
        write_lines(out / "tests.txt", outcomes(listed, place / "tests.xml"))
        return
    figures = place / "kills.json"
    words = ["--kills", f"{KILLS}", "--json", f"{figures}"]
    subprocess.run([sys.executable, "-m", "benchmarks.kill", *words], cwd=ROOT, check=False)
    found = json.loads(figures.read_text())
    write_document(out / "kills.json", {name: found[name] for name in SURVIVED})


def outcomes(tests: Sequence[str], report: Path) -> list[str]:
    """Name and outcome of each test; RuntimeError if pytest did not run them.

    Without the name of its file: a test that was moved is the same test.
    """
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    line += ["-m", "not slow", "--hypothesis-seed=0"]
    done = subprocess.run([*line, f"--junitxml={report}", *tests], cwd=ROOT, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"pytest ended with {done.returncode}; its words are above")
    cases = ElementTree.parse(report).getroot().iter("testcase")
    return sorted(f"{case.get('name')}: {_outcome(case)}" for case in cases)


def _outcome(case: ElementTree.Element) -> str:
    found = {child.tag for child in case} & {"failure", "error", "skipped"}
    return " and ".join(sorted(found)) or "passed"
