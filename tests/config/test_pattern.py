"""What the pattern of a metric says of its figure."""

from __future__ import annotations

import pytest

from autotune.config.app import App, app_from_command, load_app
from autotune.config.find import list_configs
from autotune.config.pattern import check_figure, unit_in_pattern
from autotune.errors import UsageError
from tests.case_table import case_table


@case_table(
    ("pattern", "kind"),
    [
        (r"Time in seconds *= *(\S+)", "time"),
        (r"Loop time of ([0-9.]+)", "time"),
        (r"ns/day, (\S+) hours/ns", "time"),
        (r"(\d+\.\d+) s\b", "time"),
        (r"GB/s.*time: (\S+)", "time"),
        (r"GFLOP/s rating of=([0-9.]+)", "rate"),
        (r"FOM *= *(\S+) *\(z/s\)", "rate"),
        (r"Performance: *(\S+) ns/day", "rate"),
        (r"Performance:.* ([0-9.]+) timesteps/s", "rate"),
        (r"([0-9.]+)\s*iterations per second", "rate"),
        (r"Rate \(MB/s\): (\S+)", "rate"),
        (r"mflop/s = +([0-9.]+)", "rate"),
        (r"(?i)gflops: (\S+)", "rate"),
        ("json:gflops", "rate"),
        ("json:perf.time", "time"),
        (r"rate of convergence: (\S+)", ""),
        (r"^WR\S+( +\S+){5} +(\S+)$", ""),
        (r"avg[^0-9]*([0-9.]+)", ""),
        (r"(?:time|rate): (\S+)", ""),
        (r"result: ([0-9.eEdD+-]+)", ""),
        ("(", ""),
    ],
)
def test_kinds(pattern: str, kind: str) -> None:
    assert unit_in_pattern(pattern).kind == kind


def check(metric: str | None, rate: str | None) -> str:
    with pytest.raises(UsageError) as caught:
        check_figure(metric, rate, "--metric", "--metric-rate")
    return caught.value.code


def test_a_figure_in_the_wrong_place_is_refused_before_a_run() -> None:
    assert check("rating of=(.*) GFLOP/s", None) == "metric.rate"
    assert check("json:gflops", None) == "metric.rate"
    assert check(None, "Time in seconds *= *([0-9.]+)") == "metric.time"
    assert check("time (.*)", "rate (.*)") == "metric.two"
    check_figure("time (.*)", None, "--metric", "--metric-rate")
    check_figure(None, "rate (.*)", "--metric", "--metric-rate")
    check_figure("result (.*)", None, "--metric", "--metric-rate")
    check_figure(None, "result (.*)", "--metric", "--metric-rate")


def test_no_shipped_application_is_refused() -> None:
    apps: list[App] = [load_app(file.name) for file in list_configs("apps")]
    assert len(apps) > 20
    figures = {app.name: app.figure for app in apps if app.figure is not None}
    kinds = {name: unit_in_pattern(figure).kind for name, figure in figures.items()}
    assert not {name: kind for name, kind in kinds.items() if kind not in ("time", "")}


def test_the_command_of_a_program() -> None:
    app = app_from_command(("true",), None, None, "rate (.*)")
    assert (app.metric, app.figure) == (None, "rate (.*)")
