"""Binary interfaces: what a program was built for, and how another library becomes its own.

The libraries are empty, with the file names of real ones: the loader and the ELF file decide.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.targets.build import foreign_build, library_folders, names_library
from runner.mpi.abi import MPICH_ABI, OPEN_MPI_ABI, STANDARD_ABI, needed_library
from runner.mpi.discover import families
from runner.mpi.library import Library
from tests.programs import compiled
from tests.refusals import refused

Install = Callable[..., Library]
Build = Callable[..., list[str]]

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """An installation of a family with shared libraries of these names."""

    def make(name: str, family: str, version: str, *files: str) -> Library:
        prefix = tmp_path / name
        (prefix / "bin").mkdir(parents=True)
        (prefix / "lib").mkdir()
        for file in files:
            text = "int MPI_Init(void) { return 0; }"
            made = compiled(["cc"], text, prefix / file, "-shared", "-fPIC", f"-Wl,-soname,{file}")
            made.rename(prefix / "lib" / file)
        return Library(family, version, str(prefix / "bin"), str(prefix / "bin" / "mpirun"))

    return make


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """A program that needs a file of an installation and finds it there by itself."""

    def make(library: Library, file: str, *options: str) -> list[str]:
        folder = Path(library.bin).parent / "lib"
        program = tmp_path / f"program-{file}"
        words = [folder / file, f"-Wl,-rpath,{folder}", *(options or ("-Wl,--enable-new-dtags",))]
        source = "int MPI_Init(void); int main(void) { return MPI_Init(); }"
        # The options name places of this test, so it is not one that was built before.
        text = tmp_path / "program.c"
        text.write_text(source)
        subprocess.run(["cc", text, "-o", program, *words], check=True)
        return [str(program), "100"]

    return make


@pytest.mark.parametrize(
    ("file", "abi"),
    [
        ("libmpi.so.12", MPICH_ABI),
        ("libmpich.so.12", MPICH_ABI),
        ("libmpi.so.40", OPEN_MPI_ABI),
        ("libmpi_abi.so.1", STANDARD_ABI),
        ("libmpi.so.1", None),
    ],
)
def test_the_interface_is_recognised_by_the_name_of_the_file(
    install: Install, build: Build, file: str, abi: object
) -> None:
    library = install("one", "mpich", "4.1", file)
    found = needed_library(build(library, file))
    assert found is not None
    assert (found.name, found.abi) == (file, abi)
    assert found.is_file(Path(library.bin).parent / "lib" / file)
    assert names_library(build(library, file)) is (abi is not None)


def test_a_program_that_is_built_again_is_read_again(install: Install, build: Build) -> None:
    one = install("one", "mpich", "4.1", "libmpi.so.12")
    other = install("other", "mpich", "5.0", "libmpi.so.12")
    for library in (one, other):
        found = needed_library(build(library, "libmpi.so.12"))
        assert found is not None
        assert found.is_file(Path(library.bin).parent / "lib" / found.name)


def test_a_script_and_a_program_without_mpi_name_no_library(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    assert needed_library([str(script)]) is None
    assert needed_library(["/bin/sh"]) is None
    assert needed_library([str(tmp_path / "missing")]) is None
    assert needed_library([]) is None


def test_a_library_of_the_same_interface_comes_first_where_the_loader_looks(
    install: Install, build: Build
) -> None:
    one = install("one", "mpich", "4.1", "libmpi.so.12")
    other = install("other", "mpich", "5.0", "libmpi.so.12")
    program = build(one, "libmpi.so.12")
    assert library_folders(program, one) == ()
    folder = str(Path(other.bin).parent / "lib")
    assert library_folders(program, other) == (folder,)
    loaded = needed_library(program, [folder])
    assert loaded is not None
    assert loaded.place.startswith(folder)


@pytest.mark.parametrize(
    ("built_for", "has"),
    [("libmpi.so.12", "libmpich.so.12"), ("libmpich.so.12", "libmpi.so.12")],
)
def test_a_library_under_the_other_name_is_linked_to(
    install: Install,
    build: Build,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    built_for: str,
    has: str,
) -> None:
    """Distributions with MPICH beside Open MPI call it ``libmpich``; all others ``libmpi``."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    one = install("one", "mpich", "4.1", built_for)
    other = install("other", "mpich", "4.0.2", has)
    program = build(one, built_for)
    (folder,) = library_folders(program, other)
    loaded = needed_library(program, [folder])
    assert loaded is not None
    assert Path(loaded.place).resolve() == Path(other.bin).parent / "lib" / has


def test_a_path_in_the_program_that_comes_first_is_refused(install: Install, build: Build) -> None:
    one = install("one", "mpich", "4.1", "libmpi.so.12")
    other = install("other", "mpich", "5.0", "libmpi.so.12")
    program = build(one, "libmpi.so.12", "-Wl,--disable-new-dtags")
    with refused(UsageError, "program.other_library"):
        library_folders(program, other)


def test_another_interface_is_refused_with_what_to_do(install: Install, build: Build) -> None:
    mpich = install("mpich", "mpich", "4.1", "libmpi.so.12")
    open_mpi = install("openmpi", "openmpi", "5.0.1", "libmpi.so.40")
    (Path(open_mpi.bin) / "mpicc").touch()
    program = build(mpich, "libmpi.so.12")
    assert foreign_build(program, mpich) is None
    with refused(UsageError, "program.other_abi") as refusal:
        library_folders(program, open_mpi)
    text = str(refusal.value)
    for name in ("MPICH", "libmpi.so.12", "Open MPI"):
        assert name in text
    assert f"openmpi 5.0.1 ({open_mpi.bin})" in text
    assert f"{open_mpi.bin}/mpicc" in text
    assert "mpi4py" in text
    assert "--program-b" in text


def test_the_interface_of_the_standard_needs_its_own_file(install: Install, build: Build) -> None:
    names = ("libmpi.so.12", "libmpi_abi.so.1")
    new, old = install("new", "mpich", "5.0", *names), install("old", "mpich", "4.1", names[0])
    third = install("third", "openmpi", "6.0", "libmpi.so.40", names[1])
    program = build(new, names[1])
    assert library_folders(program, third) == (str(Path(third.bin).parent / "lib"),)
    with refused(UsageError, "program.abi_missing"):
        library_folders(program, old)


def test_the_families_say_which_interface_they_have() -> None:
    assert families()["mpich"].abi is MPICH_ABI
    assert families()["openmpi"].abi is OPEN_MPI_ABI
