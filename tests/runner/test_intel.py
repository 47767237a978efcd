"""Intel MPI without the library: what its commands and its startup say, and how it is started.

The texts are those of 2021.18.1.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.errors import RunnerUsageError
from runner.mpi import discover
from runner.mpi.intel import IntelMpi
from runner.mpi.intel_info import parse, read_parameters, words_of
from runner.mpi.intel_startup import FILE, idle_under, parse_startup
from runner.mpi.library import Library, enumerated_values
from runner.mpi.mpiexec_conf import conf_files, variables_in
from runner.types import LIBRARY, TRANSPORT, LaunchSpec, ReadBack
from tests.case_table import case_table
from tests.refusals import refused

DATA = Path(__file__).parent / "data"
USUAL = (DATA / "impi_info_2021.18.1_usual.txt").read_text()
EXPERT = (DATA / "impi_info_2021.18.1_expert.txt").read_text()
PARAMS = parse(EXPERT, set(parse(USUAL)))
ABSENT = Library("impi", "2021.18.1", "/opt/impi/bin", "/opt/impi/bin/mpirun", PARAMS)
SHM = """\
[0] MPI startup(): Intel(R) MPI Library, Version 2021.18.1  Build 20260626 (id: b44796a)
[0] MPI startup(): library kind: release
[0] MPI startup(): shm segment size (1068 MB per rank) * (2 local ranks) = 2136 MB total
[0] MPI startup(): Load tuning file: "/opt/impi/opt/mpi/etc/tuning_generic_shm.dat"
[0] MPI startup(): ===== CPU pinning =====
[0] MPI startup(): Rank    Pid      Node name  Pin cpu
[0] MPI startup(): 0       9129     vm         {0}
[0] MPI startup(): I_MPI_ROOT=/opt/impi
[0] MPI startup(): I_MPI_DEBUG=5
"""
REFUSED = """\
[0] MPI startup(): libfabric version: 2.4.0-impi
[0] MPI startup(): libfabric provider: tcp
[0] MPI startup(): nonsense fabric is unknown or has been removed from the product, please use ofi or shm:ofi instead.
[0] MPI startup(): "icx" shm transport is not supported. "bdw_sse" shm transport will be used.
[0] MPI startup(): Load tuning file: "/nonexistent"
[0] MPI startup(): File "/nonexistent" not found
[0] MPI startup(): Tuning file "/nonexistent" was not loaded! Load default tuning file: "/opt/impi/opt/mpi/etc/tuning_generic_ofi.dat"
[0] MPI startup(): Incorrect algorithm: BCAST=99, will be ignored
[0] MPI startup(): Incorrect adjust value: BARRIER=nonsense, will be ignored
[0] MPI startup(): I_MPI_FABRICS=nonsense
[0] MPI startup(): I_MPI_XX environment variable is not supported.
[0] MPI startup(): Similar variables:
[0] 	 I_MPI_CXX
"""  # noqa: E501
TO_OFI = SHM.replace("tuning_generic_shm.dat", "tuning_generic_shm-ofi.dat").replace(
    "library kind: release", "libfabric provider: tcp;ofi_rxm"
)


def read(value: str) -> ReadBack:
    return ReadBack("in force", value, value, "read by libmpi.so.12")


# impi_info


def test_a_range_is_an_enumeration() -> None:
    assert list(PARAMS["I_MPI_ADJUST_BCAST"].enum) == list(range(23))
    assert PARAMS["I_MPI_ADJUST_BCAST"].type == "int"
    assert not PARAMS["I_MPI_SHM_EAGER_THRESHOLD"].enum


def test_an_enumeration_without_names_is_said_in_short() -> None:
    assert enumerated_values(PARAMS["I_MPI_ADJUST_BCAST"].enum) == "0 to 22"
    assert enumerated_values({2: "b", 1: "a"}) == "1 a, 2 b"


def test_types_defaults_and_levels() -> None:
    found = {n: (p.type, p.default) for n, p in PARAMS.items()}
    assert found["I_MPI_SHM_EAGER_THRESHOLD"] == ("int", "")
    assert found["I_MPI_JOB_STARTUP_TIMEOUT"] == ("string", "-1")
    assert found["I_MPI_JOB_IDLE_TIMEOUT"] == ("double", "")
    assert found["I_MPI_FABRICS"] == ("string", "")
    assert PARAMS["I_MPI_FABRICS"].level < PARAMS["MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE"].level
    assert "ONEAPI_ROOT" in PARAMS, "its name is listed with a blank behind it"


def test_a_description_is_put_together_where_it_was_cut() -> None:
    text = PARAMS["I_MPI_COLL_SHM_THRESHOLD"].help
    assert "for data placement. Messages greater" in text  # data
    assert "\n" not in text


def test_the_words_that_a_variable_takes() -> None:
    assert words_of(PARAMS["I_MPI_PIN_ORDER"]) == {
        "range", "scatter", "compact", "spread", "bunch",
    }  # fmt: skip
    assert {"core", "numa", "socket"} < words_of(PARAMS["I_MPI_PIN_DOMAIN"])
    assert not words_of(PARAMS["I_MPI_SHM_EAGER_THRESHOLD"])


@case_table("text", ["", "no list\n", "I_MPI_X\n", "  Default:\n", "�\nI_MPI_Y \n"])
def test_an_odd_list_is_read_as_far_as_it_goes(text: str) -> None:
    assert set(parse(text)) <= {"I_MPI_X", "I_MPI_Y"}


def test_the_list_is_stored_until_the_command_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command = tmp_path / "impi_info"
    assert read_parameters(command, {}) == {}
    command.write_text(f"#!/bin/sh\necho >> {tmp_path}/asked\necho I_MPI_FIRST\n")
    command.chmod(0o755)
    for _ in range(2):
        assert set(read_parameters(command, dict(os.environ))) == {"I_MPI_FIRST"}
    assert (tmp_path / "asked").read_text() == "\n\n", "once each with and without -e"
    command.write_text("#!/bin/sh\necho I_MPI_SECOND_ONE\n")
    assert set(read_parameters(command, dict(os.environ))) == {"I_MPI_SECOND_ONE"}
    for stored in (tmp_path / "cache").rglob("*.json"):
        stored.write_text('["only one"]')
    assert set(read_parameters(command, dict(os.environ))) == {"I_MPI_SECOND_ONE"}


# What the library says while it starts


@case_table(
    ("text", "transport"),
    [
        ("", ""),
        ("hello\n", ""),
        (SHM, "shm"),
        (REFUSED, "ofi: tcp"),
        (TO_OFI, "shm:ofi: tcp;ofi_rxm"),
        (TO_OFI + "[0] MPI startup(): I_MPI_FABRICS=ofi\n", "ofi: tcp;ofi_rxm"),
        (TO_OFI + "[0] MPI startup(): Fallback to shm:ofi fabric\n", "shm:ofi: tcp;ofi_rxm"),
    ],
)
def test_the_transport_in_force(text: str, transport: str) -> None:
    assert parse_startup(text).transport == transport


@case_table(
    ("name", "value", "effective"),
    [
        ("I_MPI_ADJUST_BCAST", "99", "(ignored)"),
        ("I_MPI_ADJUST_BARRIER", "nonsense", "(ignored)"),
        ("I_MPI_FABRICS", "nonsense", "ofi"),
        ("I_MPI_SHM", "icx", "bdw_sse"),
        ("I_MPI_TUNING_BIN", "/nonexistent", "/opt/impi/opt/mpi/etc/tuning_generic_ofi.dat"),
        ("I_MPI_OFI_PROVIDER", "mlx", "tcp"),
        ("FI_PROVIDER", "psm3,mlx", "tcp"),
        ("I_MPI_PIN_ORDER", "nonsense", "(ignored)"),
        ("I_MPI_PIN_DOMAIN", "nonsense", "(ignored)"),
        ("I_MPI_COLL_INTRANODE", "nonsense", "(ignored)"),
        ("I_MPI_WAIT_MODE", "99999999999", "(too large a number)"),  # data
    ],
)
def test_another_value_in_force(name: str, value: str, effective: str) -> None:
    back = parse_startup(REFUSED).judge(name, read(value), PARAMS.get(name))
    assert (back.state, back.requested, back.effective) == ("altered", value, effective)


@case_table(
    ("name", "value"),
    [
        ("I_MPI_ADJUST_ALLREDUCE", "3"),
        ("I_MPI_OFI_PROVIDER", "tcp"),
        ("FI_PROVIDER", "mlx,tcp"),
        ("FI_PROVIDER", "^mlx"),
        ("I_MPI_PIN_ORDER", "scatter"),
        ("I_MPI_PIN_DOMAIN", "omp"),
        ("I_MPI_PIN_DOMAIN", "2:compact"),
        ("I_MPI_COLL_DIRECT", "0"),
    ],
)
def test_a_value_that_stays(name: str, value: str) -> None:
    assert parse_startup(REFUSED).judge(name, read(value), PARAMS.get(name)) == read(value)


def test_a_variable_that_the_library_does_not_have() -> None:
    startup = parse_startup(REFUSED)
    inactive = ReadBack("inactive", "1")
    assert startup.judge("I_MPI_XX", read("1"), None).state == "unknown"
    assert startup.judge("I_MPI_XX", inactive, None).state == "unknown"
    assert startup.judge("I_MPI_SHM", inactive, None) == inactive


def test_what_cannot_act_under_a_transport() -> None:
    names = [
        "I_MPI_SHM_CMA",
        "I_MPI_SHM",
        "I_MPI_OFI_PROVIDER",
        "FI_TCP_NODELAY",
        "I_MPI_WAIT_MODE",
    ]
    assert set(idle_under(names, "shm")) == {"I_MPI_OFI_PROVIDER", "FI_TCP_NODELAY"}
    assert set(idle_under(names, "ofi: tcp")) == {"I_MPI_SHM_CMA"}
    assert idle_under(names, "shm:ofi: tcp") == idle_under(names, "") == {}
    back = parse_startup(SHM).judge("I_MPI_OFI_PROVIDER", read("tcp"), None)
    assert back.state == "inactive"
    assert "shm" in back.source


# The launch


def test_the_environment_has_the_library_of_the_launcher_first(tmp_path: Path) -> None:
    for name in ("bin/mpirun", "bin/mpiexec.hydra", "lib/libmpi.so.12"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch(mode=0o755)
    library = Library("impi", "1", str(tmp_path / "bin"), str(tmp_path / "bin" / "mpirun"))
    spec = LaunchSpec(("a",), 2, env={"MINE": "1"})
    env = IntelMpi(library).environment(spec, {"PATH": "/usr/bin", "LD_LIBRARY_PATH": "/first"})
    assert env["PATH"] == f"{tmp_path}/bin:/usr/bin"
    assert env["LD_LIBRARY_PATH"] == f"{tmp_path}/lib:/first"
    assert (env["I_MPI_ROOT"], env["MINE"]) == (str(tmp_path), "1")
    again = IntelMpi(library).environment(spec, env)
    assert again == env


def test_the_program_is_the_one_on_the_callers_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment with Intel MPI may have a python of its own."""
    for folder in ("own", "bin"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "prog").touch(mode=0o755)
    library = Library("impi", "1", str(tmp_path / "bin"), str(tmp_path / "bin" / "mpirun"))
    monkeypatch.setenv("PATH", f"{tmp_path}/own:/usr/bin:/bin")
    launcher = IntelMpi(library)
    assert launcher.program(LaunchSpec(("prog", "x"), 1)) == (f"{tmp_path}/own/prog", "x")
    assert launcher.program(LaunchSpec(("sh", "x"), 1)) == ("sh", "x")


