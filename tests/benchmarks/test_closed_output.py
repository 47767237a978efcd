"""Benchmarks whose output is cut, as by ``| head -3``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import store_speed

FOLDER = Path(__file__).parents[2] / "benchmarks"
PROGRAMS = {"metg/charm_stencil.py", "metg/mate_stencil.py", "overlap/traced.py"}
"""Other benchmarks start these, and read all that they print."""


BENCHMARK = """
from benchmarks.common import options, run_benchmark

def main():
    options("a benchmark").parse_args()
    for number in range(1000):
        print(f"case {number}: 1.00 s")

run_benchmark(main)
"""


def test_a_reader_that_goes_ends_a_benchmark_without_a_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    line = [sys.executable, "-c", BENCHMARK]
    try:
        done = subprocess.run(
            line, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, cwd=FOLDER.parent
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_the_speed_of_the_store_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "figures.json"
    monkeypatch.setattr(sys, "argv", ["store_speed", "--trials", "2", "--json", str(place)])
    assert store_speed.main() in (0, 1)  # What it finds depends on the machine.
    figures = json.loads(place.read_text())
    assert figures["trials"] == 2
    assert all(figures[name] > 0 for name in store_speed.GOALS)


def test_every_benchmark_ends_so() -> None:
    begun = {
        f"{path.relative_to(FOLDER)}": path.read_text(encoding="utf-8")
        for path in FOLDER.rglob("*.py")
        if 'if __name__ == "__main__":' in path.read_text(encoding="utf-8")
    }
    assert len(begun) > 25
    others = {name for name, text in begun.items() if "run_benchmark(main)" not in text}
    assert others == PROGRAMS
