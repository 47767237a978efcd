"""Programs and places that cannot be traced: one message each, through the command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.wording import share
from runner import c_library
from runner.mpi.library import Library
from runner.trace import FEATURE_NAMES, load_features
from runner.trace.build import NoCompiler, is_static, profiling_library
from tests.cli.conftest import Cli
from tests.refusals import refused

pytestmark = pytest.mark.mpi
HELLO = "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"
QUICK = ("--no-guard", "--ranks", "2")
Program = Callable[[str], list[str]]


def test_features_are_written_and_printed(
    cli: Cli,
    quick: str,
    work: Path,
) -> None:
    metric = ("--metric", "took ([0-9.]+)")
    says = ("sh", "-c", f"{quick} && echo time 0.25 s")
    done = cli("features", *QUICK, *metric, "--json", "-", "-o", "f.json", "--", *says)
    assert done.code == 0, done.err
    # Features need no figure; that it was not found is said, with what would read one.
    assert "'took ([0-9.]+)'" in done.err
    assert r"--metric 'time *(\S+)'" in done.err
    found = load_features(work / "f.json")
    document = json.loads(done.out)
    assert document.pop("mpi_choice")["family"] == found.mpi_name
    assert document == found.to_json()
    assert found.values["barriers"] == 1
    assert found.argv[1:] == says[1:]
    assert (found.ranks, found.nodes, found.method, found.app) == (2, 1, "pmpi", None)
    assert found.cwd == str(work)
    assert found.profile
    (barrier,) = (row for row in found.profile.rows if row.operation == "barrier")
    assert (barrier.calls, barrier.comm_size, barrier.far) == (1, 2, False)


def test_an_application_and_its_input_are_named(cli: Cli, mpicc: str, work: Path) -> None:
    done = cli("features", *QUICK, "--app", "jacobi3d", "--input", "tiny")
    assert done.code == 0, done.err
    assert all(len(line) <= 80 for line in done.out.splitlines())
    found = load_features(work / "app_features.json")
    assert (found.app, found.input) == ("jacobi3d", "tiny")
    assert (found.ranks, found.nodes) == (2, 1)
    assert "2 ranks" in done.out
    assert found.profile
    longest = max(found.profile.rows, key=lambda row: row.seconds)
    assert re.search(rf"^ *{longest.operation}\b.* %", done.out, re.MULTILINE)
    waiting = share(found.profile.waiting_s / found.profile.communication_s)
    assert f" {waiting} of " in done.out


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("echo 1", " no_mpi"),
        ("$0 7", " 7"),
        pytest.param("$0 -1", " failed", marks=pytest.mark.slow),
    ],
)
def test_programs_without_features(
    cli: Cli,
    quick: str,
    work: Path,
    text: str,
    named: str,
) -> None:
    done = cli("features", *QUICK, "--", "sh", "-c", text, quick)
    assert done.code == 1
    assert "[trace.run_fails]" in done.err
    assert named in done.err
    assert not (work / "app_features.json").exists()


def test_a_statically_linked_program(cli: Cli, compiler: str, work: Path) -> None:
    (work / "one.c").write_text("int main(void) { return 0; }\n")
    linked = subprocess.run(
        [compiler, "-static", "-o", "one", "one.c"], cwd=work, capture_output=True, timeout=60
    )
    if linked.returncode:
        pytest.skip("no static C library")
    assert is_static(work / "one")
    done = cli("features", *QUICK, "--", "./one")
    assert done.code == 2
    assert "[trace.not_preloadable]" in done.err


def test_what_is_not_statically_linked(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "cut").write_bytes(b"\x7fELF\x02\x01")
    assert not is_static(Path(sys.executable))
    assert not is_static(tmp_path / "script")
    assert not is_static(tmp_path / "cut")
    assert not is_static(tmp_path / "none")


def test_words_that_are_wrong(cli: Cli, program: Program, work: Path) -> None:
    assert cli("features").code == 2
    done = cli("features", "--ranks", "2", "-o", "none/f.json", "--", *program(HELLO))
    assert done.code == 2
    assert "[file.unwritable]" in done.err
    assert "none/f.json" in done.err


def test_the_list_of_features_needs_no_program(cli: Cli) -> None:
    done = cli("features", "--list", "--json", "-")
    assert done.code == 0
    assert [row["name"] for row in json.loads(done.out)] == list(FEATURE_NAMES)


def test_a_cache_that_cannot_be_used(
    cli: Cli,
    program: Program,
    mpicc: str,
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (work / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(work / "file"))
    done = cli("features", *QUICK, "--", *program(HELLO))
    assert done.code == 1
    assert "[compiler.unwritable]" in done.err
    assert "XDG_CACHE_HOME" in done.err
    monkeypatch.setenv("XDG_CACHE_HOME", str(work / "with blanks"))
    monkeypatch.setattr(c_library, "_compile", lambda _c, _s, at: (at / "library").touch())
    done = cli("features", *QUICK, "--", *program(HELLO))
    assert done.code == 2
    assert "[compiler.library_path]" in done.err


def _without_compiler(library: Library, place: Path) -> Library:
    """The same MPI, seen from a directory that has its launcher but no mpicc."""
    place.mkdir()
    return Library(library.family, library.version, str(place), library.launcher)


def test_no_compiler(library: Library, tmp_path: Path) -> None:
    bare = _without_compiler(library, tmp_path / "bin")
    with refused(NoCompiler, "compiler.no_mpicc"):
        profiling_library(bare)


def test_a_compiler_that_fails(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bare = _without_compiler(library, tmp_path / "bin")
    script = tmp_path / "bin" / "mpicc"
    script.write_text("#!/bin/sh\necho no mpi.h here >&2\nexit 3\n")
    script.chmod(0o755)
    with refused(NoCompiler, "compiler.refuses"):
        profiling_library(bare)
    assert not list((tmp_path / "cache" / "autotune" / "trace").glob("*.so"))


def test_builders_at_the_same_time_make_one_whole_library(
    library: Library, mpicc: str, tmp_path: Path
) -> None:
    text = (
        "from runner.mpi.discover import find_library\n"
        "from runner.trace.build import profiling_library\n"
        "import ctypes\n"
        "from runner import c_library\n"
        "c_library.FLAGS = ('-O0', *c_library.FLAGS[1:])\n"
        f"path = profiling_library(find_library({library.launcher!r}))\n"
        "ctypes.CDLL(str(path)).MPI_Send\n"
        "print(path)\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", text],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=Path(__file__).parents[2],
        )
        for _ in range(2)
    ]
    said = {process.communicate(timeout=120)[0] for process in started}
    assert [process.returncode for process in started] == [0, 0]
    assert len(said) == 1
    assert [p.name for p in (tmp_path / "autotune" / "trace").iterdir()] == [
        Path(said.pop().strip()).name
    ]


def test_without_a_compiler_python_counts(
    cli: Cli,
    program: Program,
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none(*_: object) -> Path:
        raise NoCompiler("there is no mpicc", code="test.error")

    monkeypatch.setattr("runner.trace.run.profiling_library", none)
    done = cli("features", *QUICK, "--", *program(HELLO))
    assert done.code == 0, done.err
    assert "there is no mpicc" in done.err
    assert "mpi4py" in done.err
    assert load_features(work / "app_features.json").method == "mpi4py"
    assert cli("features", *QUICK, "--method", "pmpi", "--", *program(HELLO)).code == 1
