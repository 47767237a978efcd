"""Translated programs under real MPI: the same results as the ordinary program."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.cli import main
from runner.runtimes.mate.translate import translate
from tests.mate.test_mpi import start as start
from tests.mate.translate.test_translate import JACOBI

Start = Callable[..., subprocess.CompletedProcess[str]]
pytestmark = pytest.mark.mpi


@pytest.fixture(autouse=True)
def _regions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let translated programs say how their regions have run; it comes before ``start``.

    numba, which the plain programs use themselves, ends the output on a terminal with an escape
    sequence if it may colour its messages.
    """
    monkeypatch.setenv("MATE_REGIONS", "1")
    monkeypatch.setenv("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")


SUMS = '''
import sys
import numpy as np
from mpi4py import MPI


def shift(comm, values):
    """Every rank gets its left neighbour's values."""
    there, here = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    incoming = np.empty_like(values)
    request = comm.Irecv(incoming, here, tag=3)
    comm.Send([values, MPI.DOUBLE], there, tag=3)
    request.Wait()
    return incoming


def main():
    comm = MPI.COMM_WORLD
    values = np.full(4, float(comm.rank))
    for _ in range(comm.size):
        values = shift(comm, values)
    total, every = np.empty(4), np.empty((comm.size, 4))
    comm.Allreduce(values, total, op=MPI.SUM)
    comm.Allgather(values, every)
    comm.Bcast(total, root=comm.size - 1)
    comm.Barrier()
    if comm.rank == 0:
        print(sys.argv[1], total.tolist(), every[:, 0].tolist())


if __name__ == "__main__":
    sys.exit(main())
'''


def last(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


WAY = re.compile(r"mate: graph .+: region (\w+: .+)")


def ways_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    """How each region has run, as the program says at its end."""
    found = (WAY.fullmatch(line) for line in done.stderr.splitlines())
    return [way[1] for way in found if way]


def notes_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What the program says of regions that cannot run compiled."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("mate: graph ")]
    return [line for line in lines if not WAY.fullmatch(line)]


@pytest.mark.parametrize(
    "layouts",
    [
        [(2, 2, "python")],
        pytest.param(
            [(1, 4, "native"), (2, 2, "native"), (4, 1, "native")], marks=pytest.mark.slow
        ),
    ],
)
def test_messages_and_collectives(
    start: Start, tmp_path: Path, layouts: list[tuple[int, int, str]]
) -> None:
    plain, made = tmp_path / "sums.py", tmp_path / "sums_mate.py"
    plain.write_text(SUMS)
    made.write_text(translate(SUMS, "sums.py"))
    wanted = last(start(4, str(plain), "word"))
    for processes, ranks, core in layouts:
        words = ("word", "--ranks-per-process", str(ranks), "--core", core)
        assert last(start(processes, str(made), *words)) == wanted


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--workers", "many"), "'many'"),
        *(
            pytest.param(*more, marks=pytest.mark.slow)
            for more in [
                (("--workers", "5", "--ranks-per-process", "2"), "--workers 5"),
                (("--workers", "250"), "--workers 250"),
            ]
        ),
    ],
)
def test_a_wrong_switch_is_reported_once(
    start: Start, tmp_path: Path, words: tuple[str, ...], named: str
) -> None:
    made = tmp_path / "sums_mate.py"
    made.write_text(translate(SUMS, "sums.py"))
    wrong = start(3, str(made), "word", *words)
    assert wrong.returncode == 2, wrong.stderr
    (line,) = (line for line in wrong.stderr.splitlines() if "sums_mate.py: " in line)
    assert named in line
    assert "Traceback" not in wrong.stderr


ALONE, SHARED, IN_PYTHON = (1, 1, "native"), (2, 4, "native"), (1, 4, "python")
"""Workers, ranks per process, core."""