def test_a_clean_environment_keeps_how_nodes_are_reached(tmp_path: Path) -> None:
    inherited = {"I_MPI_ADJUST_BCAST": "3", "I_MPI_HYDRA_BOOTSTRAP": "slurm", "PATH": "/bin"}
    spec = LaunchSpec(("a",), 2, clean_env=True)
    env = IntelMpi(ABSENT).environment(spec, inherited)
    assert "I_MPI_ADJUST_BCAST" not in env
    assert env["I_MPI_HYDRA_BOOTSTRAP"] == "slurm"
    assert "-noconf" in IntelMpi(ABSENT).command(spec, tmp_path)
    assert "-noconf" not in IntelMpi(ABSENT).command(LaunchSpec(("a",), 2), tmp_path)


def test_more_ranks_than_cores_yield_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher, wait = IntelMpi(ABSENT), "I_MPI_WAIT_MODE"
    spec = LaunchSpec(("a",), 4, oversubscribe=True, read_back=False)
    assert launcher.command(spec, tmp_path)[3:6] == ["-genv", wait, "1"]
    own = LaunchSpec(("a",), 4, {LIBRARY: {wait: "0"}}, oversubscribe=True, read_back=False)
    assert launcher.command(own, tmp_path)[3:9] == ["-genv", wait, "1", "-genv", wait, "0"]
    monkeypatch.setenv(wait, "0")
    assert wait not in launcher.command(spec, tmp_path)


