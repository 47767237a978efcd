"""Everything that needs MPI processes: real mpirun, many checks in each start."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from runner.mpi.library import Library
from tests.mate.mpi_checks import CHECKS
from tests.started import python_ranks

STARTS = [
    # processes, workers, ranks per process, thread level
    (1, 2, 5, "serialized"),
    (2, 2, 3, "multiple"),
    pytest.param(2, 1, 2, "serialized", marks=pytest.mark.slow),
    pytest.param(2, 4, 4, "multiple", marks=pytest.mark.slow),
    pytest.param(4, 2, 3, "multiple", marks=pytest.mark.slow),
    pytest.param(1, 1, 3, "multiple", marks=pytest.mark.slow),
    pytest.param(1, 4, 8, "multiple", marks=pytest.mark.slow),
    pytest.param(2, 2, 4, "multiple", marks=pytest.mark.slow),
    pytest.param(4, 1, 2, "multiple", marks=pytest.mark.slow),
]

pytestmark = pytest.mark.mpi

README = Path(__file__).parents[2] / "runner" / "runtimes" / "mate" / "README.md"

Start = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def start(open_mpi: Library) -> Start:
    """``start(processes, "-m", "module", ...)`` runs Python under mpirun and waits for it."""

    def run(processes: int, *words: str) -> subprocess.CompletedProcess[str]:
        return python_ranks(open_mpi, processes, words)

    return run


@pytest.mark.parametrize(("processes", "workers", "ranks", "level"), STARTS)
def test_all_checks_hold(
    start: Start, processes: int, workers: int, ranks: int, level: str
) -> None:
    done = start(processes, "-m", "tests.mate.mpi_checks", str(workers), str(ranks), level)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert set(told) == set(CHECKS)
    assert not any(told.values()), "\n".join(f"{n}:\n{p}" for n, p in told.items() if p)


FAILURES = {
    "raises": (
        "if ctx.rank == 1: raise KeyError('lost')\n    await ctx.recv(bytearray(1), 1)",
        ["rank 1 ", "(process 1)", "'lost'"],
    ),
    "user error": (
        "if ctx.rank == 1: raise RunnerError('the file is missing', code='test.error')",
        ["rank 1 ", "(process 1)", "the file is missing\n"],
    ),
    "blocks": (
        "MPI.COMM_WORLD.Recv(bytearray(1), 1 - ctx.rank)",
        ["Comm.Recv ", "ctx.recv(...)"],
    ),
    "deadlock": (
        "if ctx.rank == 0: await ctx.recv(bytearray(1), 0)\n    await ctx.barrier()",
        ["deadlock:", "rank 0:", "(tag 0)"],
    ),
    "truncated": (
        "ctx.irecv(bytearray(1), 1 - ctx.rank); ctx.isend(bytearray(8), 1 - ctx.rank)",
        ["MPI_ERR_", "(tag 0)"],
    ),
}
PROGRAM = """
from runner.runtimes import mate
from runner.errors import RunnerError
config = mate.Config(affinity="none", in_process=True)
comm = mate.world(config)
from mpi4py import MPI
async def main(ctx):
    {body}
mate.run(main, config, comm=comm)
"""


SLOW = {"blocks", "deadlock"}
"""What ``mpi_checks`` sees without the end of a job, and ``test_steal`` with it."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in FAILURES]
)
def test_a_failure_ends_the_job_with_a_message(start: Start, name: str, tmp_path: Path) -> None:
    body, expected = FAILURES[name]
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(body=body))
    done = start(2, str(program))
    assert done.returncode != 0
    for text in expected:
        assert text in done.stderr
    assert "runner/runtimes/mate/launch" not in done.stderr
    if name != "raises":
        assert "Traceback" not in done.stderr


WRONG_GRAPH = """
import sys
from runner.runtimes import mate
finders, compiled = map(int, sys.argv[1].split(",")), sys.argv[2] == "compiled"
graph = mate.Graph("wrong")

@graph.region(depends=[] if compiled else ["second"], compiled=compiled)
def first(part, i):
    found = []

@graph.region(depends=["first"])
def second(part, i):
    pass

class Part:
    pass

async def main(ctx):
    if ctx.process in finders:
        await ctx.execute(graph, 1, state=Part())
    await ctx.barrier()

config = mate.Config(affinity="none")
mate.run(main, config, comm=mate.world(config))
"""


