"""What several workers of one study may rely on; test_store_contract.py tries each back-end."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from sqlalchemy import text

from autotune.store import RUNNING, OwnerProcess, Store, TrialDraft
from autotune.store.leases import BEAT_S, LEASE_BEATS, LEASE_S, LeaseWatch
from autotune.store.model import PRUNED
from runner.types import RunRecord
from tests.contract.store_samples import key

ELSEWHERE = "UPDATE {table} SET owner_host = 'far', owner_scope = 'another boot/pid'"


def move(store: Store, table: str, older_s: float = 0.0) -> None:
    """Make all rows those of another host, last seen so many seconds ago."""
    change(store, ELSEWHERE.format(table=table))
    change(store, f"UPDATE {table} SET heartbeat_at = heartbeat_at - {older_s}")


def change(store: Store, statement: str) -> None:
    with store._database.write() as connection:
        connection.execute(text(statement))


class Beats:
    """The beats of this process on a study, which last no time."""

    def __init__(self, store: Store, study_id: int) -> None:
        self.store, self.study_id = store, study_id
        self.now = 0.0
        store._watch = LeaseWatch(lambda: self.now)
        store.beat(study_id)

    def __call__(self, number: int = 1) -> None:
        for _ in range(number):
            self.now += BEAT_S
            self.store.beat(self.study_id)

    def taken(self) -> list[int]:
        """The numbers of the trials that this process takes over now."""
        return [t.number for t in self.store.recover(self.study_id, is_restart=False)]


class LeaseContract:
    """Mixed into the classes of the store's contract."""

    def test_the_first_spare_that_is_free_is_claimed(self, store: Store) -> None:
        study = store.study(key())
        spares = [TrialDraft({"a": n}, f"a={n}", {"n": n}) for n in (1, 2, 3)]
        claims = [
            store.claim_trial(study.id, {"a": 1}, "a=1", {"n": 0}, most=4, spares=spares[first:])
            for first in (0, 0, 0, 2, 0)
        ]
        assert [claim and (claim.key, claim.attrs) for claim in claims] == [
            ("a=1", {"n": 0}), ("a=2", {"n": 2}), ("a=3", {"n": 3}), None, None,
        ]  # fmt: skip

    def test_news_are_new_trials_and_ends(self, store: Store) -> None:
        study = store.study(key())
        made = [store.add_trial(study.id, {"a": n}, f"a={n}") for n in range(3)]
        ids = [trial.id for trial in made]
        assert [t.number for t in store.trial_news(study.id, 0, [])[0]] == [0, 1, 2]
        store.finish_trial(ids[1], "ok", 0.5)
        news, may_recover = store.trial_news(study.id, 2, ids[:2])
        assert [(t.number, t.state) for t in news] == [(1, "ok"), (2, RUNNING)]
        assert not may_recover

    def test_what_an_ended_process_holds_is_given_up_for_it(self, store: Store) -> None:
        study = store.study(key())
        store.claim_trial(study.id, {"a": 1}, "a=1")
        store.take_role(study.id, "finish")
        for table in ("trial", "role"):
            move(store, table)
        far = dataclasses.replace(OwnerProcess.current(), host="far", scope="another boot/pid")
        assert store.recover(study.id, is_restart=False) == []
        assert not store.take_role(study.id, "finish")
        store.give_up(study.id, far)
        assert [t.key for t in store.recover(study.id, is_restart=False)] == ["a=1"]
        assert store.take_role(study.id, "finish")

    def test_a_setting_is_claimed_once(self, store: Store) -> None:
        study, other = store.study(key()), store.study(key(seed=2))
        first = store.claim_trial(study.id, {"a": 1}, "a=1", {"x": 1})
        assert first is not None
        assert (first.number, first.state, first.attrs) == (0, RUNNING, {"x": 1})
        assert first.heartbeat_at is not None
        assert store.claim_trial(study.id, {"a": 1}, "a=1") is None
        assert store.claim_trial(other.id, {"a": 1}, "a=1") is not None
        store.finish_trial(first.id, "failed", None)
        assert store.claim_trial(study.id, {"a": 1}, "a=1") is None
        assert store.claim_trial(study.id, {"a": 2}, "a=2") is not None
        assert [t.number for t in store.trials(study.id)] == [0, 1]
        assert [t.number for t in store.trials(study.id, since=1)] == [1]

    def test_a_setting_that_cheap_runs_kept_from_full_runs_is_claimed_again(
        self, store: Store
    ) -> None:
        study = store.study(key())
        pruned = store.claim_trial(study.id, {"a": 1}, "a=1")
        assert pruned is not None
        assert store.claim_trial(study.id, {"a": 1}, "a=1") is None
        store.finish_trial(pruned.id, PRUNED, None)
        assert store.claim_trial(study.id, {"a": 1}, "a=1") is not None
        assert store.claim_trial(study.id, {"a": 1}, "a=1") is None

    def test_of_many_claims_of_a_setting_at_once_one_succeeds(
        self, store: Store, place: str
    ) -> None:
        study = store.study(key())

        def claim(number: int) -> bool:
            with Store.open(place) as own:
                return own.claim_trial(study.id, {"a": 1}, "a=1") is not None

        with ThreadPoolExecutor(6) as pool:
            assert sum(pool.map(claim, range(6))) == 1
        assert len(store.trials(study.id)) == 1

    def test_no_more_trials_are_claimed_than_were_asked_for(self, store: Store, place: str) -> None:
        study = store.study(key())

        def claim(number: int) -> bool:
            with Store.open(place) as own:
                return own.claim_trial(study.id, {"a": number}, f"a={number}", most=4) is not None

        with ThreadPoolExecutor(6) as pool:
            assert sum(pool.map(claim, range(6))) == 4
        assert [t.number for t in store.trials(study.id)] == [0, 1, 2, 3]

    def test_a_slow_worker_keeps_its_trial_and_a_dead_one_loses_it(self, store: Store) -> None:
        study = store.study(key())
        store.claim_trial(study.id, {"a": 1}, "a=1")
        store.add_trial(study.id, {"a": 2}, "a=2")  # As a search of one process adds it.
        move(store, "trial")
        beats = Beats(store, study.id)
        beats(LEASE_BEATS - 1)
        assert beats.taken() == []
        change(store, "UPDATE trial SET heartbeat_at = heartbeat_at + 10 WHERE number = 0")
        beats()
        assert beats.taken() == [1]
        beats(LEASE_BEATS - 1)
        assert beats.taken() == []
        beats()
        assert beats.taken() == [0]
        assert beats.taken() == []

    def test_who_looks_again_and_again_within_a_beat_takes_nothing(self, store: Store) -> None:
        study = store.study(key())
        store.claim_trial(study.id, {"a": 1}, "a=1")
        move(store, "trial", 2 * LEASE_S)
        beats = Beats(store, study.id)
        for _ in range(2 * LEASE_BEATS):
            beats.now += BEAT_S / 100
            store.beat(study.id)
            assert beats.taken() == []

    @pytest.mark.parametrize("sign", [1, -1])
    def test_a_step_of_the_databases_clock_changes_nothing(self, store: Store, sign: int) -> None:
        study = store.study(key())
        store.claim_trial(study.id, {"a": 1}, "a=1")  # Of a worker that lives.
        store.claim_trial(study.id, {"a": 2}, "a=2")  # Of a dead one.
        store.take_role(study.id, "finish")
        for table in ("trial", "role"):
            move(store, table)
        dialect, right = store._database.dialect, store._database.dialect.now()
        beats = Beats(store, study.id)
        for number in range(3 * LEASE_BEATS):
            now = dialect.now()
            for row in (
                "trial SET heartbeat_at = {} WHERE number = 0",
                "role SET heartbeat_at = {}",
            ):
                change(store, f"UPDATE {row.format(now)}")
            # Between the sign of life and the look at it.
            dialect.now = lambda number=number: f"({right} + {sign * 100_000 * number})"
            beats()
            assert beats.taken() == ([1] if number == LEASE_BEATS - 1 else [])
            assert not store.take_role(study.id, "finish")

    def test_a_clock_that_stands_still_kills_nobody(self, store: Store) -> None:
        study = store.study(key())
        store._database.dialect.now = lambda: "1000.0"
        store.claim_trial(study.id, {"a": 1}, "a=1")
        signs = []
        for _ in range(4):
            store.beat(study.id)
            signs.append(store.trials(study.id)[0].heartbeat_at)
        assert all(one != other for one, other in pairwise(signs))

    def test_of_several_workers_one_takes_a_dead_ones_trial_with_all_it_has(
        self, store: Store, place: str
    ) -> None:
        study = store.study(key())
        made = store.claim_trial(study.id, {"a": 1}, "a=1", {"x": 1})
        over = store.claim_trial(study.id, {"a": 2}, "a=2")
        assert made is not None
        assert over is not None
        store.add_run(study.id, made.id, "search", 0, 0, RunRecord("ok", wall_s=1.5))
        store.finish_trial(over.id, "ok", 0.9)
        store.release(study.id)
        move(store, "trial")
        program = (
            "import gc, sys; gc.disable(); from autotune.store import Store\n"
            "with Store.open(sys.argv[1]) as s:\n"
            "    print(len(s.recover(int(sys.argv[2]), is_restart=False)), flush=True)\n"
            "    sys.stdin.read()"  # Alive until all have looked: a dead one's is free again.
        )
        words = [sys.executable, "-c", program, place, str(study.id)]
        workers = [
            subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(3)
        ]
        try:
            taken = [int(worker.stdout.readline()) for worker in workers if worker.stdout]
        finally:
            for worker in workers:
                worker.communicate("")
        assert sorted(taken) == [0, 0, 1]
        repeated, finished = store.trials(study.id)
        assert (repeated.state, repeated.attrs) == (RUNNING, {"x": 1})
        assert [run.record.wall_s for run in store.runs(study.id, trial_id=made.id)] == [1.5]
        assert (finished.state, finished.estimate, finished.owner.host) == ("ok", 0.9, "far")
        # Nobody else may begin it meanwhile.
        assert store.claim_trial(study.id, {"a": 1}, "a=1") is None

    def test_a_heartbeat_renews_what_the_process_holds(self, store: Store) -> None:
        study = store.study(key())
        made = store.claim_trial(study.id, {"a": 1}, "a=1")
        other = store.add_trial(study.id, {"a": 2}, "a=2")
        assert made is not None
        store.finish_trial(other.id, "ok", 1.0)
        with store._database.write() as connection:
            connection.execute(text("UPDATE trial SET heartbeat_at = heartbeat_at - 50"))
        assert store.beat(study.id) == 1
        renewed = store.trials(study.id)[0]
        assert abs((renewed.heartbeat_at or 0) - store.clock()) < 30
        store.finish_trial(made.id, "ok", 1.0)
        assert store.beat(study.id) == 0

    def test_the_clock_is_the_databases(self, store: Store) -> None:
        first = store.clock()
        assert 0 <= store.clock() - first < 30
        assert first > 1.7e9

    def test_one_worker_holds_a_role(self, store: Store) -> None:
        study, other = store.study(key()), store.study(key(seed=2))
        assert store.role_holder(study.id, "finish") is None
        assert store.take_role(study.id, "finish")
        assert store.take_role(study.id, "finish")  # It holds it already.
        assert store.take_role(other.id, "finish")
        holder = store.role_holder(study.id, "finish")
        assert holder is not None
        assert store.is_role_active(study.id, "finish")  # It lives on this machine.
        move(store, "role")
        beats = Beats(store, study.id)
        assert not store.take_role(study.id, "finish")
        assert not store.is_role_active(study.id, "finish")  # Nobody knows yet.
        assert (store.role_holder(study.id, "finish") or "").startswith("far:")
        change(store, "UPDATE role SET heartbeat_at = heartbeat_at + 10")
        beats()
        assert store.is_role_active(study.id, "finish")
        beats(LEASE_BEATS)
        assert not store.is_role_active(study.id, "finish")
        assert store.role_holder(study.id, "finish") is None
        assert store.take_role(study.id, "finish")
        store.release(study.id)
        assert store.role_holder(study.id, "finish") is None

    def test_who_takes_part_is_known_and_who_is_lost(self, store: Store, place: str) -> None:
        study = store.study(key())
        assert store.workers(study.id) == []
        store.enroll(study.id)
        store.enroll(study.id)  # It takes part already.
        [here] = store.workers(study.id)
        assert (here.owner, here.is_lost) == (OwnerProcess.current(), False)
        store.enroll(study.id, is_waiting=True)
        assert [w.is_waiting for w in store.workers(study.id)] == [True]
        store.enroll(study.id)  # It has its machine.
        assert [w.is_waiting for w in store.workers(study.id)] == [False]
        program = (
            "import gc, sys; gc.disable(); from autotune.store import Store\n"
            "with Store.open(sys.argv[1]) as s: s.enroll(int(sys.argv[2]))"
        )
        subprocess.run([sys.executable, "-c", program, place, str(study.id)], check=True)
        assert sorted(w.is_lost for w in store.workers(study.id)) == [False, True]
        move(store, "role")
        assert not any(
            w.is_lost for w in store.workers(study.id)
        )  # On another host nobody can tell.
        move(store, "role", LEASE_S + 1)
        with Store.open(place) as other:  # One look can only believe the clock.
            assert all(w.is_lost and w.seen_s > LEASE_S for w in other.workers(study.id))
        beats = Beats(store, study.id)
        change(store, "UPDATE role SET heartbeat_at = heartbeat_at + 1")
        beats()
        assert not any(w.is_lost for w in store.workers(study.id))  # This process knows better.
        beats(LEASE_BEATS)
        assert all(w.is_lost for w in store.workers(study.id))
        store.enroll(study.id)
        store.release(study.id)
        assert all(w.is_lost for w in store.workers(study.id))

    def test_who_leaves_is_not_waited_for(self, store: Store) -> None:
        study, other = store.study(key()), store.study(key(seed=2))
        left = store.claim_trial(study.id, {"a": 1}, "a=1")
        lone = store.add_trial(study.id, {"a": 2}, "a=2")
        assert left is not None
        assert store.claim_trial(other.id, {"a": 1}, "a=1") is not None
        store.release(study.id)
        move(store, "trial")  # As a worker on another host sees them.
        assert [t.id for t in store.recover(study.id, is_restart=False)] == [left.id, lone.id]
        assert store.recover(other.id, is_restart=False) == []

    def test_a_role_of_a_dead_process_is_free(self, store: Store, place: str) -> None:
        study = store.study(key())
        program = (
            "import gc, sys; gc.disable(); from autotune.store import Store\n"
            "with Store.open(sys.argv[1]) as s: assert s.take_role(int(sys.argv[2]), 'finish')"
        )
        subprocess.run([sys.executable, "-c", program, place, str(study.id)], check=True)
        assert store.take_role(study.id, "finish")

    def test_runs_since_a_run(self, store: Store) -> None:
        study = store.study(key())
        for number in range(4):
            store.add_run(study.id, None, "default", 0, 0, RunRecord("ok", wall_s=1.0 + number))
        assert [run.order for run in store.runs(study.id, after=1)] == [2, 3]
        assert len(store.runs(study.id, after=-1)) == 4

    def test_what_a_worker_begins_with(self, store: Store) -> None:
        study = store.study(key())
        assert study.request is None
        asked = {"argv": ["--app", "größer"], "cwd": "/"}
        store.change_request(study.id, lambda before: asked if before is None else {})
        assert store.get_study(study.id).request == {"argv": ["--app", "größer"], "cwd": "/"}
