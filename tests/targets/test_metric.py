"""Lines of a program's output that look like times."""

from __future__ import annotations

import re

from autotune.targets.figures import figures
from tests.case_table import case_table


@case_table(
    ("line", "metric"),
    [
        (" Time in seconds =                     0.52", r"Time *in *seconds *= *(\S+)"),
        ("rank 3: solve time = 0.450 s", r"rank *[0-9]+: *solve *time *= *(\S+)"),
        ("Elapsed: 1.25e-01", r"Elapsed: *(\S+)"),
        ("0.75 seconds in MPI", r"(\S+) *seconds"),
        ("Finished (wall time [s]): 12.5.", r"Finished *\(wall *time *\[s\]\): *(\S+)"),
        ("total 3 cells", None),
        ("real 1m23.45s", r"real *(\S+)"),
        ("time 2023-11-15 01:09:14", None),
        ("CPU use 99.3 %", None),
        ("elapsed 12 ms", r"elapsed *(\S+)"),
        ("time 0.0", None),
        ("step 7 of 9", None),
        ("time = -3.5", None),
    ],
)
def test_the_pattern_of_a_line(line: str, metric: str | None) -> None:
    found = figures(f"{line}\nno number here\n")
    assert [figure.metric for figure in found] == ([] if metric is None else [metric])


def test_the_likeliest_first_and_each_pattern_reads_its_line() -> None:
    printed = (
        "rank 0: time = 0.25 s\nrank 1: time = 0.46 s\nTotal 17\n"
        "Iteration 7 took 0.3 seconds\nResult 3.14\n"
    )
    found = figures(printed)
    assert [figure.line for figure in found] == [
        "rank 1: time = 0.46 s",
        "Iteration 7 took 0.3 seconds",
    ]
    for figure in found:
        match = re.search(figure.metric, printed)
        assert match is not None
        assert float(match[1]) > 0


def test_lines_that_differ_in_an_exponent_have_one_pattern() -> None:
    printed = "step 10 residual 2.1e+00 time 0.21 s\nstep 20 residual 3.7e-02 time 0.22 s\n"
    (found,) = figures(printed)
    assert found.line.endswith("0.22 s")
    assert len(re.findall(found.metric, printed)) == 2


def test_figures_of_a_json_line() -> None:
    (found,) = figures('{"solver_time": 0.5, "cells": 7}\n', {"solver_time": 0.5, "cells": 7})
    assert found.metric == "json:solver_time"  # data


def test_a_rate_is_proposed_where_no_time_is_printed() -> None:
    (found,) = figures("FOM = 16.3 Gflop/s\n")
    assert (found.rate, found.metric) == (True, r"FOM *= *(\S+)")
    assert found.words.startswith("--metric-rate ")
    assert [f.rate for f in figures("FOM = 16.3 Gflop/s\ntime 3.5 s\n")] == [False]
    assert [f.words for f in figures("", {"gflops": 3.0})] == ["--metric-rate json:gflops"]  # data


def test_the_column_of_a_table() -> None:
    """The case of HPL: the time and not the rate beside it."""
    (found,) = figures(
        "T/V                N    NB     P     Q               Time                 Gflops\n"
        "WR02R2C4        2000   152     1     2              12.34             1.2345e+01\n"
    )
    match = re.search(found.metric, found.line)
    assert match is not None
    assert match[1] == "12.34"
