"""Benchmarks whose output is cut, as by ``| head -3``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"
PROGRAMS = {"metg/charm_stencil.py", "metg/mate_stencil.py"}
"""Other benchmarks start these, and read all that they print."""


def test_a_reader_that_goes_ends_a_benchmark_without_a_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    line = [sys.executable, "-m", "benchmarks.store_speed", "--trials", "2"]
    try:
        done = subprocess.run(
            line, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, cwd=FOLDER.parent
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_every_benchmark_ends_so() -> None:
    begun = {
        f"{path.relative_to(FOLDER)}": path.read_text(encoding="utf-8")
        for path in FOLDER.rglob("*.py")
        if 'if __name__ == "__main__":' in path.read_text(encoding="utf-8")
    }
    assert len(begun) > 25
    others = {name for name, text in begun.items() if "run_benchmark(main)" not in text}
    assert others == PROGRAMS
