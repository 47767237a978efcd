"""What the ranks of a run ran: the file below a wrapper, its own libraries, and their digests."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runner.executables import executables_of, file_digest
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.process import all_pids
from runner.supervise import ExecResult, Supervisor, process_tree
from runner.types import Executable, LaunchSpec
from tests.mpis import built, on_path
from tests.runner.supervising import eventually, script
from tests.runner.test_supervise_ranks import LAUNCHER

WAITS = "#include <unistd.h>\nint main(void) { usleep(800000); return 0; }\n"
SHORT = """
#include <mpi.h>
int main(int argc, char **argv) { MPI_Init(&argc, &argv); MPI_Finalize(); return 0; }
"""
NO_MPI = Path("/nowhere/bin")


def run(*program: str, cwd: Path, ranks: int = 2) -> ExecResult:
    asked = script(LAUNCHER, rank_env=("TEST_RANK",), ranks=ranks, cwd=str(cwd))
    words = (*asked.argv, str(ranks), *program)
    with Supervisor() as supervisor:
        return supervisor.run(dataclasses.replace(asked, argv=words))


def seen(result: ExecResult) -> list[Executable]:
    return executables_of(result.files, result.started_at, NO_MPI)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def compiled(compiler: str, place: Path, text: str, *words: str) -> Path:
    source = place.with_suffix(".c")
    source.write_text(text)
    subprocess.run([compiler, str(source), "-o", str(place), *words], check=True)
    return place


@pytest.mark.parametrize("wrapper", ["./waits 8", "./waits 8; true", "sh -c './waits 8; true'"])
def test_the_program_below_a_wrapper(compiler: str, tmp_path: Path, wrapper: str) -> None:
    program = compiled(compiler, tmp_path / "waits", WAITS)
    expected = Executable(str(program), sha256(program), argv=("./waits", "8"), cwd=str(tmp_path))
    assert expected in seen(run("sh", "-c", wrapper, cwd=tmp_path))


def test_libraries_of_the_program_s_own(compiler: str, tmp_path: Path) -> None:
    """Those of the system, of the MPI library and of the run itself are left out."""
    (tmp_path / "lib").mkdir()
    library = compiled(
        compiler, tmp_path / "lib" / "libown.so", "int own(void) { return 0; }", "-shared", "-fPIC"
    )
    words = ("-Wl,--no-as-needed", f"-L{library.parent}", "-lown", f"-Wl,-rpath,{library.parent}")
    compiled(compiler, tmp_path / "waits", WAITS, *words)
    result = run("./waits", cwd=tmp_path)
    (found,) = (one for one in seen(result) if one.kind == "library")
    assert (found.path, found.sha256) == (str(library), sha256(library))

    def left(started_at: float, mpi_bin: Path) -> list[str]:
        return [one.kind for one in executables_of(result.files, started_at, mpi_bin)]

    assert left(result.started_at, tmp_path / "bin") == ["program"]
    assert left(library.stat().st_mtime - 1, NO_MPI) == ["program"]


def running(program: Path) -> bool:
    return any(process_tree.exe(pid) == str(program) for pid in all_pids())


@pytest.mark.parametrize("how", ["replaced", "removed"])
def test_what_ran_counts_whatever_became_of_it(compiler: str, tmp_path: Path, how: str) -> None:
    program = compiled(compiler, tmp_path / "waits", WAITS)
    ran = sha256(program)
    (tmp_path / "new").write_bytes(b"another program")

    def change() -> None:
        assert eventually(lambda: running(program))
        (tmp_path / "new").replace(program) if how == "replaced" else program.unlink()

    with ThreadPoolExecutor(1) as pool:
        changed = pool.submit(change)
        result = run("./waits", cwd=tmp_path, ranks=1)
        changed.result()
    place = "here" if how == "replaced" else "removed"
    assert [(one.path, one.sha256, one.place) for one in seen(result)] == [
        (str(program), ran, place)
    ]


def test_a_digest_is_that_of_the_present_content(tmp_path: Path) -> None:
    place = tmp_path / "file"
    assert file_digest(str(place)) is None
    place.write_bytes(b"one")
    assert file_digest(str(place)) == sha256(place)
    before = place.stat()
    place.write_bytes(b"two")
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file_digest(str(place)) == hashlib.sha256(b"two").hexdigest()
    os.mkfifo(tmp_path / "fifo")
    assert file_digest(str(tmp_path / "fifo")) is None


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("openmpi-5.0", ("sh", "run.sh")),
        ("openmpi-4.1", ("bash", "-c", "./program; true")),
        pytest.param("openmpi-4.1", ("sh", "run.sh"), marks=pytest.mark.slow),
        pytest.param("openmpi-5.0", ("bash", "-c", "./program; true"), marks=pytest.mark.slow),
    ],
)
def test_ranks_that_do_nothing_are_seen(
    tmp_path: Path, version: str, words: tuple[str, ...]
) -> None:
    """They end right after MPI_Init; the look is at the moment at which MPI_Init ends."""
    library: Library = on_path(version)
    program = built(library, tmp_path, SHORT)
    (tmp_path / "run.sh").write_text("exec ./program\n")
    spec = LaunchSpec(words, 2, oversubscribe=True, cwd=str(tmp_path))
    with Runner(adapter(library), guard=False) as runner:
        records = [runner.run(spec) for _ in range(2)]
    assert [record.state for record in records] == ["ok"] * 2
    found = [one for record in records for one in record.executables]
    assert {(one.path, one.sha256) for one in found} == {(str(program), sha256(program))}
