"""Launch lines in batch scripts: found by reading, with what the script assigns before them."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from autotune.check.script import ScriptLine, launch_lines
from autotune.errors import UsageError
from tests.case_table import case_table


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "job.sbatch"


def lines_of(script: Path, text: str) -> list[ScriptLine]:
    script.write_text(f"#!/bin/bash\n{text}", encoding="utf-8")
    return launch_lines(script)


def test_assignments_and_directives_are_data(script: Path) -> None:
    [line] = lines_of(
        script,
        "#SBATCH --ntasks=8 -c4\n"
        "#SBATCH --export=NONE\n"
        "N=2\n"
        "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\n"
        "time srun -n ${N} ./a.out \\\n   --size 3 > out.txt 2>&1\n",
    )
    assert list(line.words) == shlex.split("time srun -n 2 ./a.out --size 3")
    assert line.number == 6
    assert line.unknown == ()
    variables = {"SLURM_NTASKS": "8", "SLURM_CPUS_PER_TASK": "4", "SLURM_EXPORT_ENV": "NONE"}
    assert line.environment == variables | {"OMP_NUM_THREADS": "4"}


@case_table(
    "text",
    [
        "N=$(nproc)\nmpirun -n $N ./a\n",
        "N=`nproc`\nmpirun -n $N ./a\n",
        "N=2\nif true; then N=4; fi\nmpirun -n $N ./a\n",
        "for N in 1 2; do mpirun -n $N ./a; done\n",
        "mpirun -n $N ./a\n",
        "N=2\nunset N\nmpirun -n $N ./a\n",
    ],
)
def test_what_a_script_computes_is_unknown(script: Path, text: str) -> None:
    [line] = lines_of(script, text)
    assert line.unknown == ("N",)


def test_what_is_not_exported_stays_in_the_script(script: Path) -> None:
    [line] = lines_of(script, "A=1\nB=2\nexport B\nC=3 mpirun -n 2 ./a && echo done\n")
    assert line.environment == {"B": "2"}
    assert list(line.words) == shlex.split("C=3 mpirun -n 2 ./a")


def test_words_that_name_a_launcher_elsewhere_are_no_launch(script: Path) -> None:
    [line] = lines_of(script, "# mpirun -n 8 ./a\necho mpirun -n 4\nmpirun -n 2 ./a\n")
    assert line.number == 4


@pytest.mark.parametrize("content", [b"echo hello\n", b"\x7fELF\xf8\xff"], ids=["text", "binary"])
def test_a_file_without_launch_line_is_refused(script: Path, content: bytes) -> None:
    script.write_bytes(content)
    with pytest.raises(UsageError) as refusal:
        launch_lines(script)
    assert refusal.value.code == "check.script"
