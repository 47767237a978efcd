"""The tables of options against what the launchers say of themselves, and lines that they fix."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from autotune.config.launcher import LauncherFile, Match, launcher_options, options_for
from autotune.config.validated import read_toml
from autotune.errors import UsageError
from autotune.targets.launcher_line import fixed_names, parse_launcher_line
from autotune.targets.request import TargetRequest
from autotune.targets.target import Surroundings
from runner.mpi.discover import find_library, identify_environment
from runner.mpi.library import Library
from tests.mpis import library_named

HYDRA = re.compile(r"^ {4}(-[a-z][\w-]*)(?:/(-[\w-]+))?((?: \{[^}]*\})*)", re.M)
OPEN_MPI_4 = re.compile(r"^ *(-[-\w|]+)((?: <arg\d>)*)", re.M)


def match_of(words: list[str], library: Library) -> Match | None:
    (table,) = options_for(library.launcher, library)
    return table.match(words)


def helped(library: Library, *words: str) -> str:
    environment = identify_environment(Path(library.launcher))
    done = subprocess.run(
        [library.launcher, *words], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_all_options_of_hydra() -> None:
    library = library_named("mpich")
    options = HYDRA.findall(helped(library, "-help"))
    assert len(options) > 40
    for name, other, values in options:
        for one in filter(None, (name, other)):
            match = match_of([one, *["v"] * 9], library)
            assert match, one
            if values:
                assert len(match.option.values) == len(values.split("}")) - 1, one


def test_all_options_of_open_mpi_4() -> None:
    library = library_named("openmpi-4.1")
    options = OPEN_MPI_4.findall(helped(library, "--help", "all"))
    assert len(options) > 90
    for names, values in options:
        for one in names.split("|"):
            match = match_of([one, *["v"] * 9], library)
            assert match, one
            if match.option.treatment != "refused":
                assert len(match.option.values) == len(values.split()), one


def test_all_options_of_open_mpi_5(open_mpi: Library) -> None:
    """Its launcher prints no list; the table of PRRTE's help lies beside it."""
    if open_mpi.version_tuple < (5,):
        pytest.skip("the Open MPI here is older than 5.0")
    text = Path(open_mpi.bin).parent / "share" / "prte" / "help-prun.txt"
    cells = [line[:24].strip("| ") for line in text.read_text().splitlines() if line[:1] == "|"]
    table = " ".join(cells).replace("- ", "-")
    options = re.findall(r'"([^"]*--?[a-z][^"]*)"', table)
    assert len(options) > 50
    for usage in options:
        words = usage.split()
        for one in (word for word in words if word.startswith("-")):
            match = match_of([one, *["v"] * 9], open_mpi)
            assert match, usage
            if "<" in usage and match.option.treatment != "refused":
                assert len(match.option.values) == len([w for w in words if w[0] == "<"]), usage


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("mpirun -np 2 -x UCX_TLS=self --mca btl self ./a", {"UCX_TLS", "btl"}),
        ("mpirun -np 2 -x UCX_TLS ./a", {"UCX_TLS"}),
        ("mpirun.mpich -np 2 -genv A=1 -env B 2 ./a", {"A", "B"}),
        ("mpirun -np 2 --cpu-list 0,1 ./a", {"map_by", "bind_to", "rank_by"}),
        ("srun -n 2 --export=ALL,A=1,B=2 ./a", {"A", "B"}),
    ],
)
def test_what_a_line_fixes(line: str, fixed: set[str]) -> None:
    assert set(fixed_names(parse_launcher_line(tuple(line.split())).options)) == fixed


def test_a_file_of_parameters_is_read(work: Path) -> None:
    (work / "tuned").write_text("# comment\n--mca btl self,sm\n-x UCX_TLS='a b'\n")
    line = parse_launcher_line(("mpirun", "-n", "2", "--tune", "tuned", "./a"))
    assert line.options == ("--mca", "btl", "self,sm", "-x", "UCX_TLS=a b")
    for text in ("--mca btl", "--mca 'a", "btl = self", "--map-by core"):
        (work / "tuned").write_text(text)
        with pytest.raises(UsageError) as refusal:
            parse_launcher_line(("mpirun", "-n", "2", "--tune", "tuned", "./a"))
        assert refusal.value.code == "launcher.option_unknown"


def test_cores_of_each_rank() -> None:
    assert parse_launcher_line(("srun", "-n", "2", "-c", "4", "./a")).cores_each == 4


@pytest.mark.parametrize(
    ("line", "corrected"),
    [
        ("mpirun -np 4 --frobnicate 3 --app F --stdin 1 ./a", "mpirun -np 4 ./a"),
        ("mpirun -np 4 --frobnicate ./a -x", "mpirun -np 4 ./a -x"),
        ("mpirun -genv A=1 -np 4 -perhost 2 ./a", "mpirun -x A=1 -np 4 ./a"),
        ("srun -n 2 -w n1 --cpu-bind=map_cpu:0,1 ./a", "srun -n 2 ./a"),
    ],
)
def test_all_faults_of_a_line_and_a_line_without_them(
    line: str, corrected: str, work: Path, open_mpi: Library
) -> None:
    (work / "a").touch()
    with pytest.raises(UsageError) as refusal:
        parse_launcher_line(tuple(line.split()), "run", None, find_library())
    assert f"autotune run -- {corrected}" in str(refusal.value)
    assert parse_launcher_line(tuple(shlex.split(corrected)), "run", None, find_library())


def test_every_file_names_each_option_once() -> None:
    for table in launcher_options():
        names = [option.name for option in table.file.options()]
        assert len(set(names)) == len(names), table.name


def test_a_wrong_file_is_refused() -> None:
    for text in ('ranks = [""]', 'kept = ["name"]', '[placement]\n"-a V" = { other = "{}" }'):
        with pytest.raises(UsageError) as refusal:
            read_toml(text, "own.toml", LauncherFile)
        assert refusal.value.code == "config.invalid"


def test_hosts_whose_slots_are_not_counted_are_refused() -> None:
    with pytest.raises(UsageError) as refusal:
        parse_launcher_line(("mpirun", "-n", "2", "--default-hostfile", "F", "./a"))
    assert refusal.value.code == "launcher.option_unknown"


def test_ranks_do_not_leave_the_copied_directory(work: Path, open_mpi: Library) -> None:
    words = ("mpirun", "-n", "2", "-wdir", str(work), "true")
    request = TargetRequest(program=words, fresh_dir=str(work))
    with pytest.raises(UsageError) as refusal:
        request.resolve(lambda library: Surroundings(), lambda note: None)
    assert refusal.value.code == "fresh_dir.wdir"
