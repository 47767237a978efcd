"""Launch lines that autotune prints: each is one that it takes, with the same meaning."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.config.app import app_from_command
from autotune.config.cluster import load_cluster
from autotune.measurement.bench import _default_fails
from autotune.space import Parameter, Setting, Space
from autotune.space.parameter import ParameterKind
from autotune.targets.launcher_line import LauncherLine, parse_launcher_line, script_words
from autotune.targets.target import Target
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.outcome import inside_words
from runner.types import RunRecord
from tests.case_table import case_table
from tests.lines import answer, lines_in, refused
from tests.mpis import library_named

INTEL = Library("impi", "2021.18.1", "/opt/impi/bin", "/opt/impi/bin/mpirun")
FAMILIES: dict[str, Callable[[], Library]] = {
    "openmpi-4.1": lambda: library_named("openmpi-4.1"),
    "openmpi-5": lambda: library_named("openmpi-5"),
    "mpich": lambda: library_named("mpich"),
    "impi": lambda: INTEL,
}
PROGRAMS = [("./a.out", "in put", "-n", "3", "--mca", "x"), ("./numactl", "-i", "all", "./a.out")]
OPEN_MPI = (
    "--mca btl self,sm --hostfile hosts --cpu-list 0,1",
    "-x 'UCX_TLS=self, tcp' -x LD_LIBRARY_PATH --tune 'my tuned'",
    "--map-by slot:PE=2 --bind-to core --rank-by slot --report-bindings",
    "--rankfile 'rank file' --oversubscribe -wdir 'a folder'",
    "--map-by :OVERSUBSCRIBE --timeout 60 --prefix /opt/mpi",
    "-N 2 -q",
)
HYDRA = (
    "-genv A 'b c' -env B=2 -f hosts -ppn 2",
    "-hosts node1,node2 -wdir 'a folder' -prepend-rank -genvlist HOME",
    "-bind-to core -map-by socket",
)
"""Options of a user's own line, which every printed line has, too."""
LINES = [
    *((family, options) for family in ("openmpi-4.1", "openmpi-5") for options in ("", *OPEN_MPI)),
    *((family, options) for family in ("mpich", "impi") for options in ("", *HYDRA)),
]
KINDS: dict[str, tuple[ParameterKind, str, str]] = {
    "library": ("mca", "coll_tuned_priority", "40"),
    "blank": ("mca", "mca_base_param_file_path", "a folder:b"),
    "runtime": ("prte", "plm_rsh_agent", "ssh -q : rsh"),
    "pmix": ("pmix", "pmix_server_max_wait", "2"),
    "variable": ("env", "UCX_RNDV_THRESH", "a 'b' \"c\" = d"),
    "argument": ("arg", "size", "3 4"),
    "mapping": ("placement", "map_by", "core"),
    "binding": ("placement", "bind_to", "core"),
}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a.out", "a b", "numactl"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "my tuned").write_text("--mca pml ob1\n-x 'A=b c'\n")
    (tmp_path / "tuned file.conf").write_text("--mca coll_tuned_priority 40\n")
    return tmp_path


def target_of(line: LauncherLine, library: Library) -> Target:
    """The target of a launch line as a command makes it."""
    return Target.of(
        app_from_command(line.program, None, None, None),
        None,
        line.ranks or 2,
        load_cluster("local"),
        library,
        options=line.options,
        placement=line.placement,
        cores_each=line.cores_each,
    )


def parsed(text: str, library: Library) -> LauncherLine:
    return parse_launcher_line(tuple(shlex.split(text)), "search", None, library)


def check_fed_back(printed: str, library: Library) -> None:
    """The printed line is taken, and the line that is printed for it means the same."""
    assert refused(printed, library) is None
    line = parsed(printed, library)
    again = target_of(line, library).mpirun_line(adapter(library), None, Setting({}))
    other = parsed(again, library)
    assert (other.program, other.ranks) == (line.program, line.ranks)
    assert other.placement == line.placement
    assert pairs(other) == pairs(line)


