"""What the ranks report of their MPI library, and the states that follow."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.mpi import control_variables
from runner.mpi.control_variables import (
    LOAD_MARK,
    REPORT,
    preload_among,
    read_report,
    report_variables,
)
from runner.mpi.library import Library, ParamInfo
from tests.case_table import case_table

WHOLE = r"""world 4
library /opt/mpich/lib/libmpi.so.12
version MPICH Version:	5.0.2
MPI_INT MPIR_CVAR_BCAST_INTRA_ALGORITHM=1
MPI_INT MPIR_CVAR_POLLS_BEFORE_YIELD=10
MPI_CHAR MPIR_CVAR_CH4_NETMOD=
MPI_CHAR MPIR_CVAR_NEVER_ASKED=
asked MPIR_CVAR_CH4_NETMOD libmpi.so.12=ucx
asked UCX_TLS libucs.so.0=self,a=b\\c\nd
asked UCX_RNDV_THRESH libucs.so.0
odd
initialised
"""
LIBRARY = Library(
    "mpich",
    "5.0.2",
    "/opt/mpich/bin",
    "/opt/mpich/bin/mpirun",
    {
        "MPIR_CVAR_BCAST_INTRA_ALGORITHM": ParamInfo(
            "MPIR_CVAR_BCAST_INTRA_ALGORITHM",
            "string",
            "auto",
            enum={0: "auto", 1: "binomial"},
            by_name=True,
        )
    },
)


def report(place: Path, text: str = WHOLE) -> control_variables.RankReport:
    (place / REPORT).write_text(text)
    return read_report(place)


@case_table(
    ("name", "value", "state", "effective"),
    [
        ("MPIR_CVAR_BCAST_INTRA_ALGORITHM", "binomial", "in force", "binomial"),
        ("MPIR_CVAR_BCAST_INTRA_ALGORITHM", "auto", "altered", "binomial"),
        ("MPIR_CVAR_POLLS_BEFORE_YIELD", "10", "in force", "10"),
        ("MPIR_CVAR_POLLS_BEFORE_YIELD", "11", "altered", "10"),
        ("MPIR_CVAR_CH4_NETMOD", "ucx", "in force", "ucx"),
        ("MPIR_CVAR_CH4_NETMOD", "ofi", "altered", "ucx"),
        ("MPIR_CVAR_NEVER_ASKED", "x", "inactive", None),
        ("MPIR_CVAR_NO_SUCH_THING", "1", "unknown", None),
        ("UCX_TLS", "self,a=b\\c\nd", "in force", "self,a=b\\c\nd"),
        ("UCX_RNDV_THRESH", "8k", "altered", "(not set)"),
        ("UCX_NOBODY", "1", "inactive", None),
        ("FI_PROVIDER", "tcp", "inactive", None),
    ],
)
def test_states(tmp_path: Path, name: str, value: str, state: str, effective: str | None) -> None:
    found = report(tmp_path).state(name, value, LIBRARY)
    assert (found.state, found.effective) == (state, effective)


def test_the_rest_of_the_report(tmp_path: Path) -> None:
    found = report(tmp_path)
    assert (found.is_initialised, found.world_size) == (True, 4)
    assert found.version == "MPICH Version: 5.0.2"
    assert found.path == "/opt/mpich/lib/libmpi.so.12"


def test_a_program_without_mpi_is_told_from_one_that_cannot_report(tmp_path: Path) -> None:
    assert not read_report(tmp_path).is_loaded
    (tmp_path / LOAD_MARK).touch()
    silent = read_report(tmp_path)
    assert silent.is_loaded
    assert not silent.is_initialised


@given(st.text(max_size=400))
def test_any_text_is_a_report(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        (Path(place) / REPORT).write_bytes(text.encode("utf-8", "surrogatepass"))
        read_report(Path(place)).state("UCX_TLS", "x", LIBRARY)


def test_what_a_launch_preloads_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    assert preload_among((), {}) is None
    assert preload_among(("-genv", "LD_PRELOAD", "/a.so"), {"LD_PRELOAD": "/b.so"}) == "/a.so"
    assert preload_among(("-x", "LD_PRELOAD=/a.so"), {}) == "/a.so"
    assert preload_among((), {"LD_PRELOAD": "/b.so"}) == "/b.so"
    monkeypatch.setenv("LD_PRELOAD", "/c.so")
    assert preload_among((), {}) == "/c.so"


def test_without_a_compiler_nothing_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    control_variables.reporting_library.cache_clear()
    try:
        assert control_variables.reporting_library() is None
        assert report_variables(tmp_path, ["A"], None) == {}
    finally:
        control_variables.reporting_library.cache_clear()


def test_the_ranks_are_told_where_to_report(tmp_path: Path) -> None:
    if control_variables.reporting_library() is None:
        pytest.skip("no C compiler")
    found = report_variables(tmp_path, ["B", "A", "A:B"], "/other.so")
    assert found["LD_PRELOAD"].endswith(".so:/other.so")
    assert found["AUTOTUNE_WATCHED_VARIABLES"].split(":")[-2:] == ["A", "B"]
    assert Path(found["AUTOTUNE_CONTROL_VARIABLES"]).parent == tmp_path
