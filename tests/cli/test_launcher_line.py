"""A line that begins with a launcher says which MPI is meant, and what is not searched."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from autotune.api.target import find_target
from autotune.space import DEFAULT
from autotune.store import Store
from autotune.targets.request import TargetRequest
from runner.mpi.base import PYTHON_LIBRARY
from runner.mpi.discover import adapter, launcher_of
from tests.cli.conftest import Cli
from tests.mpis import built, library_named, put_on_path

pytestmark = pytest.mark.mpi


def test_the_launcher_that_was_typed_with_its_path_is_used(cli: Cli, work: Path) -> None:
    library = library_named("openmpi-4.1")
    program = built(library, work)
    line = ("--", library.launcher, "-np", "2", "--bind-to", "none", program)
    run = ("run", "--no-guard", "--store", "r.db")
    done = cli(*run, "--timeout", "5m", *line)
    assert done.code == 0, done.text
    first, *others = done.err.splitlines()
    assert library.launcher in first
    assert library.version not in "".join(others)
    with Store.open("r.db") as store:
        key = store.get_study(1).key
    assert (key.mpi.family, key.mpi.version) == (library.family, library.version)
    # What follows starts nothing.
    other = cli(*run, "--mpi", library_named("openmpi-5").launcher, *line)
    assert other.code == 2
    assert "[launcher.conflict]" in other.err
    bound = cli(*run, "--setting", "bind_to=core", *line)
    assert bound.code == 2
    assert "[setting.not_in_space]" in bound.err
    assert "bind_to" in bound.err
    # One that no space has is the line's, too.
    other = cli(
        "run", "--setting", "btl=self", "--", "mpirun", "-np", "2", "--mca", "btl", "sm", "true"
    )
    assert other.code == 2
    assert "[setting.not_in_space]" in other.err
    assert "btl" in other.err
    late = cli(*run, "--timeout", "5x", *line)
    assert late.code == 2
    assert "[time.syntax]" in late.err
    assert "--timeout '5x'" in late.err


def test_what_the_line_says_of_placement_is_not_searched(
    work: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    library = library_named("openmpi")
    line = ["mpirun", "-np", "2", "--bind-to", "none", "true"]
    words = TargetRequest(program=line, mpi=library.launcher)
    space = find_target(words).space()
    assert "map_by" in space
    assert "bind_to" not in space
    assert not any("bind_to" in start for start in space.starts)


def test_a_program_of_another_mpi_is_told(
    cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, other = library_named("openmpi-4.1"), library_named("openmpi-5")
    put_on_path(library, monkeypatch)
    program = built(library, work)
    # Nothing is started: the setting is refused.
    done = cli("run", "-n", "2", "--mpi", other.launcher, "--setting", "x=", "--", program)
    assert done.code == 2
    said = " ".join(done.err.split())
    assert f"openmpi {library.version} " in said
    assert f"openmpi {other.version} " in said
    assert f"--mpi {launcher_of(library.family, library.version)} " in said


VERSION = (
    "from mpi4py import MPI; v = MPI.Get_library_version().split(',')[0]; "
    "MPI.COMM_WORLD.rank or open('version', 'w').write(v)"
)


def test_mpi4py_loads_the_library_of_the_launcher(
    cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PYTHON_LIBRARY, raising=False)
    library, other = library_named("openmpi-4.1"), library_named("openmpi-5")
    run = ("run", "-n", "2", "--no-guard", "--store", "r.db", "--mpi")
    for each in (library, other):
        done = cli(*run, each.launcher, "--", sys.executable, "-c", VERSION)
        assert done.code == 0, done.text
        assert each.version in Path("version").read_text()


def test_what_to_do_where_mpi4py_loads_another_mpi(
    cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, other = library_named("openmpi-4.1"), library_named("openmpi-5")
    named = Path(other.bin).resolve().parent / "lib" / "libmpi.so.40"
    monkeypatch.setenv(PYTHON_LIBRARY, str(named))
    words = ("run", "-n", "2", "--no-guard", "--store", "r.db", "--mpi", library.launcher)
    done = cli(*words, "--json", "run.json", "--", sys.executable, "-c", VERSION)
    assert done.code == 1
    run = json.loads(Path("run.json").read_text())["run"]
    assert run["state"] == "launch_error"
    assert library.version in run["reason"]
    assert PYTHON_LIBRARY in done.out


def test_the_printed_line_gives_mpi4py_the_library(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it, a user who copies the line gets the library beside Python."""
    monkeypatch.delenv(PYTHON_LIBRARY, raising=False)
    python, other = sys.executable, library_named("openmpi-4.1")
    own = Path(other.bin).resolve() == Path(python).parent.resolve()
    for program, named in ((python, not own), ("true", False)):
        words = TargetRequest(program=[program], ranks=2, mpi=other.launcher)
        target = find_target(words)
        line = target.mpirun_line(adapter(other), None, DEFAULT)
        assert (f"-x {PYTHON_LIBRARY}=" in line) == named
