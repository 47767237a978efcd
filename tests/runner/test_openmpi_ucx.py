"""UCX and libfabric below Open MPI: what a run shows of transports and environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.space import Space, load_space
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.mpi.openmpi.traffic import idle_under
from runner.mpi.openmpi.ucx import (
    UCX_LINE,
    UNNAMED,
    logging_ucx,
    parse_ucx_log,
    ucx_logs,
    ucx_protocols,
    ucx_variables,
    uses_ucx,
)
from runner.types import TRANSPORT, LaunchSpec, ReadBack, RunRecord
from tests.case_table import case_table
from tests.mpis import built
from tests.runner.test_openmpi_protocols import TABLES
from tests.started import started

SOURCE = """
#include <mpi.h>
int main(int argc, char **argv)
{
    static char data[300000];
    int rank, sizes[] = {8, 1000, sizeof data};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int n = 0; n < 3; n++) {
        if (rank == 0) MPI_Send(data, sizes[n], MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(data, sizes[n], MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(data, sizes[n], MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    return MPI_Finalize();
}
"""
OPTIONS = ("--mca", "btl", "^ofi")
UCX = {"pml": "ucx", "pml_ucx_tls": "any", "pml_ucx_devices": "any"}
LOG = """\
[17.600000] [vm:1:0] ucp_context.c:2463 UCX  INFO  Version 1.20.1 (loaded from /x/libucp.so.0)
[17.600000] [vm:1:0] parser.c:2355 UCX  WARN  unused environment variables: UCX_FOO (maybe: UCX_TLS?), UCX_Y
[17.600000] [vm:1:0] parser.c:2355 UCX  WARN  (set UCX_WARN_UNUSED_ENV_VARS=n to suppress this warning)
[17.600000] [vm:1:0] parser.c:2364 UCX  INFO  UCX_* env variables: UCX_TLS=self,sysv,cma UCX_MM_SEG_SIZE=16k
[17.600000] [vm:1:0] ucp_worker.c:1912 UCX  INFO    ucp_context_0 self cfg#0 tag(self/memory cma/memory)
[17.600000] [vm:1:0] ucp_worker.c:1912 UCX  INFO    ucp_context_0 intra-node cfg#1 tag(sysv/memory cma/memory)
[17.600000] [vm:1:0] ucp_worker.c:1912 UCX  INFO    ucp_context_0 inter-node cfg#2 tag(tcp/eth0.2)
"""  # noqa: E501


def test_a_log_is_understood() -> None:
    log = parse_ucx_log([LOG, LOG])
    assert log.ranks == 2
    assert log.read == {"UCX_TLS": "self,sysv,cma", "UCX_MM_SEG_SIZE": "16k"}
    assert log.unused_hints == {"UCX_FOO": "maybe: UCX_TLS?", "UCX_Y": ""}
    assert log.lanes == {
        "intra-node": ("sysv/memory", "cma/memory"),
        "inter-node": ("tcp/eth0.2",),
    }


def test_a_log_of_an_older_ucx_is_understood() -> None:
    """UCX 1.13.1, of Debian 12; the second context is that of osc/ucx."""
    lines = [
        "ep_cfg[0]: tag(self/memory0 cma/memory)",
        "ep_cfg[1]: tag(sysv/memory cma/memory)",
        "ep_cfg[0]: rma(self/memory0 sysv/memory posix/memory) amo(self/memory0)",
        "ep_cfg[1]: rma(sysv/memory posix/memory) amo(sysv/memory posix/memory)",
        "ep_cfg[2]: rma_am(tcp/lo) amo_am(tcp/lo)",
    ]
    begin = "[1795906270.801888] [vm:16440:0]      ucp_worker.c:1763 UCX  INFO    "
    log = parse_ucx_log(["\n".join(f"{begin}{line}" for line in lines)])
    assert log.lanes == {UNNAMED: ("sysv/memory", "cma/memory")}
    assert log.window_lanes == ("sysv/memory", "posix/memory", "tcp/lo")


@case_table("text", ["", "\0\0 UCX", "UCX_* env variables: ", "cfg#1 intra-node"])
def test_other_text_says_nothing(text: str) -> None:
    log = parse_ucx_log([text])
    assert (log.read, log.unused_hints, log.lanes) == ({}, {}, {})


@case_table(
    ("name", "value", "carries", "state"),
    [
        ("UCX_TLS", "self,sysv,cma", True, "in force"),
        ("UCX_TLS", "self,tcp", True, "altered"),
        ("UCX_TLS", "self,sysv,cma", False, "inactive"),
        ("UCX_PROTO_INFO", "y", True, None),
        ("UCX_FOO", "1", True, "inactive"),
        ("UCX_RNDV_THRESH", "1k", True, "altered"),
        ("OMP_NUM_THREADS", "1", True, None),
    ],
)
def test_a_variable_is_judged_by_what_ucx_says(
    name: str, value: str, carries: bool, state: str | None
) -> None:
    found = ucx_variables({name: value}, parse_ucx_log([LOG]), carries)
    assert (found[name].state if found else None) == state


def test_variables_of_a_transport_without_a_lane_are_inactive() -> None:
    shown = LOG.replace("UCX_MM_SEG_SIZE=16k", "UCX_TCP_NODELAY=n").replace("tcp/eth0.2", "ud/x")
    back = ucx_variables({"UCX_TCP_NODELAY": "n"}, parse_ucx_log([shown]), True)["UCX_TCP_NODELAY"]
    assert back.state == "inactive"
    assert "tcp" in back.source


def test_variables_act_on_one_sided_calls_under_another_transport() -> None:
    """osc/ucx may serve windows while pml/ob1 carries the messages."""
    shown = LOG[: LOG.index("[17.600000] [vm:1:0] ucp_worker.c")] + (
        "[17.600000] [vm:1:0] w.c:1 UCX  INFO  ucp_context_1 intra-node cfg#0 "
        "rma(sysv/memory)  amo(posix/memory)\n"
    )
    log = parse_ucx_log([shown])
    assert (log.lanes, log.window_lanes) == ({}, ("sysv/memory",))
    assert ucx_variables({"UCX_MM_SEG_SIZE": "16k"}, log, False)["UCX_MM_SEG_SIZE"].state == (
        "in force"
    )


def test_the_source_says_where_rendezvous_begins() -> None:
    shown = LOG.replace("UCX_TLS=self", "UCX_RNDV_THRESH=4k UCX_TLS=self") + TABLES
    log = parse_ucx_log([shown])
    back = ucx_variables({"UCX_RNDV_THRESH": "4k", "UCX_TLS": "self,sysv,cma"}, log, True)
    figures = {name: re.findall(r"MPI_\w+|[0-9]+", one.source) for name, one in back.items()}
    assert figures["UCX_TLS"] == ["1"]
    assert figures["UCX_RNDV_THRESH"] == ["1", "MPI_Isend", "5029", "MPI_Send", "262144"]
    assert ucx_protocols(log)["protocols of MPI_Isend within a node"].effective == (
        "0..92 eager short, 93..5028 eager copy-in copy-out, "  # data
        "5029.. rendezvous zero-copy read from remote"  # data
    )


def test_without_a_log_nothing_is_said_of_ucx() -> None:
    assert ucx_variables({"UCX_TLS": "sysv"}, None, True) == {}


@case_table(
    ("transport", "idle"),
    [
        ("ob1: sm", {"pml_ucx_tls", "UCX_TLS", "mtl_ofi_av", "FI_PROVIDER"}),
        ("ob1: ofi, tcp", {"pml_ucx_tls", "UCX_TLS", "mtl_ofi_av"}),
        ("ucx", {"btl", "btl_sm_flags", "smsc", "mtl_ofi_av", "FI_PROVIDER"}),
        ("cm: ofi", {"btl", "btl_sm_flags", "smsc", "pml_ucx_tls", "UCX_TLS"}),
        ("", set()),
        ("yalla", set()),
    ],
)
def test_each_transport_has_parameters_of_its_own(transport: str, idle: set[str]) -> None:
    names = [
        "btl",
        "btl_sm_flags",
        "smsc",
        "pml_ucx_tls",
        "UCX_TLS",
        "mtl_ofi_av",
        "FI_PROVIDER",
        "coll_tuned_x",
    ]
    assert set(idle_under(names, transport)) == idle


def test_ucx_has_a_part_where_something_names_it() -> None:
    plain = LaunchSpec(("x",), 2, {"mca": {"btl_sm_eager_limit": "1"}})
    assert not uses_ucx(plain)
    assert uses_ucx(plain, inherited_names=["pml"])
    assert uses_ucx(LaunchSpec(("x",), 2, {"mca": UCX}))
    assert uses_ucx(LaunchSpec(("x",), 2, launch_options=("--mca", "pml", "ucx")))
    assert uses_ucx(LaunchSpec(("x",), 2, variables={"UCX_TLS": "sm"}))


def test_many_ranks_on_other_machines_are_not_asked_for_tables(tmp_path: Path) -> None:
    """The launcher forwards each line of them."""
    assert "UCX_PROTO_INFO" in logging_ucx(tmp_path, 1000)
    assert "UCX_PROTO_INFO" in logging_ucx(None, 4)
    assert logging_ucx(None, 1000) == {"UCX_LOG_LEVEL": "info", "UCX_LOG_FILE": "stderr"}


def test_lines_of_standard_error_are_sorted_by_process(tmp_path: Path) -> None:
    lines = [
        *LOG.splitlines()[:2],
        *(line.replace("vm:1:", "vm2:7 :") for line in LOG.splitlines()[2:]),
        "a line of the program with UCX  INFO",
    ]
    assert ucx_logs(tmp_path, lines) == ["\n".join(lines[:2]), "\n".join(lines[2:-1])]
    assert [bool(re.search(UCX_LINE, line)) for line in lines] == [True] * (len(lines) - 1) + [
        False
    ]


@pytest.fixture(scope="module")
def program(open_mpi: Library, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(built(open_mpi, tmp_path_factory.mktemp("program"), SOURCE))


Run = Callable[[dict[str, str], dict[str, str]], RunRecord]


@pytest.fixture
def run(open_mpi: Library, program: str) -> Run:
    """``run(mca, variables)``: a run of two ranks that send each other messages."""

    def once(mca: dict[str, str], variables: dict[str, str]) -> RunRecord:
        spec = LaunchSpec(
            (program,), 2, {"mca": mca}, variables=variables, launch_options=OPTIONS, timeout_s=30
        )
        with Runner(adapter(open_mpi), guard=False) as runner:
            return runner.run(spec)

    return once


def back_of(record: RunRecord, name: str) -> tuple[str, str | None]:
    back: ReadBack = record.read_back[name]
    return back.state, back.effective


@pytest.fixture
def with_ucx(open_mpi: Library) -> Library:
    if "pml_ucx_priority" not in open_mpi.params:
        pytest.skip("this Open MPI was built without UCX")
    return open_mpi


@pytest.mark.mpi
def test_the_default_uses_ob1_and_a_candidate_ucx(run: Run, with_ucx: Library) -> None:
    """What brings UCX into a candidate must not change the default that follows it."""
    candidate = run(UCX, {"UCX_TLS": "self,sysv", "UCX_FOO": "1", "OMP_X": "a;b"})
    default = run({}, {"UCX_TLS": "self,sysv"})
    assert candidate.valid, candidate.reason
    assert back_of(candidate, TRANSPORT) == ("in force", "ucx: sysv/memory")  # data
    assert back_of(candidate, "pml_ucx_tls") == ("in force", "any")
    assert back_of(candidate, "UCX_TLS") == ("in force", "self,sysv")
    assert back_of(candidate, "OMP_X") == ("in force", "a;b")
    assert candidate.read_back["UCX_FOO"].state == "inactive"
    assert "protocols of MPI_Send within a node" in candidate.read_back  # data
    assert not any(name.startswith("protocols of") for name in default.read_back)
    assert default.valid, default.reason
    assert back_of(default, TRANSPORT) == ("in force", "ob1: sm")
    assert default.read_back["UCX_TLS"].state == "inactive"


@pytest.mark.mpi
def test_what_ucx_refuses_is_said(run: Run, with_ucx: Library) -> None:
    record = run(UCX, {"UCX_RNDV_SCHEME": "nonsense"})
    assert record.state == "failed"
    assert "UCX: Invalid value for RNDV_SCHEME: 'nonsense'" in record.reason  # data


@pytest.mark.mpi
def test_the_protocols_show_whether_a_threshold_moved(run: Run, with_ucx: Library) -> None:
    """Where UCX is the default of the cluster its protocols are seen too: no variable names it."""
    name = "protocols of MPI_Isend within a node"
    default = run(UCX, {}).read_back
    moved = run(UCX, {"UCX_RNDV_THRESH": "2k", "UCX_RNDV_SCHEME": "am"}).read_back
    assert "rendezvous" in str(default[name].effective)
    assert "2048.. rendezvous fragmented" in str(moved[name].effective)  # data
    assert "2048.. rendezvous" not in str(default[name].effective)
    assert re.search(r"MPI_Isend [^,]*\b2048\b", str(moved["UCX_RNDV_THRESH"].source))


@pytest.mark.mpi
def test_ucx_of_the_environment_or_seen_before_is_asked_for_its_log(
    program: str, with_ucx: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain = LaunchSpec((program,), 2, launch_options=OPTIONS, timeout_s=30)
    mine = adapter(with_ucx)
    asked = "UCX_PROTO_INFO=y"
    assert asked not in mine.command(plain, tmp_path)
    for name, value in UCX.items():
        monkeypatch.setenv(f"OMPI_MCA_{name}", value)
    assert asked in mine.command(plain, tmp_path)
    with Runner(mine, guard=False) as runner:
        record = runner.run(plain)
    assert "protocols of MPI_Send within a node" in record.read_back  # data
    for name in UCX:
        monkeypatch.delenv(f"OMPI_MCA_{name}")
    assert asked in mine.command(plain, tmp_path)


@pytest.mark.mpi
def test_a_log_that_cannot_be_opened_does_not_end_the_program(
    program: str, with_ucx: Library
) -> None:
    """As in a container that lacks the folder: UCX aborts, and the launch is made again."""
    hide = 'case $UCX_LOG_FILE in /*) UCX_LOG_FILE=/missing$UCX_LOG_FILE;; esac; exec "$@"'
    spec = LaunchSpec(
        ("/bin/sh", "-c", hide, "sh", program),
        2,
        {"mca": UCX},
        variables={"UCX_TLS": "self,sysv"},
        launch_options=OPTIONS,
        timeout_s=30,
    )
    with Runner(adapter(with_ucx), guard=False) as runner:
        records = [runner.run(spec), runner.run(spec)]
    for record in records:
        assert record.valid, (record.reason, record.stderr_tail)
        assert back_of(record, TRANSPORT) == ("in force", "ucx: sysv/memory")  # data
        assert "protocols of MPI_Send within a node" in record.read_back  # data
        assert "UCX  INFO" not in record.stderr_tail


@pytest.mark.mpi
def test_no_way_between_two_ranks_is_said_in_words(run: Run, with_ucx: Library) -> None:
    record = run(UCX, {"UCX_TLS": "self"})
    assert record.state == "failed"
    assert "UCX_NET_DEVICES" in record.reason
    assert "UCX_TLS" in record.reason


@pytest.mark.mpi
def test_parameters_of_ob1_do_nothing_under_ucx(run: Run, with_ucx: Library) -> None:
    record = run({**UCX, "btl_sm_eager_limit": "8192"}, {})
    back = record.read_back["btl_sm_eager_limit"]
    assert back.state == "inactive"
    assert "pml/ucx" in back.source


@pytest.mark.mpi
@pytest.mark.parametrize("copies", [{}, pytest.param({"smsc": "^cma"}, marks=pytest.mark.slow)])
def test_put_and_get_are_the_component_s_own_affair(
    run: Run, open_mpi: Library, copies: dict[str, str]
) -> None:
    if open_mpi.version_tuple < (5,):
        pytest.skip("the component has another name")
    record = run({"btl_sm_flags": "send,put,get", **copies}, {})
    assert record.valid, record.reason
    assert record.read_back["btl_sm_flags"].state == "in force"


def variables_of(space: Space) -> list[str]:
    return [p.name for p in space if p.target == "env"]


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("name", ["openmpi", "openmpi-ucx"])
def test_every_level_of_a_shipped_space_is_read_back(
    run: Run, with_ucx: Library, name: str
) -> None:
    space = load_space(name, with_ucx, {"ranks": 2, "cores": 2, "nodes": 1})
    ours = [p for p in space if p.target == "env" or p.name.startswith("pml_ucx_")]
    assert ours
    for parameter in ours:
        for level in parameter.levels:
            launched = space.launched({"pml": "ucx", parameter.name: level})
            record = run(launched["mca"], launched.get("env", {}))
            state = record.read_back[parameter.name].state
            assert (record.state, state) == ("ok", "in force"), level


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("name", ["openmpi", "openmpi-ucx", "openmpi-tcp"])
def test_ucx_refuses_a_canary_in_each_variable(run: Run, with_ucx: Library, name: str) -> None:
    """A variable that UCX parses stops the program if its value makes no sense."""
    space = load_space(name, with_ucx, {"ranks": 4, "cores": 4, "nodes": 2})
    for variable in variables_of(space):
        record = run(UCX, {variable: "no-such-value"})
        assert record.state == "failed", variable


@pytest.mark.mpi
@pytest.mark.slow
def test_libfabric_reads_each_variable(
    run: Run, program: str, open_mpi: Library, tmp_path: Path
) -> None:
    """libfabric reports each variable that it reads, with its value."""
    if open_mpi.version_tuple < (5,):
        pytest.skip("the space is for Open MPI 5.0")
    space = load_space("openmpi-libfabric", open_mpi, {"ranks": 2, "cores": 2, "nodes": 1})
    levels = {name: space[name].levels[-1] for name in variables_of(space)}
    launched = space.launched({"pml": "cm", **levels})
    record = run(launched["mca"], launched["env"])
    assert back_of(record, TRANSPORT) == ("in force", "cm: ofi")
    assert {record.read_back[name].state for name in levels} == {"in force"}
    spec = LaunchSpec(
        (program,),
        2,
        {"mca": launched["mca"]},
        variables={**launched["env"], "FI_LOG_LEVEL": "info"},
        launch_options=OPTIONS,
        read_back=False,
    )
    launcher = adapter(open_mpi)
    environment = launcher.environment(spec, dict(os.environ))
    done = started(launcher.command(spec, tmp_path), env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    for name in levels:
        word = name.removeprefix("FI_TCP_").lower()
        assert re.search(rf":tcp:core:.* read \w+ var {word}=", done.stderr), name
