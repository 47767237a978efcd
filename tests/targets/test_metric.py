"""Lines of a program's output that look like times."""

from __future__ import annotations

import re

import pytest

from autotune.targets.metric import figures


@pytest.mark.parametrize(
    ("line", "metric"),
    [
        (" Time in seconds =                     0.52", "Time *in *seconds *= *([0-9.]+)"),
        ("rank 3: solve time = 0.450 s", "rank *[0-9]+: *solve *time *= *([0-9.]+)"),
        ("Elapsed: 1.25e-01", "Elapsed: *([0-9.eEdD+-]+)"),
        ("0.75 seconds in MPI", "([0-9.]+) *seconds"),
        ("Finished (wall time [s]): 12.5.", None),
        ("total 3 cells", None),
        ("Mflops 3000.0", None),
        ("elapsed 12 ms", None),
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
        "Iteration 7 took 0.3 seconds",
        "rank 1: time = 0.46 s",
        "Total 17",
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
    assert found.metric == "json:solver_time"
