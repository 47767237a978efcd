"""Compiled regions in Python: the debugging mode, without and with checked indices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mate.compiled.running import HEAD

ROOT = Path(__file__).parents[3]
PROGRAM = """
def left(a, k):
    return a[k - 1]

def last(a):
    return a[-1]

class Part:
    pass

@graph.region(compiled=True)
def work(part, i):
    part.b[i, 0] = left(part.a, i) + last(part.a)

async def main(ctx):
    part = Part()
    part.a, part.b = np.arange(3.0), np.zeros((3, 1))
    await ctx.execute(graph, range(START, 3), state=part)
    return part.b[:, 0].tolist()

if __name__ == "__main__":
    config = mate.Config(core="CORE")
    print(mate.run(main, config).results, graph.regions[0].compiled)
"""


@pytest.mark.parametrize(
    ("start", "check", "core", "wanted"),
    [
        (0, "0", "python", "[[4.0, 2.0, 3.0]] True"),
        (1, "1", "native", "[[0.0, 2.0, 3.0]] False"),
        (
            0,
            "1",
            "native",
            "{file}:7: index -1 is negative: indices of compiled functions count from 0",
        ),
    ],
)
def test_negative_indices_are_found(
    tmp_path: Path, start: int, check: str, core: str, wanted: str
) -> None:
    path = tmp_path / "program.py"
    path.write_text(HEAD + PROGRAM.replace("START", str(start)).replace("CORE", core))
    done = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "MATE_CHECK": check, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert wanted.format(file=path) in done.stdout + done.stderr
    assert (done.returncode == 0) == wanted.startswith("[")
