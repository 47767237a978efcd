"""The figure that a published test for ReFrame reads, and the times of the proof beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autotune.config.cluster import load_cluster
from autotune.publish.plain_figure import plain_figure
from autotune.publish.source import read_source
from autotune.store import AppInfo, Store
from autotune.testing.format import NEW
from tests.publish.conftest import MakeStudy

OUTPUT = 'a\nstep 2.5 s\nstep 1.5 s\nrate 1e3 MB/s\ntook 1m3s\n{"solver_s": 0.25}\n'


@pytest.mark.parametrize(
    ("check", "figure"),
    [
        ({"metric": None}, None),
        ({"metric": r"^step (\S+)"}, 2.5),
        ({"metric": r"^step (\S+)", "metric_choice": "last"}, 1.5),
        ({"metric": r"^step (\S+)", "metric_choice": "sum"}, 4.0),
        ({"metric": r"^step (\S+)", "metric_choice": "mean"}, 2.0),
        ({"metric": r"^step (\S+)", "metric_rate": True}, 1.5),
        ({"metric": r"^rate (\S+)"}, 1000.0),
        ({"metric": r"^took (\S+)"}, None),
        ({"metric": r"^nothing (\S+)"}, None),
        ({"metric": "json:solver_s"}, 0.25),
        ({"metric": "json:other"}, None),
    ],
)
def test_the_number_as_it_is_printed(check: dict[str, Any], figure: float | None) -> None:
    found = plain_figure(check, OUTPUT)
    assert found == (None if figure is None else pytest.approx(figure))


def test_the_times_of_the_proof(store: Path, make_study: MakeStudy) -> None:
    timed = AppInfo("own", "own", "ab" * 32, (), "", None, None)
    result = {"default": {"median_s": 1.08, "n": 9}}
    for changes, keys in (({"app": timed}, {"default_s", "setting_s", "scale"}), ({}, set())):
        source = make_study(result=result, **changes)
        with Store.open(store) as opened:
            (check,) = read_source(source, load_cluster("local"), NEW, opened).evidence.check
        proven = check.get("proven", {})
        assert set(proven) == keys
        if proven:
            assert proven["setting_s"] == pytest.approx(1.0)
            assert proven["scale"] is None
