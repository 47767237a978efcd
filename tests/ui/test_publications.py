"""Published files, clusters, datasets, comparisons and what runs now."""

from __future__ import annotations

import dataclasses
import html
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from syrupy.assertion import SnapshotAssertion

from autotune.api.live import live_state
from autotune.api.verify import VerifyResult
from autotune.measurement.budget import SearchPlan
from autotune.publish.formats import find
from autotune.publish.install import put
from autotune.publish.published_files import (
    last_verifications,
    remember_file,
    remember_verifications,
    verifications_path,
)
from autotune.publish.verify import FileState
from autotune.store import Store
from autotune.testing.format import NEW, evidence, plan_file
from tests.contract.store_samples import key, ok
from tests.ui.conftest import Clients
from tests.ui.stores import TOKEN, searched

TRIALS_S = 20 * 10.0 + SearchPlan().proof_runs(SearchPlan().finalists)
"""Of 20 settings, each as long as the ten runs of one second, and the proof."""


def remember(state: FileState) -> None:
    """Store the outcome of a verification without new runs."""
    remember_verifications(VerifyResult([state], []).verifications())


def test_datasets_and_a_card(client: TestClient) -> None:
    text = client.get("/datasets").text
    assert f'href="/{TOKEN}/dataset/grid-node"' in text
    card = client.get("/dataset/grid-node").text
    for word in ("Complete grids of few parameters", "autotune explore grid-node", "cg-W"):  # data
        assert word in card
    cells = client.get("/dataset/grid-node/cells").text
    rows = dict(re.findall(r"<tr><td>([^<]+)(.*)", cells))
    assert len(rows) == 10
    # Noise and gain, and of a null cell the noise only.
    assert [rows[cell].count(" %<") for cell in ("pingpong-4k", "bcast-256k")] == [2, 1]
    assert "<html" not in cells


def test_two_studies_side_by_side(clients: Clients, tmp_path: Path) -> None:
    path = tmp_path / "two.db"
    with Store.open(path) as store:
        a, b = searched(store), searched(store, seed=2, ranks=8)
    client = clients(path)
    text = client.get(f"/compare?study={a[:16]}&study={b[:16]}").text
    row = re.search(r"<td[^>]*>ranks</td><td[^>]*>4</td><td[^>]*>8</td>", text)
    assert row is not None
    assert "<td>guard</td>" not in text  # It is the same.
    assert f"A: study {a[:8]}" in text
    assert f"B: study {b[:8]}" in text
    assert "autotune compare" in text  # data
    assert client.get("/compare").text.count('<select name="study">') == 2  # data
    too_many = client.get(f"/compare?study={a[:16]}&study={b[:16]}&study={a[:16]}")
    assert too_many.status_code == 404
    assert 'role="alert">3 ' in too_many.text


def test_a_cluster_with_its_studies(client: TestClient) -> None:
    assert f'href="/{TOKEN}/cluster/local"' in client.get("/clusters").text
    text = client.get("/cluster/local").text
    assert f'href="/{TOKEN}/?cluster=local"' in text
    assert "1 study" in text
    assert client.get("/cluster/elsewhere").status_code == 404


def test_no_published_file(client: TestClient) -> None:
    assert "<code>autotune publish</code>" in client.get("/published").text  # data
    assert client.get("/published/0123456789ab").status_code == 404


def test_a_study_that_runs_and_one_that_does_not(
    database: Path, snapshot: SnapshotAssertion
) -> None:
    with Store.open(database) as store:
        one = store.get_study(store.studies()[0].id)
        before = live_state(store, one)
        store.add_trial(one.id, {"limit": 1}, "limit=1")  # this process measures it
        now = live_state(store, one)
        store.set_result(one.id, "keep_default", None)
        ended = live_state(store, store.get_study(one.id))
    assert not before["active"]
    assert now["active"]
    assert not ended["active"]
    assert now["words"]["phase"] == "searching"
    low, high = now["best"]["band"]
    assert low < now["best"]["ratio"] < high
    assert now["words"]["best"] == snapshot


@pytest.mark.parametrize(
    ("bounds", "left_s", "done"),
    [
        ({"trials": None, "budget_s": 100.0, "max_runs": None}, 90.0, 0.1),
        ({"trials": None, "budget_s": None, "max_runs": 20}, 10.0, 0.5),
        ({"trials": 20, "budget_s": None, "max_runs": None}, TRIALS_S, 10 / (10 + TRIALS_S)),
        ({}, None, None),
    ],
    ids=["budget", "runs", "trials", "unbounded"],
)
def test_the_time_left(
    tmp_path: Path,
    bounds: dict[str, float | None],
    left_s: float | None,
    done: float | None,
    snapshot: SnapshotAssertion,
) -> None:
    with Store.open(tmp_path / "left.db") as store:
        study = store.study(key())
        store.store_document(study.id, "session:1", bounds)
        trial = store.add_trial(study.id, {"limit": 1}, "limit=1")
        for _ in range(10):
            store.add_run(study.id, trial.id, "search", 0, 0, ok(1.0))
        left = live_state(store, store.get_study(study.id))
    assert left["left_s"] == (None if left_s is None else pytest.approx(left_s))
    assert left["done"] == (None if done is None else pytest.approx(done))
    assert left["words"]["left"] == snapshot


def test_the_last_verification_is_stored_for_display(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    remember_verifications(
        VerifyResult([FileState(path, False, "the file was edited")], []).verifications()
    )
    found = last_verifications()[str(path)]
    assert (found.in_force, found.why, found.gains) == (False, "the file was edited", ())
    verifications_path().write_text("[1, 2]")
    assert last_verifications() == {}
    remember_verifications(
        VerifyResult([FileState(path, True, "2 values in force")], []).verifications()
    )
    assert last_verifications()[str(path)].in_force


def test_a_published_file_with_what_it_changed(client: TestClient, tmp_path: Path) -> None:
    place = tmp_path / "openmpi-mca-params.conf"
    before = Path(f"{place}.before-autotune")
    before.write_text("# <b>of the administrator</b>\n")
    fmt = find("openmpi-user")
    one = plan_file(fmt, place, evidence(mpi_family="openmpi", mpi_version="5.0.11"))
    made = dataclasses.replace(
        one, others=before.read_text(), header=dataclasses.replace(one.header, backup=before.name)
    )
    put(place, made.text(made.content, NEW, "seen"))
    remember_file(place)
    listed = client.get("/published").text
    found = re.search(rf'href="/{TOKEN}(/published/[0-9a-f]{{12}})"', listed)
    assert found is not None
    assert "not verified yet" in listed  # data
    remember_verifications(
        VerifyResult([FileState(place, True, "1 value in force")], []).verifications()
    )
    text = client.get(found[1]).text
    assert "1 value in force" in text
    assert before.name in text
    assert html.escape(before.read_text()) in text
    name, value = next(iter(next(iter(made.content.groups.values())).items()))
    assert f"+{name} = {value}" in text
    assert f"autotune unpublish {place}" in text  # data
    before.unlink()
    without = client.get(found[1]).text
    assert before.name in without
    assert [page.count('<pre class="output">') for page in (text, without)] == [1, 0]  # data