@pytest.mark.parametrize(
    ("processes", "ways", "words"),
    [
        (2, (SHARED,), ("12x8x8", "5")),
        pytest.param(2, (IN_PYTHON,), ("12x8x8", "5"), marks=pytest.mark.slow),
        pytest.param(1, (ALONE, SHARED, IN_PYTHON), ("24x16x32", "21"), marks=pytest.mark.slow),
        pytest.param(2, (ALONE, SHARED, IN_PYTHON), ("24x16x32", "21"), marks=pytest.mark.slow),
    ],
)
def test_jacobi_is_the_same_to_the_last_bit(
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    processes: int,
    ways: tuple[tuple[int, int, str], ...],
    words: tuple[str, str],
) -> None:
    """All its regions run compiled on the native core, and in Python on the other one.

    In a small one numba compiles nothing where only it would: Python gives the same bits.
    """
    small = words[1] == "5"
    made = tmp_path / "jacobi_mate.py"
    assert main(["mate", "translate", str(JACOBI), "-o", str(made)]) == 0
    captured = capfd.readouterr()
    assert captured.err == ""
    assert re.findall("[0-9]+", captured.out.splitlines()[-1]) == ["5", "5"]
    monkeypatch.setenv("NUMBA_DISABLE_JIT", f"{small:d}")
    plain = json.loads(last(start(processes, str(JACOBI), *words)))
    for workers, ranks, core in ways:
        monkeypatch.setenv("NUMBA_DISABLE_JIT", f"{small and core == 'python':d}")
        run = start(
            processes, str(made), *words, "--workers", str(workers),
            "--ranks-per-process", str(ranks), "--affinity", "none", "--core", core,
        )  # fmt: skip
        found = json.loads(last(run))
        assert found["fields"] == plain["fields"]
        assert found["residual"] == plain["residual"]
        way = "compiled" if core == "native" else "Python"
        assert notes_of(run) == []
        told = ways_of(run)
        names = ("compute", "receive", "pack", "send", "unpack")
        assert told == [f"{name}: {way}" for name in names]


TYPES = """
import sys
import numpy as np
from mpi4py import MPI


class Box:
    def __init__(self, value):
        self.value = value

    def __getitem__(self, n):
        return self.value


def main():
    comm = MPI.COMM_WORLD
    there, here = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    kind = sys.argv[1]
    values = np.zeros(4)
    weights = {
        "object": Box(0.5),
        "array": np.full(4, 0.5),
        "short": np.full(4, 0.1, np.float32),
    }[kind]
    sent, got = np.full(2, float(comm.rank)), np.zeros(2)
    copy = np.zeros(2)
    sources, targets = [(got, here)], [([sent, MPI.DOUBLE], there)]
    # pragma mate graph
    for i in range(5):
        # pragma mate region(receive) depends(use*)
        incoming = [comm.Irecv(buffer, rank) for buffer, rank in sources]
        # pragma mate region(weigh)
        for k in range(2):
            values[k - 1] += weights[k] / 3 if k < LIMIT else 0.0
        # pragma mate region(send) depends(use*)
        outgoing = comm.Isend([sent, MPI.DOUBLE], there)
        # pragma mate region(send_lists) depends(use*)
        again = [comm.Isend(buffer, rank, 7) for buffer, rank in targets]
        # pragma mate region(receive_lists) depends(use*)
        more = comm.Irecv(copy, here, 7)
        # pragma mate region(use) depends(receive, send, weigh, send_lists, receive_lists)
        MPI.Request.Waitall(incoming)
        MPI.Request.Waitall(again)
        outgoing.Wait()
        more.Wait()
        values[2] += got[0] * (i + 1) + copy[1]
        for k in range(len(sent)):
            sent[k] = got[k]
    every = np.empty((comm.size, 4))
    comm.Allgather(values, every)
    if comm.rank == 0:
        print(every.tolist())


LIMIT = 2


if __name__ == "__main__":
    main()
"""
REASONS: dict[str, list[str]] = {
    "object": ["Names.weights", "Box"],
    "array": [],
    "short": ["truediv", "float32", "int64"],
}
"""What the note on the weights names, if there is one."""


IN_TURN = """
import runpy, sys
program, *kinds = sys.argv[1:]
for kind in kinds:
    sys.argv = [program, kind]
    runpy.run_path(program, run_name="__main__")
"""


