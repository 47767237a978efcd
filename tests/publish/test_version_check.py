"""Scripts that set nothing under another version of the library than they were made for."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.publish.content import Content
from autotune.publish.formats import find
from autotune.publish.formats.scripts import Script
from autotune.publish.header import read_header
from autotune.publish.install import load_text, put
from autotune.publish.plan import plan_files
from autotune.publish.published_text import difference
from autotune.publish.source import PublicationSource
from autotune.targets.setting_syntax import read_setting_file
from autotune.testing.format import CLUSTER, evidence
from runner.mpi.library import Library
from tests.mpis import NAMES, library_named

pytestmark = pytest.mark.mpi
FORMATS = ("sh", "slurm", "csh", "lmod", "tcl")
VALUES = {"btl_sm_eager_limit": "8192", "coll": "^han"}


def script(name: str, library: Library) -> Script:
    fmt = find(name)
    assert isinstance(fmt, Script)
    if fmt.interpreter() is None:
        pytest.skip(f"none of {', '.join(fmt.interpreters)} is installed")
    return fmt


def text_of(fmt: Script, library: Library, values: dict[str, str], path: Path) -> str:
    proposal = PublicationSource(Content({"mca": values}), evidence(), (), True)
    one = plan_files(proposal, [fmt], CLUSTER, library, path)[0]
    put(path, one.text(one.content, library, "seen"))
    return path.read_text()


def others(version: str) -> list[str]:
    """Other versions, also those that begin alike."""
    return [f"{version}1", version[:-1] + "99", "9.9.9"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_script_sets_nothing_under_another_version(
    open_mpi: Library, tmp_path: Path, name: str
) -> None:
    fmt = script(name, open_mpi)
    path = tmp_path / "f"
    text_of(fmt, open_mpi, VALUES, path)
    assert fmt.live(path, open_mpi).env == {f"OMPI_MCA_{n}": v for n, v in VALUES.items()}
    for version in others(open_mpi.version):
        text_of(fmt, replace(open_mpi, version=version), VALUES, path)
        assert fmt.live(path, open_mpi).env == {}, version


@pytest.mark.parametrize("name", NAMES)
def test_each_family_tells_its_version(tmp_path: Path, name: str) -> None:
    library = library_named(name)
    fmt = script("sh", library)
    path = tmp_path / "f.sh"
    parameter = "MPIR_CVAR_X" if library.family == "mpich" else "btl_x"
    text_of(fmt, library, {parameter: "1"}, path)
    assert fmt.live(path, library).env
    text_of(fmt, replace(library, version="9.9.9"), {parameter: "1"}, path)
    done = subprocess.run(
        ["sh", "-euc", f". {path}; env"],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{library.bin}:{os.environ['PATH']}"},
        check=True,
    )
    assert parameter not in done.stdout
    assert f"{library.family} 9.9.9" in done.stderr


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("said", ["", "Some MPI 9.9.9"])
def test_without_a_launcher_of_the_family_the_variables_are_set(
    open_mpi: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    """Nothing shows which library will be used: a module of MPI may be loaded later."""
    fmt = script(name, open_mpi)
    place = tmp_path / "bin"
    place.mkdir()
    for tool in {"sh", "tr", "env", *fmt.interpreters}:
        if found := shutil.which(tool):
            (place / tool).symlink_to(found)
    if said:
        (place / "mpirun").write_text(f"#!/bin/sh\necho {said}\n")
        (place / "mpirun").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(place))
    path = tmp_path / "f"
    text_of(fmt, open_mpi, VALUES, path)
    nowhere = replace(open_mpi, bin=str(place))
    assert set(fmt.live(path, nowhere).env) == {f"OMPI_MCA_{n}" for n in VALUES}


@pytest.mark.parametrize("name", FORMATS)
def test_the_check_is_part_of_what_autotune_would_write(
    open_mpi: Library, tmp_path: Path, name: str
) -> None:
    fmt = script(name, open_mpi)
    path = tmp_path / "f"
    text = text_of(fmt, open_mpi, VALUES, path)
    header = read_header(text)
    installed = load_text(path)
    assert header is not None
    assert installed is not None
    assert header.guards
    assert difference(path, installed, header, open_mpi) is None
    found = difference(path, installed, replace(header, guards=False), open_mpi)
    assert found is not None, "a file that states no check has no such lines"
    found_values = {n.removeprefix("OMPI_MCA_"): v for n, v in read_setting_file(path).items()}
    assert found_values == {"btl_sm_eager_limit": 8192, "coll": "^han"}
