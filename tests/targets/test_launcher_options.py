"""The tables of options against what the launchers say of themselves, and lines that they fix."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from autotune.config.launcher import LauncherFile, Match, launcher_options, options_for
from autotune.config.validated import read_toml
from autotune.errors import UsageError
from autotune.targets.launch_options import fixed_names
from autotune.targets.launcher_line import parse_launcher_line
from autotune.targets.request import TargetRequest
from autotune.targets.resolve import resolve
from autotune.targets.target import Surroundings
from runner.mpi.discover import find_library, identify_environment
from runner.mpi.library import Library
from tests.case_table import case_table
from tests.lines import answer, refused
from tests.mpis import library_named

HYDRA = re.compile(r"^ {4}(-[a-z][\w-]*)(?:/(-[\w-]+))?((?: \{[^}]*\})*)", re.M)
INTEL = re.compile(r"^ {2,4}(-[a-zA-Z][\w/-]*)(?: (\{[^}]*\}(?: \{[^}]*\})*|<[^>]*>))?", re.M)
NOT_TAKEN = {"-disable-hostname-propagation"}
"""Options that the help of Intel's launcher names, and that it does not take (2021.18.1)."""
SRUN = re.compile(r"^ {2,6}(?:(-\w)(?:, | +))?(--[\w-]+)(\[=[^ ]*|=[^ ]*|)", re.M)
DATA = Path(__file__).parent / "data"
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


def test_all_options_of_intel() -> None:
    """Each that its help names; the launcher itself says which others it takes."""
    library = library_named("impi")
    listed = INTEL.findall(helped(library, "-help"))
    assert len(listed) >= 40
    for names, value in listed:
        for name in names.split("/"):
            one = f"-{name.lstrip('-')}"
            match = match_of([one, *["v"] * 9], library)
            assert match, one
            if value.startswith("{"):
                assert len(match.option.values) == len(value.split("}")) - 1, one
    (table,) = options_for(library.launcher, library)
    for option in table.file.options():
        said = helped(library, option.name, "-help")
        refused = "unrecognized argument" in said  # data
        assert refused == (option.name in NOT_TAKEN), option.name


def options_of_srun(text: str) -> list[tuple[str, str]]:
    """Names and values of the options of srun's help."""
    rows = SRUN.findall(text)
    return [(name, value) for short, long, value in rows for name in (short, long) if name]


def test_all_options_of_srun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the srun that is here; else those that the help of 22.05.8 lists."""
    text = (DATA / "srun-22.05.8.txt").read_text()
    place = shutil.which("srun")
    if place is not None:
        conf = tmp_path / "slurm.conf"
        conf.write_text("ClusterName=x\nSlurmctldHost=localhost\n")
        monkeypatch.setenv("SLURM_CONF", os.environ.get("SLURM_CONF", str(conf)))
        done = subprocess.run([place, "--help"], capture_output=True, text=True, check=True)
        text = done.stdout
    options = options_of_srun(text)
    assert len(options) > 120
    (table,) = options_for("srun", None)
    for name, value in options:
        match = table.match([name, *["v"] * 9])
        assert match, name
        wanted = 1 if value.startswith("=") or name == "--container" else 0
        wanted -= name == "--bcast"  # Its manual has a value in brackets.
        assert len(match.option.values) == wanted, name
        if value.startswith("["):
            held = table.match([f"{name}=v" if name.startswith("--") else f"{name}v"])
            assert held is not None
            assert held.values == ("v",), name


@case_table(
    ("words", "left_out"),
    [
        ("srun -vvv -n2 --nice ./a", ["-v"]),
        ("srun --nice=5 -K0 -I60 -n2 ./a", ["--nice 5", "-K 0", "-I 60"]),
        ("srun --exclusive=user --immediate -n 2 ./a", ["--exclusive user", "--immediate"]),
    ],
)
def test_a_value_that_may_be_left_out(words: str, left_out: list[str]) -> None:
    line = parse_launcher_line(tuple(words.split()))
    assert (line.ranks, line.program) == (2, ("./a",))
    assert list(line.left_out)[: len(left_out)] == left_out


@case_table("values", [[], ["1"], ["1", "2"]])
def test_every_option_is_taken_or_answered(values: list[str]) -> None:
    """Alone, with values, and between others: what is refused is so with a line that is taken."""
    for table in launcher_options():
        for option in table.file.options():
            launcher = table.file.launchers[0] if table.file.launchers else "mpirun"
            equal_forms = [] if values else [[f"{option.name}=1"], [option.name[:2] + "1"]]
            for words in ([option.name, *values], *equal_forms):
                for own in (words, ["-n", "2", *words, "./a", ":", "./b"]):
                    assert refused(shlex.join([launcher, *own])) is None


@case_table(
    ("line", "code", "proposed"),
    [
        ("mpirun -np N ./a", "ranks.range", "-- mpirun -np "),
        ("srun -n 2 -c X ./a", "layout.range", "-- srun -n 2 -c 1 ./a"),
        ("mpirun -np 2", "program.missing", "-- mpirun -np 2 PROGRAM ARGS"),
        ("mpirun -np", "launcher.value_missing", "-- mpirun PROGRAM ARGS"),
        ("mpirun -np 2 ./a : ./b", "launcher.several_programs", "-- mpirun -np 2 ./a"),
        ("mpirun --app F -np 2 ./a : ./b", "launcher.option_unknown", "-- mpirun -np 2 ./a"),
        ("mpirun -np 2 --app F", "launcher.option_unknown", "-- mpirun -np 2 PROGRAM ARGS"),
        ("mpirun --app F srun -n 2 ./a", "launcher.option_unknown", "-- srun -n 2 ./a"),
        ("time mpirun --app F -np 2 ./a", "launcher.inside", "-- mpirun -np 2 ./a"),
        ("mpirun --app F time srun -n 2 ./a", "launcher.option_unknown", "-- srun -n 2 ./a"),
    ],
)
def test_the_line_to_give_has_no_fault_left(line: str, code: str, proposed: str) -> None:
    said = answer(line)
    assert said.code == code
    (row,) = said.proposed
    assert proposed in row
    assert refused(line) is None


@case_table(
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
    assert f"autotune run -- {corrected}\n" in f"{refusal.value}\n"  # data
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
        resolve(request, lambda library: Surroundings(), lambda note: None)
    assert refusal.value.code == "fresh_dir.wdir"
