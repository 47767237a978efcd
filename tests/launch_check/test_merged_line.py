"""The corrections of several findings in one line."""

from __future__ import annotations

import shlex

from autotune.check.merged_line import merged_line
from tests.case_table import case_table

LINES = [
    (
        "mpirun -n 4 --host a:4 ./a 1",
        ["mpirun -n 4 --host a:4 --bind-to none ./a 1", "mpirun -n 4 --host a:4 --mca y 1 ./a 1"],
        "mpirun -n 4 --host a:4 --bind-to none --mca y 1 ./a 1",
    ),
    (
        "srun ./a",
        ["srun --export=ALL ./a", "srun --cpus-per-task=2 ./a"],
        "srun --export=ALL --cpus-per-task=2 ./a",
    ),
    (
        "mpirun -n 2 --mca btl tcp ./a",
        ["/opt/bin/mpirun -n 2 --mca btl tcp ./a", "mpirun -n 2 ./a"],
        "/opt/bin/mpirun -n 2 ./a",
    ),
    ("mpirun ./a", ["mpirun --bind-to none ./a", "mpirun --map-by slot:PE=2 ./a"], ""),
    ("mpirun ./a", ["mpirun -x A=1 ./a", "mpirun -x A=2 ./a"], ""),
    ("mpirun ./a", ["mpirun -x A=1 ./a", "mpirun -x A=1 ./a"], ""),
    ("mpirun ./a", ["mpirun --bind-to none ./a"], ""),
]


@case_table(("line", "corrections", "merged"), LINES)
def test_corrections_that_fit_together_are_one_line(
    line: str, corrections: list[str], merged: str
) -> None:
    words = merged_line(shlex.split(line), [shlex.split(one) for one in corrections])
    assert list(words or ()) == shlex.split(merged)