def test_a_binding_that_the_launcher_would_ignore_is_refused() -> None:
    launcher = IntelMpi(ABSENT)
    assert launcher.variables({}, {"bind_to": "none"}) == {"I_MPI_PIN": "0"}
    assert launcher.variables({}, {"bind_to": "package"})["I_MPI_PIN_DOMAIN"] == "socket"
    with refused(RunnerUsageError, "parameter.value"):
        launcher.placement_words({"bind_to": "board"}, False)


@case_table(
    ("parameter", "operations"),
    [
        ("I_MPI_ADJUST_ALLGATHERV", ("allgatherv",)),
        ("I_MPI_ADJUST_ALLGATHER", ("allgather",)),
        ("I_MPI_ADJUST_REDUCE_SCATTER_BLOCK", ("reduce_scatter_block",)),
        ("I_MPI_ADJUST_BCAST_NODE_KNOMIAL_RADIX", ("bcast",)),
        ("I_MPI_ADJUST_IALLREDUCE", ("iallreduce",)),
        ("I_MPI_WAIT_MODE", ()),
    ],
)
def test_the_collective_of_a_parameter(parameter: str, operations: tuple[str, ...]) -> None:
    assert IntelMpi.operations_of(parameter) == operations


def test_the_files_of_the_launcher_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, here, root = (tmp_path / name for name in ("home", "here", "root"))
    for place in (home, here, root / "intel64" / "etc"):
        place.mkdir(parents=True)
    (home / ".mpiexec.conf").write_text("# -genv A 0\n-genv I_MPI_ADJUST_BCAST 3 # x\n-n 2\n")
    (here / "mpiexec.conf").write_text("-genv I_MPI_PIN 0 -env B 1\n")
    (root / "intel64" / "etc" / "mpiexec.conf").write_text("-genv C\n")
    found = conf_files({"HOME": str(home), "I_MPI_ROOT": str(root)}, here)
    assert [variables_in(path) for path in found] == [
        {}, {"I_MPI_ADJUST_BCAST": "3"}, {"I_MPI_PIN": "0", "B": "1"},
    ]  # fmt: skip
    assert conf_files({}, tmp_path) == []
    assert variables_in(tmp_path / "none") == {}
    (tmp_path / "latin").write_bytes(b"-genv A \xe9\n")
    assert variables_in(tmp_path / "latin") == {}
    monkeypatch.chdir(here)
    listed = IntelMpi(ABSENT).inherited_settings({"HOME": str(home), "I_MPI_PIN": "1"})
    assert listed == {
        "I_MPI_PIN": "1",
        f"{home}/.mpiexec.conf:I_MPI_ADJUST_BCAST": "3",
        f"{here}/mpiexec.conf:I_MPI_PIN": "0",
        f"{here}/mpiexec.conf:B": "1",
    }


