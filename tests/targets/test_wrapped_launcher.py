"""A launcher behind other words: found, refused, and what to type in its place."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import UsageError
from autotune.targets.launcher_line import parse_launcher_line, script_words
from autotune.targets.wrapped_launcher import launcher_in, launcher_in_script
from tests.case_table import case_table

JOB = """#!/bin/bash
#SBATCH --ntasks=2
# mpirun -np 9 ./commented
export OMP_NUM_THREADS=1
echo "mpirun is next"
mpirun -np 2 \\
  bin/hello input > out.txt
"""
TYPED = {
    "OMP_NUM_THREADS=12 mpirun -n 4 ./a": "OMP_NUM_THREADS=12 autotune run -- mpirun -n 4 ./a",
    "env -u B A=1 mpirun -n 2 ./a": "env -u B A=1 autotune run -- mpirun -n 2 ./a",
    "time -p mpirun -n 2 ./a": "autotune run -- mpirun -n 2 ./a",
    "nohup /opt/bin/mpiexec -n 2 ./a": "autotune run -- /opt/bin/mpiexec -n 2 ./a",
    "timeout -k 5 1.5m mpirun -n 2 ./a": "autotune run --timeout 90s -- mpirun -n 2 ./a",
    f"timeout {'9' * 400} mpirun -n 2 ./a": "autotune run -- mpirun -n 2 ./a",
    "taskset -c 0,2-3 mpirun -n 2 ./a": "autotune run --cluster NAME -- mpirun -n 2 ./a",
    "nice -n 5 mpirun -n 2 ./a": "nice -n 5 autotune run -- mpirun -n 2 ./a",
    "numactl -i all mpirun -n 2 ./a x": "autotune run -- mpirun -n 2 numactl -i all ./a x",
    "stdbuf -oL mpirun -n 2 ./a": "autotune run -- mpirun -n 2 stdbuf -oL ./a",
    "A=1 time timeout 60 srun -n 2 ./a": "A=1 autotune run --timeout 60s -- srun -n 2 ./a",
    "bash -lc 'cd x && mpirun -n 2 ./a; date'": "autotune run -- mpirun -n 2 ./a",
    "mpirun -n 2 mpirun -n 3 ./a": "autotune run -- mpirun -n 3 ./a",
    "mpirun -n 2 time mpirun -n 3 ./a": "autotune run -- mpirun -n 3 ./a",
}


def refusal(line: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parse_launcher_line(tuple(shlex.split(line)), "run", 3)
    return caught.value


@case_table("line", TYPED)
def test_a_launcher_behind_other_words_is_refused_with_the_line_to_type(line: str) -> None:
    error = refusal(line)
    assert error.code == "launcher.inside"
    assert str(error).splitlines()[-1].strip() == TYPED[line]


@case_table("line", TYPED)
def test_the_line_to_type_is_accepted(line: str) -> None:
    words = shlex.split(TYPED[line])
    assert parse_launcher_line(tuple(words[words.index("--") + 1 :])).ranks


def test_cpus_of_taskset_are_named_for_a_cluster() -> None:
    assert "--cpus 0,2-3\n" in str(refusal("taskset -c 0,2-3 mpirun -n 2 ./a"))
    assert "--cpus 1,4\n" in str(refusal("taskset 0x12 mpirun -n 2 ./a"))


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("A=1 B=2 ./a x", "A=1 B=2 autotune run --ranks 3 -- ./a x"),
        ("mpirun -n 2 A=1 ./a", "A=1 autotune run --ranks 3 -- mpirun -n 2 ./a"),
    ],
)
def test_a_variable_is_no_program(line: str, typed: str) -> None:
    error = refusal(line)
    assert error.code == "program.assignment"
    assert str(error).splitlines()[-1].strip() == typed.replace("--ranks 3 -- mpirun", "-- mpirun")


@case_table(
    "line",
    [
        "env A=1 ./a",
        "numactl -i all ./a",
        "./launch mpirun -n 2 ./a",  # An argument of the program; seen while it runs.
        "python bench.py --with mpirun",
        "bash job.sh mpirun",
        "sh -c 'echo mpirun is here'",
        "time ./a",
    ],
)
def test_other_programs_stay(line: str) -> None:
    words = tuple(shlex.split(line))
    assert parse_launcher_line(words).program == words


def test_the_line_of_a_script_is_read(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text(JOB)
    for program in (("bash", "job.sh"), ("/bin/sh", "-e", "job.sh", "x"), ("./job.sh",)):
        found = launcher_in_script(program, tmp_path)
        assert found is not None
        name, line = found
        assert (name, line) == ("job.sh", ["mpirun", "-np", "2", "bin/hello", "input"])
        assert "autotune run -- mpirun -np 2" in script_words(program, "run", tmp_path)  # data
    for program in (("job.sh",), ("bash", "none.sh"), ("bash",), ("./none",), ()):
        assert launcher_in_script(program, tmp_path) is None


def test_scripts_are_read_within_bounds(tmp_path: Path) -> None:
    (tmp_path / "large.sh").write_text("#!/bin/sh\nmpirun ./a\n" + "#" * (1 << 20))
    (tmp_path / "binary").write_bytes(b"\x7fELF\xff\nmpirun ./a\n")
    (tmp_path / "data").write_text("mpirun ./a\n")
    (tmp_path / "folder").mkdir()
    assert launcher_in_script(("bash", "large.sh"), tmp_path) is None
    assert launcher_in_script(("./binary",), tmp_path) is None
    assert launcher_in_script(("./data",), tmp_path) is None
    assert launcher_in_script(("bash", "folder"), tmp_path) is None


@case_table(
    ("text", "line"),
    [
        ("if true; then mpirun -n 2 ./a; fi", ["mpirun", "-n", "2", "./a"]),
        ("OMP_NUM_THREADS=2 time mpirun ./a | tee x", ["mpirun", "./a"]),
        ("srun ./a &", ["srun", "./a"]),
        ("echo mpirun ./a", None),
        ("which mpirun", None),
        ("# mpirun ./a", None),
        ("MPI=mpirun", None),
        ("echo 'unclosed\nmpirun ./b", ["mpirun", "./b"]),
    ],
)
def test_the_command_of_a_text(text: str, line: list[str] | None) -> None:
    assert launcher_in(text) == line


@given(st.text(alphabet="mpirun -=;&|'\"\\\n$#/sh c", max_size=80))
def test_no_text_breaks_the_reader(text: str) -> None:
    found = launcher_in(text)
    assert found is None or found


WORDS = (
    *("env", "A=1", "timeout", "-k", "60", "mpirun", "-n", "2", "./a", "taskset", "-c", "x"),
    *("bash", "--", "nice", "sh", "-"),
)


@given(st.lists(st.sampled_from(WORDS)))
def test_any_words_are_a_line_or_a_usage_error(words: list[str]) -> None:
    try:
        program = parse_launcher_line(tuple(words), "run").program
    except UsageError:
        return
    assert program