@pytest.mark.parametrize(
    ("finders", "kind"),
    [
        ("1,2", "python"),
        *(
            pytest.param(*more, marks=pytest.mark.slow)
            for more in [
                ("0,1,2", "compiled"),
                ("0,1,2", "python"),
                ("1,2", "compiled"),
                ("2", "python"),
                ("2", "compiled"),
            ]
        ),
    ],
)
def test_a_wrong_graph_is_reported_once(
    start: Start, tmp_path: Path, finders: str, kind: str
) -> None:
    """By the lowest process that finds it."""
    program = tmp_path / "program.py"
    program.write_text(WRONG_GRAPH)
    done = start(3, str(program), finders, kind)
    assert done.returncode == 2, done.stderr
    (line,) = (line for line in done.stderr.splitlines() if "mate: " in line)
    assert re.findall(r"mate: rank (\d+) .*\(process (\d+)\)", line) == [(finders[0], finders[0])]
    assert (f"{program}:9:" if kind == "compiled" else "graph wrong:") in line  # data
    assert "Traceback" not in done.stderr


def test_more_workers_than_cpus_names_the_switch(start: Start) -> None:
    code = (
        "from runner.runtimes import mate\nfrom runner.errors import RunnerError\n"
        "async def main(ctx): pass\n"
        "config = mate.Config(workers=250)\n"
        "try: mate.run(main, config, comm=mate.world(config))\n"
        "except RunnerError as error: print(error)\n"
    )
    done = start(1, "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("--workers 250") == 1
    assert "--bind-to none" in done.stdout  # data
    assert "--affinity none" in done.stdout  # data


def heat(directory: Path, compiled: bool = False) -> str:
    """The program of the README in a file; with compiled regions, as in its second part."""
    text = README.read_text(encoding="utf-8")
    whole, regions = (block.split("```")[0] for block in text.split("```python\n")[1:3])
    if compiled:
        start, end = whole.index("class Part:"), whole.index("async def main")
        whole = whole[:start] + regions + "\n\n" + whole[end:]
    program = directory / "heat.py"
    program.write_text(whole)
    return str(program)


@pytest.mark.parametrize(
    ("processes", "words", "named"),
    [
        (1, "--local-grid 1x2x2 --ranks-per-process 3", "--local-grid 1x2x2"),
        (3, "--wrong", "--wrong"),
        *(
            pytest.param(*more, marks=pytest.mark.slow)
            for more in [
                (2, "--workers 0", "--workers 0"),
                (2, "--workers two", "'two'"),
                (3, "--workers 250", "--workers 250"),
            ]
        ),
    ],
)
def test_a_wrong_option_of_the_example_is_told_once(
    start: Start, tmp_path: Path, processes: int, words: str, named: str
) -> None:
    done = start(processes, heat(tmp_path), *words.split())
    assert done.returncode == 2
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("heat:"))
    assert named in line
    assert "Traceback" not in done.stderr


def test_the_help_of_the_example_comes_once(start: Start, tmp_path: Path) -> None:
    done = start(2, heat(tmp_path), "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("usage:") == done.stdout.count("--ranks-per-process M\n") == 1


def test_what_one_process_alone_finds_ends_all(start: Start) -> None:
    code = (
        "import os\nfrom runner.runtimes import mate\n"
        "from runner.runtimes.mate import report, usage\n"
        "report.PATIENCE_S = usage.PATIENCE_S = 0.1\n"
        "async def main(ctx): pass\n"
        "with mate.errors_once('some'):\n"
        "    last = any(os.environ.get(n) == '1' for n in ('PMIX_RANK', 'PMI_RANK'))\n"
        "    config = mate.Config(workers=0 if last else 1, affinity='none')\n"
        "    mate.run(main, config, comm=mate.world(config))\n"
    )
    done = start(2, "-c", code)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.count("some: --workers 0: ") == 1


@pytest.mark.parametrize("compiled", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_example_of_the_readme_computes_what_a_loop_computes(
    start: Start, tmp_path: Path, compiled: bool
) -> None:
    options = ["--affinity", "none", "--workers", "2", "--ranks-per-process", "4"]
    done = start(2, heat(tmp_path, compiled), *options)
    assert done.returncode == 0, done.stderr
    field = np.ones(8002)
    field[1] = 2.0
    for _ in range(100):
        field[1:-1] = 0.25 * field[:-2] + 0.5 * field[1:-1] + 0.25 * field[2:]
    assert float(done.stdout.split()[0]) == pytest.approx(field[1:-1].sum(), rel=1e-13)
