"""MPI families and schedulers by name, of this package and of installed ones."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner import scheduler
from runner.errors import RunnerError, RunnerUsageError
from runner.launch import Runner
from runner.mpi import discover
from runner.mpi.library import Library
from runner.scheduler import Allocation, allocation
from tests.case_table import case_table
from tests.cli.conftest import HELLO, Cli, cli
from tests.mpis import library_named
from tests.refusals import refused

__all__ = ["cli"]

OTHER_MPI = """
from runner.mpi.openmpi.adapter import OpenMPI

class OtherMpi(OpenMPI):
    family = "othermpi"
    title = "Other MPI"

    @classmethod
    def version_in(cls, text):
        name, _, version = text.strip().partition(" version ")
        return version if name == "Other MPI" else None

    @classmethod
    def complete(cls, library):
        return library
"""
OTHER_SCHEDULER = """
from runner.scheduler import Allocation, Scheduler

class Queue(Scheduler):
    name = "queue"

    @classmethod
    def allocation(cls, environment):
        nodes = environment.get("QUEUE_NODES", "")
        return Allocation(nodes, "," in nodes) if nodes else None

    def require(self): ...
    def submit(self, job): return "1"
    def states(self, ids): return {}
    def cancel(self, ids): ...
"""
Install = Callable[[str, str, str], None]


@pytest.fixture
def install(package: Install) -> Iterator[Install]:
    """Install a package of one module with one entry point, for this test."""
    kept = (discover.families, scheduler._kinds, discover._find_library)

    def forget() -> None:
        for cached in kept:
            cached.cache_clear()

    def put(group: str, entry: str, text: str) -> None:
        package(group, entry, text)
        forget()

    yield put
    forget()


@pytest.fixture
def other_mpi(install: Install, tmp_path: Path) -> Path:
    """A directory with the launcher of a family that an installed package knows."""
    real = library_named("openmpi-5")
    install("autotune.mpi", "othermpi = other_mpi_adapter:OtherMpi", OTHER_MPI)
    place = tmp_path / "other" / "bin"
    place.mkdir(parents=True)
    (place / "mpirun").write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exec echo Other MPI version 9.9\n'
        f'exec {shutil.which(real.launcher)} "$@"\n'
    )
    (place / "mpirun").chmod(0o755)
    return place


@pytest.mark.mpi
def test_a_family_of_an_installed_package_is_used_as_any_other(cli: Cli, other_mpi: Path) -> None:
    (Path.cwd() / "p.py").write_text(HELLO)
    space = Path("configs/spaces/othermpi.toml")
    space.parent.mkdir(parents=True)
    space.write_text(
        'library = "othermpi>=9"\n[parameters.btl_sm_eager_limit]\nlevels = [1024, 2048]\n'
    )
    done = cli(
        *("run", "--mpi", other_mpi, "--ranks", "2", "--no-guard", "--store", "r.db"),
        *("--json", "r.json", "--", sys.executable, "p.py"),
    )
    assert done.code == 0, done.err
    run = json.loads(Path("r.json").read_text())["run"]
    assert (run["mpi_name"], run["mpi_version"]) == ("othermpi", "9.9")


@pytest.mark.mpi
def test_known_families_are_named(cli: Cli, other_mpi: Path) -> None:
    done = cli("run", "--mpi", "opnmpi", "--", "true")
    assert done.code == 2
    assert "[mpi.unknown]" in done.err
    assert ", ".join(["openmpi", "mpich", "impi", "othermpi"]) in " ".join(done.err.split())
    (Path.cwd() / "empty").mkdir()
    done = cli("run", "--mpi", "empty", "--", "true")
    assert "[mpi.unknown]" in done.err
    titles = ["Open MPI", "MPICH", "Intel MPI", "Other MPI"]
    assert [title for title in titles if title not in " ".join(done.err.split())] == []


def test_an_unknown_family_is_never_treated_as_another() -> None:
    with refused(RunnerUsageError, "mpi.unknown"):
        discover.adapter(Library("nompi", "1.0", "/x", "/x/mpirun"))


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        (
            "configs/clusters/mine.toml",
            'name = "mine"\n[[launch]]\nmpi = "opnmpi>=5"\noptions = ["-x"]\n',
            ("--cluster", "mine"),
        ),
        (
            "configs/clusters/mine.toml",
            'name = "mine"\n[spaces]\nopnmpi = "openmpi"\n',
            ("--cluster", "mine"),
        ),
        (
            "mine.toml",
            'library = "opnmpi"\n[parameters.btl_sm_eager_limit]\nlevels = [1024, 2048]\n',
            ("--space", "mine.toml"),
        ),
    ],
)
@pytest.mark.mpi
def test_a_definition_for_an_unknown_family_is_an_error(
    cli: Cli, library: Library, file: str, text: str, words: tuple[str, ...]
) -> None:
    place = Path(file)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    done = cli("run", *words, "--ranks", "1", "--", sys.executable, "-c", HELLO)
    said = " ".join(done.err.split())
    assert done.code == 2, said
    assert place.name in said
    assert "'opnmpi'" in said
    assert ", ".join(["openmpi", "mpich"]) in said


@pytest.mark.parametrize(
    ("entry", "text", "said"),
    [
        ("othermpi = other_mpi_adapter:Nothing", OTHER_MPI, "AttributeError"),
        ("othermpi = other_mpi_adapter:OtherMpi", "import nothing_there", "ModuleNotFoundError"),
        ("othermpi = other_mpi_adapter:OpenMPI.family", OTHER_MPI, "OpenMPI.family"),
        ("openmpi = other_mpi_adapter:OtherMpi", OTHER_MPI, "runner.mpi.openmpi.adapter"),
        ("third = other_mpi_adapter:OtherMpi", OTHER_MPI, "'othermpi'"),
    ],
)
def test_a_broken_entry_point_is_named(
    cli: Cli, install: Install, entry: str, text: str, said: str
) -> None:
    install("autotune.mpi", entry, text)
    done = cli("run", "--ranks", "1", "--", "true")
    words = " ".join(done.err.split())
    assert done.code == 1
    assert said in words
    assert entry.partition(" ")[0] in words
    assert "autotune.mpi" in words


def test_a_scheduler_of_an_installed_package_is_found(install: Install) -> None:
    install("autotune.schedulers", "queue = other_queue:Queue", OTHER_SCHEDULER)
    assert scheduler.names() == ["local", "slurm", "queue"]
    assert scheduler.find("queue").name == "queue"
    with refused(RunnerUsageError, "scheduler.unknown"):
        scheduler.find("quue")
    assert allocation({"QUEUE_NODES": "a,b"}) == Allocation("a,b", True)


def test_a_broken_scheduler_is_named(install: Install) -> None:
    install("autotune.schedulers", "queue = other_queue:os", "import os")
    with refused(RunnerError, "extension.invalid"):
        scheduler.names()


@case_table(
    ("environment", "expected"),
    [
        ({}, Allocation()),
        (
            {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2"},
            Allocation("n[1-2]", True, 2),
        ),
        ({"SLURM_JOB_NODELIST": "n7", "SLURM_JOB_NUM_NODES": "1"}, Allocation("n7", False, 1)),
        ({"PBS_NODEFILE": "/var/spool/1"}, Allocation("", True)),
        ({"LSB_MCPU_HOSTS": "a 2 b 2"}, Allocation("", True, 2, 4)),
        ({"PE_HOSTFILE": "1"}, Allocation("", False)),
    ],
)
def test_nodes_are_those_of_the_scheduler(
    environment: dict[str, str], expected: Allocation
) -> None:
    assert allocation(environment) == expected


def test_the_place_of_a_run_is_what_the_scheduler_gave(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("autotune.schedulers", "queue = other_queue:Queue", OTHER_SCHEDULER)
    monkeypatch.setenv("QUEUE_NODES", "n1,n2")
    launcher = discover.adapter(Library("openmpi", "5.0.11", "/x", "/x/mpirun"))
    assert Runner(launcher).place == "n1,n2"
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[3-4]")
    assert Runner(launcher).place == "n[3-4]"


@pytest.mark.mpi
def test_parameters_are_those_of_the_present_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A component that a variable leaves out lists no parameters, here as in ``ompi_info``."""
    name = "pml_ob1_priority"
    launcher = library_named("openmpi-5").launcher
    assert name in discover.find_library(launcher).params
    monkeypatch.setenv("OMPI_MCA_pml", "cm")
    assert name not in discover.find_library(launcher).params
    monkeypatch.delenv("OMPI_MCA_pml")
    assert name in discover.find_library(launcher).params


@pytest.mark.mpi
def test_parameters_are_those_of_the_present_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long process, such as a notebook, sees a file that is written meanwhile."""
    name, launcher = "pml_ob1_priority", library_named("openmpi-5").launcher
    monkeypatch.setenv("HOME", str(tmp_path))
    usual = discover.find_library(launcher)
    assert discover.find_library(launcher) is usual
    file = tmp_path / ".openmpi" / "mca-params.conf"
    file.parent.mkdir()
    file.write_text("pml = cm\n")
    assert name not in discover.find_library(launcher).params
    file.unlink()
    assert name in discover.find_library(launcher).params
