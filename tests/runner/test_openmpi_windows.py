"""Which component of Open MPI serves one-sided calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.space import load_space
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.mpi.openmpi.ucx import UcxLog
from runner.mpi.openmpi.windows import components_of, watching_windows, without_windows
from runner.types import WINDOWS, LaunchSpec, ReadBack, RunRecord
from tests.case_table import case_table
from tests.mpis import PING_PONG, built, library_named

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    static char data[1 << 16], to[1 << 16];
    int rank, size;
    long one = 1, before, *count;
    MPI_Win made, allocated;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_create(to, sizeof to, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &made);
    MPI_Win_fence(0, made);
    for (int bytes = 8; bytes <= 1 << 16; bytes *= 8)
        MPI_Put(data, bytes, MPI_CHAR, (rank + 1) % size, 0, bytes, MPI_CHAR, made);
    MPI_Win_fence(0, made);
    MPI_Win_allocate(sizeof one, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &count, &allocated);
    *count = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, allocated);
    for (int i = 0; i < 100; i++)
        MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, allocated);
    MPI_Win_unlock_all(allocated);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("counted %ld\n", *count);
    fprintf(stderr, "own words\n");
    MPI_Win_free(&allocated);
    MPI_Win_free(&made);
    return MPI_Finalize();
}
"""
UCX = {"pml": "ucx", "pml_ucx_tls": "any", "pml_ucx_devices": "any"}
SAID = """\
[vm:7] mca: base: components_register: component sm register function successful
[vm:7] select: component rdma selected
[vm:8] select: component rdma selected
[vm:7] select: component sm selected
[vm:7] pt2pt component destroying window with id 4
a line of the program: select: component ucx selected
""".splitlines()


def test_components_are_found_in_what_the_framework_says() -> None:
    assert components_of(SAID) == ("rdma", "sm", "pt2pt")
    assert components_of([], UcxLog(2, window_lanes=("sysv/memory",))) == ("ucx",)
    assert components_of(["", "[vm:7] mca: base: close: unloading component ucx"]) == ()


@case_table(
    ("name", "components", "why"),
    [
        ("osc_ucx_acc", ("rdma", "sm"), "osc/ucx serves no window; osc/rdma and osc/sm does"),
        ("osc_rdma_buffer_size", ("rdma",), ""),
        ("osc", ("rdma",), ""),
        ("osc", (), "the program makes no window"),
        ("osc_rdma_buffer_size", (), "the program makes no window"),
        ("osc_base_verbose", (), ""),
        ("btl_sm_eager_limit", (), ""),
    ],
)
def test_parameters_without_a_window_are_inactive(
    name: str, components: tuple[str, ...], why: str
) -> None:
    found = without_windows({name: ReadBack("in force", "1", "1")}, components)
    assert [(back.state, back.source) for back in found.values()] == (
        [("inactive", why)] if why else []
    )


def test_windows_are_watched_only_if_asked() -> None:
    assert watching_windows(LaunchSpec(("x",), 2)) == {}
    assert watching_windows(LaunchSpec(("x",), 2, watch_windows=True)) == {"osc_base_verbose": "10"}
    assert watching_windows(LaunchSpec(("x",), 2, watch_windows=True, read_back=False)) == {}
    mine = ("--mca", "osc_base_verbose", "1")
    assert watching_windows(LaunchSpec(("x",), 2, launch_options=mine, watch_windows=True)) == {}


Run = Callable[..., RunRecord]


@pytest.fixture(params=["openmpi-5", "openmpi-4.1"])
def generation(request: pytest.FixtureRequest) -> Library:
    return library_named(str(request.param))


@pytest.fixture
def run(generation: Library, tmp_path: Path) -> Run:
    """One watched run of a program with the parameters, under either generation."""

    def once(mca: dict[str, str], source: str = PROGRAM, **more: dict[str, str]) -> RunRecord:
        program = built(generation, tmp_path, source)
        options = ("--mca", "btl", "^ofi") if generation.version_tuple >= (5,) else ()
        spec = LaunchSpec(
            (str(program),),
            2,
            {"mca": mca},
            launch_options=options,
            timeout_s=30,
            watch_windows=True,
            verify="counted 200" if source == PROGRAM else None,
            **more,
        )
        with Runner(adapter(generation), guard=False) as runner:
            return runner.run(spec)

    return once


@pytest.mark.mpi
def test_the_components_of_the_default_are_read_back(run: Run, generation: Library) -> None:
    record = run({})
    assert record.valid, (record.reason, record.stderr_tail)
    chosen = "rdma, sm" if generation.version_tuple >= (5,) else "rdma"
    assert record.read_back[WINDOWS].effective == chosen
    assert record.inherited == {} or "osc_base_verbose" not in record.inherited
    assert "select:" not in record.stderr_tail
    assert "destroying" not in record.stderr_tail
    assert "own words" in record.stderr_tail
    without = run({"osc": "rdma"}, PING_PONG)
    assert WINDOWS not in without.read_back
    if generation.version_tuple >= (5,):
        assert without.read_back["osc"].source == "the program makes no window"


@pytest.mark.mpi
@pytest.mark.slow
def test_every_level_is_read_back_and_serves_the_windows(run: Run, generation: Library) -> None:
    space = load_space("openmpi-rma", generation, {"ranks": 2, "cores": 2, "nodes": 1})
    ours = [p for p in space if p.name.startswith("osc")]
    assert {p.name.split("_")[1] for p in ours if "_" in p.name} >= {"rdma"}
    for parameter in ours:
        for level in parameter.levels:
            part = parameter.name.split("_")[1] if "_" in parameter.name else str(level)
            setting = {"osc": part, parameter.name: level}
            if "outstanding" in parameter.name:
                setting["osc_ucx_enable_nonblocking_accumulate"] = 1
            if part == "ucx":
                setting["pml"] = "ucx"
            launched = space.launched(setting)
            record = run(launched["mca"], variables=launched.get("env", {}))
            back = record.read_back[parameter.name]
            assert (record.state, back.state) == ("ok", "in force"), (setting, record.reason)
            assert record.read_back[WINDOWS].effective == part, setting


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize(
    "canary", [{"osc": "no_such"}, {"osc": "rdma", "osc_rdma_locking_mode": "no_such"}]
)
def test_a_canary_is_refused(run: Run, canary: dict[str, str]) -> None:
    # It fails, or hangs (mpirun of 5.0, sometimes), or another value was read back.
    assert run(canary).state in ("failed", "timeout", "not_read_back")


def test_lines_of_a_program_that_look_like_the_librarys_are_bounded() -> None:
    lines = [f"[vm:{n}] select: component c{n} selected" for n in range(4000)]
    assert len(components_of(lines)) == 16
    assert components_of([f"[vm:1] select: component {'x' * 60_000} selected"]) == ()