def test_a_program_that_is_not_there_was_never_started(tmp_path: Path) -> None:
    """The launcher's own message is lost now and then."""
    launcher = IntelMpi(ABSENT)
    missing = launcher.probe(LaunchSpec(("/nonexistent/program",), 2), tmp_path)
    assert "/nonexistent/program" in missing.start_problem
    assert launcher.probe(LaunchSpec(("/bin/true",), 2), tmp_path).start_problem == ""


def test_a_run_shows_its_transport(tmp_path: Path) -> None:
    report = "world 2\nversion Intel(R) MPI Library 2021.18.1 for Linux* OS\n"
    asked = "asked I_MPI_ADJUST_BCAST libmpi.so.12=99\ninitialised\n"
    (tmp_path / "control-variables.txt").write_text(report + asked)
    (tmp_path / FILE).write_text(REFUSED)
    spec = LaunchSpec(("a",), 2, {LIBRARY: {"I_MPI_ADJUST_BCAST": "99"}})
    probe = IntelMpi(ABSENT).probe(spec, tmp_path)
    assert probe.library_mismatch is None
    assert probe.read_back["I_MPI_ADJUST_BCAST"].state == "altered"
    assert probe.read_back[TRANSPORT].effective == "ofi: tcp"


# Discovery


def test_the_launcher_is_asked_with_its_own_directory_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``mpirun`` is a script that calls ``mpiexec.hydra``; MPICH's may come first on PATH."""
    said = {
        "mpich": "HYDRA build details:\n    Version:                                 4.0.2",
        "impi": "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: x)",
    }
    for name, text in said.items():
        place = tmp_path / name
        place.mkdir()
        for command, body in (
            ("mpiexec.hydra", f"echo '{text}'"),
            ("mpirun", 'mpiexec.hydra "$@"'),
        ):
            (place / command).write_text(f"#!/bin/sh\n{body}\n")
            (place / command).chmod(0o755)
    for first, second in (("mpich", "impi"), ("impi", "mpich")):
        monkeypatch.setenv("PATH", f"{tmp_path / first}:{tmp_path / second}:/usr/bin:/bin")
        found = [library.family for library in discover.libraries()]
        assert [name for name in found if name in said][:2] == [first, second]
        library = discover.identify(tmp_path / "impi" / "mpirun")
        assert library is not None
        assert (library.version, library.bin) == ("2021.18.1", str(tmp_path / "impi"))
