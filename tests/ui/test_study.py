"""The pages of one study."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from autotune.report.parallel import UNSET, parallel_coordinates
from autotune.store import Store, TrialRecord
from autotune.ui.figures import plain_svg
from tests.contract.store_samples import key, ok
from tests.ui.conftest import Clients
from tests.ui.stores import searched


@pytest.fixture
def study(database: Path) -> str:
    with Store.open(database) as store:
        return store.studies()[0].hash[:16]


def test_the_study_with_its_figures(client: TestClient, study: str) -> None:
    text = client.get(f"/study/{study}").text
    (heading,) = re.findall("<h1>(.*)</h1>", text)
    assert {"jacobi3d", "small", "4"} < set(heading.split())
    assert re.search(r'class="verdict">[^<%]*\bnew\b', text)
    assert text.count("<svg") == 2  # course of the search, settings
    assert "Provenance" in text
    assert "A CPU, 2 cores" in text
    part = client.get(f"/study/{study}/importance?part=1").text
    assert "<html" not in part
    assert part.count("<h2>") == 1
    assert study[:12] in part


def test_its_runs_and_their_output(clients: Clients, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Store.open(path) as store:
        study = store.study(key())
        for number in range(120):
            failed = number == 77
            record = dataclasses.replace(
                ok(0.5),
                state="unverified" if failed else "ok",
                reason="no sum in the output" if failed else "",
                stdout_tail=f"sum of run {number}",
            )
            store.add_run(study.id, None, "default", 0, 0, record)
    client = clients(path)
    address = f"/study/{study.hash[:16]}"
    second = client.get(f"{address}/runs?page=2").text
    assert "120 runs: 119 ok, 1 unverified" in second
    assert "page 2 of 3" in second
    assert second.count("/run/") == 50
    assert "no sum in the output" in second
    assert "/run/77" in second
    one = client.get(f"{address}/run/77").text
    assert "sum of run 77" in one  # data
    assert "runs?page=2" in one
    for wrong in ("120", "-1", "x", "1e3"):
        assert client.get(f"{address}/run/{wrong}").status_code == 404


def test_the_prefix_of_a_hash_must_be_of_one_study(client: TestClient) -> None:
    for wrong in ("abc", "ffffffffffff", "%25", "1"):
        answer = client.get(f"/study/{wrong}")
        assert answer.status_code == 404
        assert 'role="alert"' in answer.text


def test_a_page_that_is_drawn_once_follows_new_runs(
    client: TestClient, database: Path, study: str
) -> None:
    assert ">13 runs" in client.get(f"/study/{study}").text
    with Store.open(database) as store:
        one = store.find_study(study)
        trial = store.add_trial(one.id, {"limit": 1}, "limit=1")
        store.add_run(one.id, trial.id, "search", 0, 0, ok(0.5))
        store.finish_trial(trial.id, "ok", 0.25)
    text = client.get(f"/study/{study}").text
    assert ">14 runs" in text
    assert "0.250" in text


def _trials(tmp_path: Path) -> list[TrialRecord]:
    with Store.open(tmp_path / "p.db") as store:
        study = store.find_study(searched(store)[:16])
        return store.trials(study.id)


def test_parallel_coordinates_of_what_varied(tmp_path: Path) -> None:
    trials = _trials(tmp_path)
    drawn = parallel_coordinates(trials)
    for word in ("limit", "kind", "1024", "3072", "time ratio", "0.90", "1.15"):  # data
        assert f">{word}<" in drawn
    same = [dataclasses.replace(t, setting={**t.setting, "kind": "a"}) for t in trials]
    assert parallel_coordinates(same) == ""  # One parameter is no picture.
    some = [dataclasses.replace(t, setting={"limit": 1}) if t.number == 0 else t for t in trials]
    assert f">{UNSET}<" in parallel_coordinates(some)
    assert parallel_coordinates(trials[:1]) == ""


def test_a_figure_keeps_its_looks_without_styles() -> None:
    svg = (
        '<svg viewBox="0 0 1 1" style="background: white"><defs><style>*{x: y}</style></defs>'
        '<path d="M 0 0" style="fill: none; stroke: #0072b2; stroke-width: 2"/>'
        '<text>style="a: b"</text></svg>'
    )
    plain = plain_svg(svg)
    assert '<path d="M 0 0" fill="none" stroke="#0072b2" stroke-width="2"/>' in plain
    assert '<text>style="a: b"</text>' in plain
    assert "<style" not in plain
    assert "background" not in plain
    assert 'stroke-linejoin="round"' in plain
