"""Messages of compiled regions between processes, under each MPI library that is found.

MPICH and Intel MPI are the tests' own (:mod:`tests.mpi_environments`); mpi4py takes their library
in place of its own.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

import pytest

from runner.runtimes.core.words import KINDS
from tests.mpi_environments import environment
from tests.mpis import library_named
from tests.started import RANKS_PATH, started

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.mpi
HEAD = """\
import sys
import numpy as np
from runner.runtimes import mate
graph = mate.Graph("exchange")
ROUNDS, CELLS = 5, 40

@graph.region(depends=["check*"], compiled=True)
def exchange(part, i):
    for n in range(len(part.others)):
"""
SEND = "        part.ctx.{call}(part.{name}_{side}[n], part.others[n], {tag})\n"
PIECES = """\
        for k in range(part.pieces):
            part.ctx.irecv(part.large_got[n * part.pieces + k], part.others[n], 50)
        for k in range(part.pieces):
            part.ctx.isend(part.large_sent[n * part.pieces + k], part.others[n], 50)
"""
TAIL = """
@graph.region(depends=["exchange"])
def check(part, i):
    for name in KINDS:
        for n, other in enumerate(part.others):
            got, wanted = getattr(part, f"{name}_got")[n], values(name, other, part.ctx.rank, i)
            if not np.array_equal(got, wanted):
                part.wrong.append(f"round {i}: {name} from {other}: {got}, not {wanted}")
            got[:] = 0
            getattr(part, f"{name}_sent")[n][:] = values(name, part.ctx.rank, other, i + 1)
    for n, other in enumerate(part.others):
        if not np.array_equal(part.large_into[n], part.large(other)):
            part.wrong.append(f"round {i}: pieces from {other}")
        part.large_into[n][:] = 0

def values(name, source, target, i):
    number = np.arange(CELLS) * 7 + 31 * source + 17 * target + i
    if name == "bool":
        return number % 3 == 0
    made = (number % 101).astype(name)
    return made * (1 - 2j) if name.startswith("complex") else made

class Part:
    def __init__(self, ctx):
        self.ctx, self.wrong = ctx, []
        self.others = list(range(ctx.size))
        for name in KINDS:
            sent = [values(name, ctx.rank, other, 0) for other in self.others]
            setattr(self, f"{name}_sent", sent)
            setattr(self, f"{name}_got", [np.zeros(CELLS, name) for o in self.others])
        # More than a message that is sent at once.
        self.large_into = [np.zeros(30_000) for _ in self.others]
        self.large_got = [p for a in self.large_into for p in mate.pieces(a, ctx.config.split)]
        sent = [self.large(ctx.rank) for _ in self.others]
        self.large_sent = [p for a in sent for p in mate.pieces(a, ctx.config.split)]
        self.pieces = len(self.large_got) // len(self.others)

    def large(self, rank):
        return np.arange(30_000) + 1000.0 * rank

async def main(ctx):
    part = Part(ctx)
    await ctx.execute(graph, ROUNDS, state=part)
    return part.wrong

config = mate.Config(workers=2, ranks_per_process=2, affinity="none", split=3,
                     in_process=sys.argv[1] == "yes", thread_level=sys.argv[2])
comm = mate.world(config)
from mpi4py import MPI
wrong = comm.gather(sum(mate.run(main, config, comm=comm).results, []))
if comm.rank == 0:
    print(MPI.Get_library_version().split(chr(10))[0])
    print(sum(wrong, []) or "all right")
"""


def library(name: str, make: bool | None) -> tuple[list[str], dict[str, str]]:
    """The launcher and the variables that let mpi4py take this library; a skip without it."""
    if name == "openmpi":
        launcher = [library_named("openmpi-5").launcher, "--bind-to", "none", "--oversubscribe"]
        variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return [*launcher, "--mca", "pml", "ob1", "--mca", "btl", "self,sm"], variables
    place = environment(name, make=make) if name == "impi" else Path(library_named("mpich").bin)
    found = [*place.parent.glob("lib/**/libmpi.so.12"), *place.parent.glob("lib/**/libmpich.so.12")]
    assert found, f"no libmpi.so.12 below {place.parent}/lib"
    variables = {"MPI4PY_LIBMPI": str(found[0]), "I_MPI_FABRICS": "shm"}
    launcher = next(p for n in ("mpiexec.mpich", "mpiexec") if (p := place / n).exists())
    return [str(launcher)], variables


FAST = [
    ("openmpi", "serialized", "no"),
    ("mpich", "multiple", "yes"),
    ("impi", "serialized", "no"),
]
LEVELS = itertools.product(["openmpi", "mpich", "impi"], ["serialized", "multiple"], ["no", "yes"])


@pytest.mark.parametrize(
    ("name", "level", "in_process"),
    [pytest.param(*words, marks=[] if words in FAST else pytest.mark.slow) for words in LEVELS],
)
def test_every_element_type_arrives(
    name: str, level: str, in_process: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    slow = request.node.get_closest_marker("slow") is not None
    launcher, variables = library(name, make=slow or None)
    sends = "".join(
        SEND.format(call=call, name=kind, side=side, tag=tag)
        for tag, kind in enumerate(KINDS)
        for call, side in (("irecv", "got"), ("isend", "sent"))
    )
    program = tmp_path / "program.py"
    program.write_text(f"{HEAD}{sends}{PIECES}KINDS = {KINDS!r}\n{TAIL}")
    words = ["-n", "2", sys.executable, str(program), in_process, level]
    environment = {**os.environ, **variables, "PYTHONPATH": RANKS_PATH}
    done = started([*launcher, *words], env=environment, cwd=ROOT, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    version, told = done.stdout.splitlines()
    assert {"openmpi": "Open MPI", "mpich": "MPICH", "impi": "Intel(R) MPI"}[name] in version
    assert told == "all right"
