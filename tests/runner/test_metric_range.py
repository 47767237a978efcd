"""A figure that is no measurement is none, however the program prints it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.figure.metric import LARGEST, SMALLEST, metric_fault, metric_of
from runner.supervise import ExecResult, Supervisor
from runner.supervise.output import Capture
from runner.types import LaunchSpec
from tests.runner.supervising import script

SPEC = LaunchSpec(program=("x",), ranks=1, metric=r"figure: (\S+)")


@pytest.fixture(scope="module")
def plain() -> ExecResult:
    with Supervisor() as supervisor:
        return supervisor.run(script(""))


def printed(result: ExecResult, spec: LaunchSpec, line: str) -> ExecResult:
    import dataclasses

    capture = Capture({"metric": str(spec.metric)}, 1000, 1000)
    capture.add_stdout(line.encode())
    capture.close()
    return dataclasses.replace(result, matches=capture.matches, json_line=capture.json_line)


@pytest.mark.parametrize("rate", [False, True])
@pytest.mark.parametrize("figure", ["1e-320", "5e-324", "1e-200", "1e200", "1e308", "0", "-1"])
def test_a_figure_beyond_all_measurements(plain: ExecResult, figure: str, rate: bool) -> None:
    for metric, line in ((SPEC.metric, f"figure: {figure}\n"), ("json:t", f'{{"t": {figure}}}\n')):
        spec = LaunchSpec(program=("x",), ranks=1, metric=metric, metric_rate=rate)
        result = printed(plain, spec, line)
        assert metric_of(spec, result) is None
        fault = metric_fault(spec, result)
        assert fault is not None
        assert fault.code == "metric.none"


@given(value=st.floats(), rate=st.booleans())
def test_what_counts_can_be_divided(plain: ExecResult, value: float, rate: bool) -> None:
    spec = LaunchSpec(program=("x",), ranks=1, metric="json:t", metric_rate=rate)
    figure = metric_of(spec, printed(plain, spec, f'{{"t": {value!r}}}\n'.replace("inf", "1e999")))
    if figure is not None:
        assert SMALLEST <= figure <= LARGEST
        assert math.isfinite(figure / SMALLEST)
        assert math.isfinite(math.log(figure))
