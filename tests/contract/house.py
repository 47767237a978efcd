"""What keeping house does to a database; test_store_contract.py tries each back-end."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from autotune.store import Store
from autotune.store.findings import StoreFinding
from autotune.store.pruning import Pruned, PruneRule
from runner.types import PrintedLines, ReadBack, RunRecord
from tests.contract.store_samples import key, ok

REUSED = "reused"
OLD, NEW = time.time() - 10 * 86_400.0, time.time()


def wordy(at: float = OLD, name: str = "a", **changes: object) -> RunRecord:
    """A run with output, printed lines and a read-back."""
    record = ok(1.0, started_at=at, stdout_tail="é" * 1000, stderr_tail="e" * 10, **changes)
    record.printed = PrintedLines((f"line {name}",))
    record.read_back = {"eager": ReadBack("in force", name, name, "file")}
    return record


def rejected(at: float = OLD, name: str = "r") -> RunRecord:
    return wordy(at, name, state="foreign_load")


def rule(
    outputs: float | None = 5.0, busy: float | None = 5.0, protected: frozenset[int] = frozenset()
) -> PruneRule:
    return PruneRule(outputs, busy, protected, "confirm")


def nothing(plan: Pruned) -> bool:
    return not plan.studies and not plan.unnamed


def without_keys(store: Store, *statements: str) -> None:
    """Change rows as somebody else would, without foreign keys."""
    engine = store._database._engine
    with engine.connect() as connection:
        is_file = connection.dialect.name == "sqlite"
        off = "PRAGMA foreign_keys=OFF" if is_file else "SET session_replication_role = replica"
        connection.connection.cursor().execute(off)
        if not is_file:
            connection.connection.commit()
        for statement in statements:
            connection.execute(text(statement))
        connection.commit()
        connection.invalidate()


class HouseContract:
    """The tests of a back-end.  Subclass it with a fixture ``place``."""

    @pytest.fixture
    def house(self, place: str) -> Store:
        """A store with a study of six runs and two trials."""
        store = Store.open(place)
        study = store.study(key()).id
        for name in "ab":
            trial = store.add_trial(study, {"eager": name}, f"eager={name}")
            store.add_run(study, trial.id, "search", 0, 0, wordy(name=name))
            store.add_run(study, trial.id, "search", 0, 1, rejected(name=name))
            store.finish_trial(trial.id, "ok", 1.0)
        store.add_run(study, None, "default", 0, 0, rejected())
        store.add_run(study, None, "confirm:r1", 0, 0, rejected())
        store.add_run(study, None, "default", 0, 0, wordy(NEW, "new"))
        return store

    def codes(self, store: Store) -> list[str]:
        return [finding.code for finding in store.examine(False, REUSED)]

    def test_a_whole_database_has_no_fault(self, house: Store, place: str) -> None:
        assert house.examine(False, REUSED) == []
        with Store.open_read_only(place) as reader:
            assert reader.examine(True, REUSED) == []

    def test_rows_without_what_they_name_are_found(self, house: Store) -> None:
        without_keys(
            house,
            "DELETE FROM printed WHERE id = 1",
            "UPDATE run SET trial_id = 77 WHERE id = 1",
            "INSERT INTO role VALUES (99, 'finish', 'h', 's', 1, 1, 0)",
        )
        findings = house.examine(False, REUSED)
        orphans = {
            (f.data["table"], f.data["names"]): f.data["rows"]
            for f in findings
            if f.code == "store.orphan"
        }
        assert orphans.pop(("run", "trial")) == [[1]]
        assert orphans.pop(("role", "study")) == [[99, "finish"]]
        assert [1] in orphans.pop(("run", "printed"))
        assert orphans == {}

    def test_a_trial_whose_runs_are_gone_is_found_and_one_that_reused_is_not(
        self, house: Store
    ) -> None:
        other = house.add_trial(1, {"eager": "c"}, "eager=c")
        house.finish_trial(other.id, "ok", 0.9, {REUSED: True})
        without_keys(house, "DELETE FROM run WHERE trial_id = 2")
        (finding,) = (f for f in house.examine(True, REUSED) if f.code == "store.trial_empty")
        assert finding.data["trials"] == [[1, 1]]

    def test_a_study_that_moved_nowhere_is_found(self, house: Store) -> None:
        house.set_result(1, "moved", {"to": "ab" * 32})
        (finding,) = house.examine(True, REUSED)
        assert (finding.code, finding.data["rows"]) == ("store.orphan", [[1]])

    def test_json_that_autotune_did_not_write_is_found_row_by_row(self, place: str) -> None:
        with Store.open(place) as store:
            study = store.study(key()).id
            for name in "abc":
                store.add_run(study, None, "default", 0, 0, wordy(name=name))
            without_keys(store, "UPDATE run SET command = '{' WHERE id = 2")
        with Store.open(place, tolerant=True) as store:
            assert store.examine(True, REUSED) == []
            (finding,) = store.examine(False, REUSED)
        assert finding.code == "store.row_damaged"
        assert (finding.data["table"], finding.data["row"]) == ("run", "2")

    def test_nothing_goes_of_a_protected_study(self, house: Store) -> None:
        plan = house.prunable(rule(protected=frozenset({1})))
        assert nothing(plan)
        assert nothing(house.prune(rule(protected=frozenset({1})), plan))

    def test_old_outputs_and_rejected_runs_go_and_the_rest_stays(self, house: Store) -> None:
        before = {run.id: run for run in house.runs(1)}
        plan = house.prunable(rule())
        assert {run.id for run in house.runs(1)} == set(before)
        gone = house.prune(rule(), plan)
        assert gone == plan
        (share,) = gone.studies
        # The default's rejected run and those of both trials; the proof's keeps its row.
        assert (share.study, share.rejected, share.outputs) == (1, 3, 3)
        assert share.bytes == 6 * (2000 + 10)
        assert (gone.unnamed, gone.unnamed_bytes > 0) == (3, True)
        after = {run.id: run for run in house.runs(1)}
        assert [(run.phase, run.record.state) for run in after.values()] == [
            ("search", "ok"), ("search", "ok"), ("confirm:r1", "foreign_load"), ("default", "ok"),
        ]  # fmt: skip
        for number, run in after.items():
            was = before[number].record
            assert run.record.wall_s == pytest.approx(was.wall_s)
            assert run.record.read_back == was.read_back
            is_new = was.started_at > OLD + 1
            assert run.record.stdout_tail == (was.stdout_tail if is_new else "")
            assert run.record.printed == (was.printed if is_new else None)
        assert self.codes(house) == []
        assert nothing(house.prunable(rule()))

    def test_only_what_was_asked_for_goes(self, house: Store) -> None:
        assert nothing(house.prunable(rule(None, None)))
        (share,) = house.prunable(rule(None, 5.0)).studies
        assert (share.rejected, share.outputs) == (3, 0)
        (share,) = house.prunable(rule(5.0, None)).studies
        assert (share.rejected, share.outputs) == (0, 6)
        assert nothing(house.prunable(rule(11.0, 11.0)))

    def test_the_only_run_of_a_trial_and_the_last_of_a_study_stay(self, place: str) -> None:
        with Store.open(place) as store:
            study = store.study(key()).id
            trial = store.add_trial(study, {"eager": 1}, "eager=1")
            store.add_run(study, trial.id, "search", 0, 0, rejected())
            store.finish_trial(trial.id, "failed", None)
            for _ in range(2):
                store.add_run(study, None, "default", 0, 0, rejected())
            store.prune(rule(None), store.prunable(rule(None)))
            assert [run.order for run in store.runs(study)] == [0, 2]

    def test_a_study_with_a_running_trial_is_left_alone(self, house: Store) -> None:
        plan = house.prunable(rule())
        house.add_trial(1, {"eager": "x"}, "eager=x")
        assert house.busy_studies()[0] == {1}
        assert nothing(house.prune(rule(), plan))
        assert len(house.runs(1)) == 7

    def test_outputs_that_no_run_names_go(self, house: Store) -> None:
        without_keys(
            house, "DELETE FROM run WHERE trial_id IS NULL", "DELETE FROM run WHERE trial_id = 2"
        )
        findings = house.examine(True, REUSED)
        unnamed: list[StoreFinding] = [f for f in findings if f.code == "store.output_unnamed"]
        assert sum(f.data["count"] for f in unnamed) == house.prunable(rule(None, None)).unnamed
        house.prune(rule(None, None), house.prunable(rule(None, None)))
        assert self.codes(house) == ["store.trial_empty"]

    def test_a_worker_writes_while_it_is_pruned(self, place: str) -> None:
        """Its runs share their lines and read-backs with those that just went."""
        over = threading.Event()

        def write() -> int:
            with Store.open(place) as store:
                study = store.study(key()).id
                for number in itertools.count():
                    if over.is_set():
                        return number
                    store.add_run(study, None, "default", 0, 0, wordy(name="abc"[number % 3]))
            return 0

        with Store.open(place) as store, ThreadPoolExecutor(1) as pool:
            study = store.study(key()).id
            number = pool.submit(write)
            try:
                for _ in range(12):
                    store.prune(rule(), store.prunable(rule()))
                    assert not number.done(), number.result()
            finally:
                over.set()
            written = number.result()
            assert len(store.runs(study)) == written
            store.prune(rule(), store.prunable(rule()))
            assert self.codes(store) == []
            assert {run.record.printed for run in store.runs(study)} == {None}