@pytest.mark.parametrize(
    "layouts",
    [
        {"object": (2, 2), "short": (1, 4)},
        pytest.param({"object": (1, 4), "array": (1, 4), "short": (2, 2)}, marks=pytest.mark.slow),
    ],
)
def test_types_that_only_the_running_program_knows(
    start: Start, tmp_path: Path, layouts: dict[str, tuple[int, int]]
) -> None:
    """A region that cannot see what a name holds runs in Python, and one line says so."""
    plain, made = tmp_path / "weights.py", tmp_path / "weights_mate.py"
    plain.write_text(TYPES)
    assert main(["mate", "translate", str(plain), "-o", str(made)]) == 0
    ordinary = start(4, "-c", IN_TURN, str(plain), *layouts)
    assert ordinary.returncode == 0, ordinary.stderr
    results = ordinary.stdout.split("\n")
    for (kind, (processes, ranks)), wanted in zip(layouts.items(), results, strict=False):
        done = start(processes, str(made), kind, "--ranks-per-process", str(ranks))
        assert last(done) == wanted
        notes = notes_of(done)
        lines = made.read_text().splitlines()
        wanted_notes = {"targets": ["Names.targets", "tuple"], "weights[k]": REASONS[kind]}
        for name, named in wanted_notes.items():
            line = next(n for n, text in enumerate(lines, 1) if f"state.{name}" in text)
            begin = f"{made}:{line}: region {'weigh' if 'w' in name else 'send_lists'} "
            found = [note for note in notes if begin in note and all(n in note for n in named)]
            assert len(found) == bool(named), notes
        told = ways_of(done)
        way = "Python" if REASONS[kind] else "compiled"
        ways = dict.fromkeys(("receive", "weigh", "send", "send_lists", "receive_lists", "use"), "")
        ways |= dict.fromkeys(ways, "compiled") | {"weigh": way, "send_lists": "Python"}
        assert told == [f"{name}: {way}" for name, way in ways.items()]


MORE = '''
import sys
import numpy as np
from mpi4py import MPI
from runner.runtimes.mate import ordinary as mate


class Line:
    """Values that travel along a ring while a graph runs."""

    def __init__(self, comm):
        self.comm = comm
        self.sent, self.got = np.full(1, float(comm.rank)), np.empty(1)

    def travel(self, steps):
        there, here = (self.comm.rank + 1) % self.comm.size, (self.comm.rank - 1) % self.comm.size
        # pragma mate graph
        for step in range(0, 2 * steps, 2):
            # pragma mate region(receive) depends(use*)
            self.incoming = [self.comm.Irecv(self.got, here)]
            # pragma mate region(send) depends(use*)
            out = self.comm.Isend(self.sent, there)
            # pragma mate region(use) depends(receive, send)
            MPI.Request.Waitall(self.incoming)
            out.Wait()
            if step == 0:
                total = 0.0
            total += self.got[0] * (step + 1)
            self.sent[0] = self.got[0]
        return total


def main():
    comm = MPI.COMM_WORLD
    line = Line(comm)
    values = []
    for _ in range(2):
        values.append(line.travel(comm.size + 1))
        if True:
            comm.Barrier()
    every = np.empty(2 * comm.size)
    counts = [2] * comm.size
    places = [2 * n for n in range(comm.size)]
    comm.Allgatherv(np.array(values), [every, counts, places, MPI.DOUBLE])
    mate.local_barrier()
    if comm.rank == 0:
        print(every.tolist())
    if len(sys.argv) > 1:
        sys.exit(int(sys.argv[1]))


if __name__ == "__main__":
    main()
'''


@pytest.mark.parametrize(
    ("ranks", "processes"), [(2, 1), pytest.param(4, 2, marks=pytest.mark.slow)]
)
def test_a_graph_in_a_method(start: Start, tmp_path: Path, ranks: int, processes: int) -> None:
    plain, made = tmp_path / "line.py", tmp_path / "line_mate.py"
    plain.write_text(MORE)
    made.write_text(translate(MORE, "line.py"))
    assert "Waitall" not in made.read_text()
    assert ".Wait()" not in made.read_text()
    wanted = last(start(ranks, str(plain)))
    assert last(start(processes, str(made), "--ranks-per-process", "2")) == wanted
    assert start(1, str(made), "3").returncode == 3


FORGETS = """
from mpi4py import MPI
from forgetful import synchronise


def main():
    MPI.COMM_WORLD.Barrier()
    synchronise(MPI.COMM_WORLD)
    print("after")


if __name__ == "__main__":
    main()
"""


def test_what_nobody_awaits_ends_the_job(start: Start, tmp_path: Path) -> None:
    (tmp_path / "forgetful.py").write_text("def synchronise(comm):\n    comm.Barrier()\n")
    made = tmp_path / "forgets_mate.py"
    made.write_text(translate(FORGETS, "forgets.py"))
    done = start(1, str(made), "--ranks-per-process", "2")
    assert done.returncode == 1
    assert "forgetful.py:2: coroutine 'World.Barrier' was never awaited" in done.stderr  # data
