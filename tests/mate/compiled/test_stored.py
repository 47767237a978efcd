"""Stored code of compiled regions: when it is used again, and without numba."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.mate.compiled.running import HEAD, run, state

pytestmark = pytest.mark.usefixtures("cache")

ROOT = Path(__file__).parents[3]
PROGRAM = """
FACTOR = 2.0

def scaled(x):
    return FACTOR * x

@graph.region(compiled=True)
def work(part, i):
    part.a[0] = scaled(part.a[1]) + i
"""


def stored(cache: Path) -> set[str]:
    return {path.name for path in cache.glob("mate-test-*.bin")}


def test_equal_programs_share_their_code(program: Any, cache: Path) -> None:
    run(program(PROGRAM).graph, state(a=np.ones(2)))
    before = stored(cache)
    part = state(a=np.ones(3), unused="text")
    run(program("\n\n# moved\n" + PROGRAM).graph, part)
    assert stored(cache) == before
    assert part.a.tolist() == [2, 1, 1]


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        ("FACTOR = 2.0", "FACTOR = 3.0", 3),
        ("FACTOR = 2.0", "FACTOR = 2", 2),
        ("FACTOR * x", "FACTOR * x + 5", 7),
        ("+ i", "- i + 7", 9),
        ("def scaled(x)", "def scaled(x, y=3.0)", 2),
        ("scaled(part.a[1])", "math.floor(scaled(part.a[1]))", 2),
    ],
)
def test_other_programs_do_not(
    program: Any, cache: Path, old: str, new: str, result: float
) -> None:
    run(program(PROGRAM).graph, state(a=np.ones(2)))
    before = stored(cache)
    part = state(a=np.ones(2))
    run(program(PROGRAM.replace(old, new)).graph, part)
    assert len(stored(cache) - before) == 1
    assert part.a[0] == result


@pytest.mark.parametrize(
    "array",
    [
        np.ones(2, np.float32),
        np.ones(4)[::2],
        np.ones((2, 2), np.int16)[:, 0],
    ],
    ids=["element", "layout", "both"],
)
def test_nor_do_other_types_of_state(program: Any, cache: Path, array: Any) -> None:
    graph = program(PROGRAM).graph
    run(graph, state(a=np.ones(2)))
    before = stored(cache)
    run(graph, state(a=array))
    assert array[0] == 2
    run(graph, state(a=array))
    assert len(stored(cache) - before) == 1


def test_a_change_of_the_compiler_makes_other_code(
    program: Any, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner.runtimes.mate.compiled import build

    run(program(PROGRAM).graph, state(a=np.ones(2)))
    before = stored(cache)
    monkeypatch.setattr(build, "_own_sources", lambda: b"other")
    run(program(PROGRAM).graph, state(a=np.ones(2)))
    assert len(stored(cache) - before) == 1


COUNTED = """
import sys
from tests.mate.compiled.running import run, state

@graph.region(compiled=True)
def work(part, i):
    part.a[i] = part.a[i - 1] + 1

if __name__ == "__main__":
    part = state(a=np.zeros(4))
    run(graph, part, 4)
    print(part.a[3], "numba" in sys.modules)
"""


def test_stored_code_runs_without_numba(tmp_path: Path) -> None:
    path = tmp_path / "counted.py"
    path.write_text(HEAD + COUNTED.replace("part.a[i - 1]", "part.a[max(i - 1, 0)]"))
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": str(ROOT),
    }
    for wanted in ("4.0 True", "4.0 False"):
        done = subprocess.run(
            [sys.executable, str(path)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.stdout.strip() == wanted, done.stderr