def pairs(line: LauncherLine) -> list[str]:
    """The options of a line, whatever their order is."""
    return sorted(line.options)


@case_table("program", PROGRAMS)
@case_table(("family", "options"), LINES)
def test_a_line_of_a_user_comes_back(
    family: str, options: str, program: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = FAMILIES[family]()
    typed = shlex.join([library.launcher, "-n", "2", *shlex.split(options), *program])
    line = parsed(typed, library)
    assert line.program == program
    for root in (0, 1000):
        monkeypatch.setattr(os, "geteuid", lambda root=root: root)
        target = target_of(line, library)
        for cores in (1, 64):  # More ranks than cores, and fewer.
            known = replace(target, cores=cores)
            check_fed_back(known.mpirun_line(adapter(library), None, Setting({})), library)


@case_table("kind", KINDS)
@case_table("family", FAMILIES)
def test_a_setting_of_every_kind(family: str, kind: str) -> None:
    library = FAMILIES[family]()
    where, name, value = KINDS[kind]
    own = adapter(library)
    if where in ("prte", "pmix") and where not in own.kinds:
        return
    if where == "mca" and not own.tune_option:
        name = "MPIR_CVAR_X" if library.family == "mpich" else "I_MPI_X"
    space = Space("one", (Parameter(name, (value,), target=where),))
    line = parsed(shlex.join([library.launcher, "-n", "2", "./a b"]), library)
    target = target_of(line, library)
    printed = target.mpirun_line(own, space, Setting({name: value}))
    assert value in shlex.split(printed) or value in printed or where in ("env", "placement")
    check_fed_back(printed, library)
    if own.tune_option and where == "mca":
        with_file = target.mpirun_line(own, space, Setting({name: value}), "tuned file.conf")
        check_fed_back(with_file, library)
        assert parsed(with_file, library).options[-3:] == ("--mca", "coll_tuned_priority", "40")


@case_table("clean_env", [False, True])
@case_table("family", FAMILIES)
def test_the_command_of_a_run(family: str, clean_env: bool, place: Path) -> None:
    """It is shown if the default does not run; it has the options of the read-back, too."""
    library = FAMILIES[family]()
    line = parsed(shlex.join([library.launcher, "-n", "2", "./a b"]), library)
    spec = replace(target_of(line, library).spec(None), clean_env=clean_env, read_back=True)
    command = adapter(library).command(spec, place)
    assert any(str(place) in word for word in command[:-1])
    record = RunRecord("failed", "as it is", command=tuple(command))
    (shown,) = lines_in(_default_fails(record))
    assert refused(shown, library) is None
    (inner,) = lines_in(inside_words(spec, command).partition(": -- ")[2])
    assert refused(inner, library) is None


@case_table("line", ["-np 2 ./a.out", "-np 2 --frob 3 --app F './a b'", "-np ./a.out"])
@case_table("before", ["", "A='b c' ", "time -p ", "timeout 60 ", "stdbuf -oL "])
def test_a_line_in_place_of_another(before: str, line: str, place: Path) -> None:
    """Of words before the launcher, of a shell's text, and of a script."""
    typed = f"{before}mpirun {line}"
    assert refused(typed) is None
    assert refused(shlex.join(["bash", "-c", f"cd . && {typed}"])) is None
    assert refused(f"mpirun -n 2 {before}./a.out") is None
    (place / "job.sh").write_text(f"#!/bin/sh\n{typed}\n")
    (given,) = lines_in(script_words(("bash", "job.sh"), "run", place))
    assert not answer(given).code


@case_table("family", FAMILIES)
def test_the_line_for_another_job_is_answered(family: str) -> None:
    """It has ``taskset`` before it; the answer names a cluster of these CPUs."""
    library = FAMILIES[family]()
    words = adapter(library).line_on(frozenset({0}), 1)
    assert words[0] == "taskset"
    assert refused(shlex.join(words), library) is None
