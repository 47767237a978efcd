"""What a process does about others that share its study: a real store, beats that last no time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from autotune.measurement.budget import SearchPlan
from autotune.measurement.events import Event, Waiting
from autotune.space import Setting, Space
from autotune.store import Store, StudyRecord
from autotune.store.leases import BEAT_S, LEASE_BEATS, LeaseWatch
from autotune.study import loop, search_study
from autotune.study.procedure import run_procedure
from autotune.study.search_study import takes_finish
from autotune.study.study_status import FINISH
from autotune.study.trial_store import StoredTrials
from tests.contract.store_samples import key
from tests.study.conftest import ListStrategy, evaluator

PLAN = SearchPlan(trials=3)
SETTINGS = [Setting({"links": n}) for n in (1, 2, 3)]


class Bored(Exception):
    """It waits without end."""


class Watch:
    """Counts waiting."""

    def __init__(self) -> None:
        self.waited = 0

    def __call__(self, event: Event) -> None:
        self.waited += isinstance(event, Waiting)
        if self.waited > 20 * LEASE_BEATS:
            raise Bored


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store for which a beat passes with each look at the leases."""
    monkeypatch.setattr(loop, "POLL_S", 0.0)
    monkeypatch.setattr(search_study, "POLL_S", 0.0)
    with Store.open(tmp_path / "r.db") as opened:
        now = [0.0]

        def clock() -> float:
            now[0] += BEAT_S
            return now[0]

        opened._watch = LeaseWatch(clock)
        yield opened


@pytest.fixture
def study(store: Store) -> StudyRecord:
    return store.study(key())


def change(store: Store, statement: str) -> None:
    with store._database.write() as connection:
        connection.execute(text(statement))


def to_another_host(store: Store, table: str) -> None:
    change(store, f"UPDATE {table} SET owner_host = 'far', owner_scope = 'another boot/pid'")


def left_over(store: Store, study: StudyRecord) -> None:
    """A process on another host has died while it measured the first setting."""
    store.add_trial(study.id, SETTINGS[0].to_json(), SETTINGS[0].key)
    to_another_host(store, "trial")


@pytest.mark.parametrize("shared", [False, True])
def test_a_search_measures_what_a_dead_process_elsewhere_left(
    store: Store, study: StudyRecord, space: Space, shared: bool
) -> None:
    left_over(store, study)
    trials = StoredTrials(store, study, space, shared=shared, most=3)
    trials.load()
    run_procedure(
        evaluator(lambda setting, rng: float(rng.lognormal(0, 0.01))),
        trials,
        ListStrategy(SETTINGS[1:]),  # type: ignore[arg-type]
        space,
        PLAN,
        seed=1,
        watch=Watch(),
    )
    assert [t.state for t in store.trials(study.id)] == ["ok"] * 3


def test_an_own_trial_that_the_budget_left_open_is_not_waited_for(
    store: Store, study: StudyRecord, space: Space
) -> None:
    trials = StoredTrials(store, study, space, shared=True)
    trials.load()
    trials.open(SETTINGS[0], {})
    trials.refresh()
    assert not trials.busy
    to_another_host(store, "trial")  # Another worker takes it over.
    trials.refresh()
    assert trials.busy


def test_who_proves_is_left_alone_only_if_it_lives(store: Store, study: StudyRecord) -> None:
    store.take_role(study.id, FINISH)
    to_another_host(store, "role")
    watch = Watch()
    assert takes_finish(store, study.id, PLAN, watch)
    assert watch.waited > 0
    assert takes_finish(store, study.id, PLAN, Watch())


def test_a_worker_leaves_when_it_sees_the_one_that_proves(store: Store, study: StudyRecord) -> None:
    store.take_role(study.id, FINISH)
    to_another_host(store, "role")

    def watch(event: Event) -> None:
        change(store, "UPDATE role SET heartbeat_at = heartbeat_at + 1")

    assert not takes_finish(store, study.id, PLAN, watch)


def test_one_that_lives_on_this_machine_is_not_waited_for(
    store: Store, study: StudyRecord, tmp_path: Path
) -> None:
    program = (
        "import sys; from autotune.store import Store\n"
        "with Store.open(sys.argv[1]) as s:\n"
        "    print(s.take_role(int(sys.argv[2]), sys.argv[3]), flush=True)\n"
        "    sys.stdin.read()"
    )
    words = [sys.executable, "-c", program, str(tmp_path / "r.db"), str(study.id), FINISH]
    other = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        watch = Watch()
        assert not takes_finish(store, study.id, PLAN, watch)
        assert watch.waited == 0
    finally:
        other.communicate("")
    assert takes_finish(store, study.id, PLAN, watch)
    assert watch.waited == 0
