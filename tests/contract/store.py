"""What every back-end of the results database must do; test_store_contract.py tries each."""

from __future__ import annotations

import dataclasses
import json
import math
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from autotune.errors import UsageError
from autotune.store import RUNNING, OwnerProcess, Store, run_columns
from autotune.store.model import HostRuns
from autotune.store.record_columns import DETAILS, OUTPUT, storable
from runner.types import PrintedLines, ReadBack, RunRecord
from tests.contract.store_samples import APP, MACHINE, MPI, key, ok
from tests.refusals import refused
from tests.started import rank_environment

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "database.md"
WRITER = Path(__file__).resolve().parents[1] / "store" / "writer.py"


def full_record() -> RunRecord:
    """Every field differs from its default."""
    return RunRecord(
        state="not_read_back",
        reason="b was altered",
        wall_s=2.5,
        code="metric.cut",
        metric_s=1.25,
        metric_rate=True,
        metric_unit="GB/s",
        metric_count=3,
        exit_code=3,
        signal=9,
        verified=False,
        started_at=1767225600.25,
        cpu_s=4.5,
        foreign_cpu_s=0.125,
        init_s=0.125,
        irq_s=0.0625,
        foreign_limit_s=0.5,
        load1=1.5,
        world_size=4,
        read_back={
            "z": ReadBack("in force", "1", "1", "command line"),
            "b": ReadBack("altered", "65536", "4096", None),
            "a": ReadBack("unknown", "x"),
        },
        bindings=["0", "1", "0-1", ""],
        host="node1",
        place="node[1-2] cpus 0-1",
        mpi_name="Open MPI",
        mpi_version="5.0.11",
        command=["mpirun", "-np", "4", "--mca", "b", "65536", "./program", "a b"],
        output_bytes=2**40,
        stdout_tail="zeit: 1,25 s — fertig\n",
        stderr_tail="a warning\n",
        inherited={"btl": "self,sm (environment)"},
        extra={"seconds": 1.25, "steps": [1, 2], "nested": {"x": None}},
        printed=PrintedLines(("result 1", "zeit: 1,25 s — fertig"), {"ab12": "3:4d2"}, True),
    )


_floats = st.floats(allow_nan=True, allow_infinity=True)
_small = st.integers(-(2**31), 2**31 - 1)
_text = st.text(st.characters(), max_size=20)  # surrogates and NUL among them
_json = st.recursive(
    st.none() | st.booleans() | _small | _floats | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=6,
)
records = st.builds(
    RunRecord,
    state=st.sampled_from(["ok", "failed", "timeout", "no_metric", "foreign_load"]),
    reason=_text,
    wall_s=_floats,
    code=_text,
    metric_s=st.none() | _floats,
    metric_rate=st.booleans(),
    metric_unit=_text,
    metric_count=st.none() | _small,
    exit_code=st.none() | _small,
    signal=st.none() | _small,
    verified=st.none() | st.booleans(),
    started_at=_floats,
    cpu_s=_floats,
    foreign_cpu_s=_floats,
    init_s=st.none() | _floats,
    irq_s=_floats,
    foreign_limit_s=_floats,
    load1=_floats,
    world_size=st.none() | _small,
    read_back=st.dictionaries(
        _text,
        st.builds(
            ReadBack,
            state=st.sampled_from(["in force", "inactive", "altered"]),
            requested=_text,
            effective=st.none() | _text,
            source=st.none() | _text,
        ),
        max_size=3,
    ),
    bindings=st.lists(_text, max_size=3),
    host=_text,
    mpi_name=_text,
    mpi_version=_text,
    command=st.lists(_text, max_size=3),
    output_bytes=st.integers(0, 2**63 - 1),
    stdout_tail=_text,
    stderr_tail=_text,
    inherited=st.dictionaries(_text, _text, max_size=2),
    extra=st.dictionaries(_text, _json, max_size=3),
)


def plain(record: RunRecord) -> str:
    """Text that is equal for equal records, NaN included."""
    return json.dumps(dataclasses.asdict(record))


def writer(place: str, *words: object) -> subprocess.Popen[str]:
    """Another process that works on the same database; see writer.py."""
    command = [sys.executable, str(WRITER), place, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=rank_environment())


class StoreContract:
    """Subclasses give the fixture ``place``: the path or URL of a database without any table."""

    @pytest.fixture
    def store(self, place: str) -> Iterator[Store]:
        with Store.open(place) as opened:
            yield opened

    # studies

    def test_one_key_is_one_study(self, store: Store) -> None:
        first = store.study(key())
        assert store.study(key()) == first
        assert store.study(key(seed=2)).id != first.id
        assert [one.seed for one in store.studies()] == [2, 1]

    def test_a_study_comes_back_as_it_was_given(self, store: Store) -> None:
        given = key(
            strategy_options={"population": 20, "rates": [0.5, math.inf]},
            inherited={"btl": "tcp"},
            conditions={"clean_env": False, "timeout_s": None},
            cluster="grün\udcff\0",
            seed=2**63 - 1,
        )
        study = store.study(given)
        assert study.key == given
        assert (study.hash, study.context) == (given.hash, given.context)
        assert (study.status, study.result) == ("new", None)
        assert store.get_study(study.id) == study

    def test_descriptions_do_not_make_another_study(self, store: Store) -> None:
        elsewhere = key(
            app=dataclasses.replace(APP, name="j", program="/home/j"),
            machine=dataclasses.replace(MACHINE, hostname="node2"),
            mpi=dataclasses.replace(MPI, path="/usr"),
        )
        assert store.study(key()).id == store.study(elsewhere).id

    def test_result(self, store: Store) -> None:
        study = store.study(key())
        store.set_result(study.id, "interrupted", {"trials": 3})
        store.set_result(study.id, "keep_default", {"gain": None, "name": "größer"})
        found = store.get_study(study.id)
        assert (found.status, found.result) == ("keep_default", {"gain": None, "name": "größer"})
        store.set_result(study.id, "too_noisy", None)
        assert store.get_study(study.id).result is None

    def test_what_is_frozen_first_stays(self, store: Store) -> None:
        study = store.study(key())
        assert store.stored_document(study.id, "round:1") is None
        document = {"settings": [{"a": 1}], "alpha": 0.03, "limit_s": None}
        assert store.store_document(study.id, "round:1", document) == document
        assert store.store_document(study.id, "round:1", {"alpha": 0.5}) == document
        assert store.stored_document(study.id, "round:1") == document
        assert store.stored_document(study.id, "round:2") is None
        with refused(UsageError, "study.unknown"):
            store.store_document(999, "round:1", document)

    def test_documents_by_the_beginning_of_their_name(self, store: Store) -> None:
        study, other = store.study(key()), store.study(key(seed=2))
        for name in ("part:b", "part:a", "part_c", "apart:d"):
            store.store_document(study.id, name, {"name": name})
        store.store_document(other.id, "part:a", {"name": "of another study"})
        found = store.documents(study.id, "part:")
        assert found == {name: {"name": name} for name in ("part:a", "part:b")}
        assert list(store.documents(study.id, "part_")) == ["part_c"]
        assert store.documents(other.id, "round:") == {}

    def test_summaries_count(self, store: Store) -> None:
        study = store.study(key())
        trial = store.add_trial(study.id, {"a": 1}, "a=1")
        for _ in range(3):
            store.add_run(study.id, trial.id, "search", 0, 0, ok(1.0))
        (one,) = store.studies()
        assert (one.id, one.hash, one.trials, one.runs) == (study.id, study.hash, 1, 3)
        assert (one.app, one.argv, one.mpi) == ("jacobi3d", ("-n", "64"), "openmpi 5.0.11")

    def test_find_study(self, store: Store) -> None:
        studies = [store.study(key(seed=seed)) for seed in range(3)]
        wanted = studies[1]
        assert store.find_study(str(wanted.id)) == wanted
        assert store.find_study(wanted.hash[:8]) == wanted
        assert store.find_study(wanted.hash.upper()) == wanted
        for text_ in ("", wanted.hash[:3] + "x", "%%%%", "____", "9" * 30, "nonsense\udcff"):
            with refused(UsageError, "study.unknown") as caught:
                store.find_study(text_)
            assert all(one.hash[:12] in str(caught.value) for one in studies)

    def test_an_ambiguous_prefix_lists_the_candidates(self, store: Store) -> None:
        study, other = store.study(key()), store.study(key(seed=2))
        with store._database.write() as connection:
            twin = study.hash[:8] + other.hash[8:]
            connection.execute(
                text("UPDATE study SET hash = :twin WHERE id = :id"), {"twin": twin, "id": other.id}
            )
        with refused(UsageError, "study.unknown") as refusal:
            store.find_study(study.hash[:6])
        assert " 2 " in str(refusal.value)
        assert store.find_study(study.hash[:20]).id == study.id

    def test_find_study_in_an_empty_database(self, store: Store) -> None:
        with refused(UsageError, "study.unknown"):
            store.find_study("1")

    # trials

    def test_trials_are_numbered_in_each_study(self, store: Store) -> None:
        studies = [store.study(key(seed=seed)) for seed in range(2)]
        for _ in range(3):
            for study in studies:
                store.add_trial(study.id, {}, "default", origin="default")
        for study in studies:
            assert [trial.number for trial in store.trials(study.id)] == [0, 1, 2]

    def test_a_trial_comes_back_as_it_was_given(self, store: Store) -> None:
        study = store.study(key())
        setting: dict[str, int | float | str] = {
            "b": "ring",
            "a": 8192,
            "c": 0.5,
            "huge": 10**400,
            "odd": "\udcff\0é",
        }
        attrs = {"generation": 3, "fitness": [1.5, math.inf], "parents": None}
        made = store.add_trial(study.id, setting, "a=8192,…", attrs, origin="prior")
        assert store.trials(study.id) == [made]
        assert (made.setting, made.key, made.attrs) == (setting, "a=8192,…", attrs)
        assert list(made.setting) == list(setting)
        assert (made.state, made.estimate, made.origin) == (RUNNING, None, "prior")
        assert made.owner == OwnerProcess.current()
        assert made.finished_at is None

    def test_finishing_adds_attributes_and_may_be_repeated(self, store: Store) -> None:
        study = store.study(key())
        trial = store.add_trial(study.id, {"a": 1}, "a=1", {"generation": 1, "x": 0})
        store.finish_trial(trial.id, "failed", math.nan, reason="no \0 luck")
        done = store.finish_trial(trial.id, "ok", 2, {"x": 1, "y": [2]})
        assert store.trials(study.id) == [done]
        assert (done.state, done.estimate, done.reason) == ("ok", 2.0, "")
        assert isinstance(done.estimate, float)
        assert done.attrs == {"generation": 1, "x": 1, "y": [2]}
        assert done.finished_at is not None
        assert done.finished_at >= done.created_at

    def test_a_bad_estimate_is_none(self, store: Store) -> None:
        trial = store.add_trial(store.study(key()).id, {}, "default")
        failed = store.finish_trial(trial.id, "failed", math.nan, reason="it failed")
        assert (failed.estimate, failed.reason) == (None, "it failed")
        assert store.finish_trial(trial.id, "censored", math.inf).estimate == math.inf

    def test_sql_selects_on_parameters(self, store: Store) -> None:
        study = store.study(key())
        for limit in (4096, 8192, 65536):
            store.add_trial(study.id, {"eager": limit, "algorithm": "ring"}, f"eager={limit}")
        query = text(
            "SELECT trial.number FROM trial JOIN trial_value v ON v.trial_id = trial.id "
            "WHERE v.name = 'eager' AND v.number > 5000 ORDER BY trial.number"
        )
        with store._database.read() as connection:
            assert connection.scalars(query).all() == [1, 2]

    # runs

    def test_runs_are_counted(self, store: Store) -> None:
        study, other = store.study(key()), store.study(key(seed=2))
        for state, place, host in (("ok", "a", "h"), ("ok", "", "h"), ("timeout", "a", "h")):
            record = RunRecord(state, wall_s=1.0, place=place, host=host)  # type: ignore[arg-type]
            store.add_run(study.id, None, "default", 0, 0, record)
        store.add_run(other.id, None, "default", 0, 0, RunRecord("failed"))
        assert store.run_counts(study.id, "state") == {"ok": 2, "timeout": 1}
        assert store.run_counts(study.id, "place") == {"a": 2, "h": 1}
        assert store.run_counts(store.study(key(seed=3)).id, "state") == {}

    def test_runs_are_read_by_columns(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        study = store.study(key())
        trial = store.add_trial(study.id, {"a": 1}, "a=1")
        back = {"a": ReadBack("in force", "1", "1")}
        for trial_id, phase, record in (
            (None, "warmup", ok(9.0, host="h2")),
            (None, "default", ok(2.0, host="h2", foreign_cpu_s=1.0, foreign_limit_s=0.5)),
            (trial.id, "search", ok(1.0, host="h1", metric_s=0.5, metric_unit="s", read_back=back)),
            (None, "confirm:r1:lead", ok(3.0, host="h1", foreign_cpu_s=math.nan)),
            (None, "default", RunRecord("timeout", wall_s=math.nan, host="h3")),
            (None, "confirm:r1", RunRecord("failed", wall_s=4.0, host="h3")),
        ):
            store.add_run(study.id, trial_id, phase, 0, 0, record)
        course = store.course(study.id)
        assert [run.trial for run in course] == [None, None, 0, None, None, None]
        kinds = ["warmup", "default", "search", "confirm", "default", "confirm"]
        assert [run.kind for run in course] == kinds
        assert [run.wall_s for run in course if not math.isnan(run.wall_s)] == [9, 2, 1, 3, 4]
        assert store.hosts(study.id) == [
            HostRuns("h1", 2, 0), HostRuns("h2", 1, 1), HostRuns("h3", 0, 0)
        ]  # fmt: skip
        values = store.values(study.id, "default")
        assert values == {"warmup": [9.0], "default": [2.0], "confirm:r1:lead": [3.0]}
        last, last_ok = store.last_run(study.id), store.last_run(study.id, "ok")
        assert last is not None
        assert last_ok is not None
        assert (last.order, last_ok.order) == (5, 3)
        for page, sizes in ((4, [4, 2]), (3, [3, 3]), (6, [6])):
            monkeypatch.setattr(run_columns, "PAGE", page)
            parts = list(store.run_columns(study.id))
            assert [len(part["run"]) for part in parts] == sizes
            assert [number for part in parts for number in part["run"]] == list(range(6))
            texts = [json.loads(text) for part in parts for text in part["read_back"]]
            assert [bool(text) for text in texts] == [False, False, True, False, False, False]

    def test_every_field_of_a_run_is_stored(self, store: Store) -> None:
        record, default = full_record(), RunRecord("ok", wall_s=1.0)
        same = [
            field.name
            for field in dataclasses.fields(RunRecord)
            if field.name != "executables"  # A study stores them once, not each run.
            and getattr(record, field.name) == getattr(default, field.name)
        ]
        assert same == [], "full_record() must give these fields another value"
        study = store.study(key())
        store.add_run(study.id, None, "default", 1, 2, record)
        (found,) = store.runs(study.id)
        (brief,) = store.runs(study.id, brief=True)
        assert found.record == record
        assert list(found.record.read_back) == ["z", "b", "a"]
        left_out = {
            name: getattr(default, name) for name in (*OUTPUT, *DETAILS, "read_back", "printed")
        }
        assert brief.record == dataclasses.replace(record, **left_out)
        (quiet,) = store.runs(study.id, output=False)
        no_output = {name: getattr(default, name) for name in OUTPUT}
        assert quiet.record == dataclasses.replace(record, **no_output)

    @settings(
        max_examples=60,
        deadline=None,
        suppress_health_check=list(
            HealthCheck
        ),  # one store for all examples, one test per back-end
    )
    @given(record=records)
    def test_any_run_can_be_stored(self, store: Store, record: RunRecord) -> None:
        study = store.study(key())
        run_id = store.add_run(study.id, None, "default", None, None, record)
        found = next(run for run in store.runs(study.id) if run.id == run_id)
        assert plain(found.record) == plain(storable(record))

    def test_a_valid_run_without_a_finite_figure_is_not_valued_at_its_wall_time(
        self, store: Store
    ) -> None:
        study = store.study(key())
        for figure in (math.nan, math.inf):
            store.add_run(study.id, None, "default", 0, 0, ok(1.0, metric_s=figure))
        assert [run.record.state for run in store.runs(study.id)] == ["no_metric"] * 2
        assert "nan" in store.runs(study.id)[0].record.reason
        assert store.best(study.id) == []

    def test_runs_in_order_and_by_filter(self, store: Store) -> None:
        study = store.study(key())
        one = store.add_trial(study.id, {"a": 1}, "a=1")
        two = store.add_trial(study.id, {"a": 2}, "a=2")
        store.add_run(study.id, None, "warmup", 0, 0, ok(9.0))
        store.add_run(study.id, one.id, "search", 0, 0, ok(1.0))
        store.add_run(study.id, two.id, "search", 0, 0, RunRecord("failed"))
        store.add_run(study.id, one.id, "confirm:60", 3, 1, ok(1.5), setting_key="default")
        runs = store.runs(study.id)
        assert [run.order for run in runs] == [0, 1, 2, 3]
        assert [run.trial for run in runs] == [None, 0, 1, 0]
        assert [run.trial_id for run in runs] == [None, one.id, two.id, one.id]
        assert [run.setting_key for run in runs] == ["default", "a=1", "a=2", "default"]
        assert (runs[3].phase, runs[3].block, runs[3].position) == ("confirm:60", 3, 1)

        def orders(**filters: Any) -> list[int]:
            return [run.order for run in store.runs(study.id, **filters)]

        assert orders(trial_id=one.id) == [1, 3]
        assert orders(setting_key="default") == [0, 3]
        assert orders(phases=["confirm", "warmup"]) == [0, 3]
        assert orders(phases=["confirm:6", "conf"]) == []
        assert orders(states=["failed"]) == [2]
        assert orders(states=["ok"], phases=["search"]) == [1]

    def test_a_place_that_is_taken_becomes_the_next(self, store: Store) -> None:
        study = store.study(key())
        for order in (0, 5, 5, 2, None, 9):
            store.add_run(study.id, None, "default", 0, 0, ok(1.0), order=order)
        assert [run.order for run in store.runs(study.id)] == [0, 5, 6, 7, 8, 9]

    @pytest.mark.parametrize(("study_id", "trial_id"), [(99, None), (1, 99), (2, 1), (99, 1)])
    def test_what_does_not_belong_together_is_refused(
        self, store: Store, study_id: int, trial_id: int | None
    ) -> None:
        trial = store.add_trial(store.study(key()).id, {"a": 1}, "a=1")
        assert (trial.study_id, trial.id, store.study(key(seed=2)).id) == (1, 1, 2)
        with pytest.raises(UsageError):
            store.add_run(study_id, trial_id, "search", 0, 0, ok(1.0))
        assert store.runs(1) == store.runs(2) == []

    def test_unknown_studies_and_trials_are_refused(self, store: Store) -> None:
        for call in (
            lambda: store.get_study(7),
            lambda: store.add_trial(7, {}, "default"),
            lambda: store.finish_trial(7, "ok", 1.0),
            lambda: store.set_result(7, "keep_default", {}),
            lambda: store.recover(7),
        ):
            with refused(UsageError, "study.unknown", "store.row_unknown") as refusal:
                call()
            assert " 7 " in str(refusal.value)

    # figures

    def test_best_is_the_median_of_valid_runs(self, store: Store) -> None:
        study = store.study(key())

        def run(setting: str, *seconds: float, phase: str = "search", state: str = "ok") -> None:
            for value in seconds:
                record = RunRecord(state, wall_s=value)  # type: ignore[arg-type]
                store.add_run(study.id, None, phase, 0, 0, record, setting_key=setting)

        run("default", 0.1, phase="warmup")
        run("default", 3.0, 3.5)
        run("a=1", 1.0, 2.0, 9.0)
        run("a=2", 0.2, state="timeout")
        run("a=3", 2.0)
        run("a=4", 2.5, phase="confirm:60")
        found = [(best.key, best.median_s, best.runs) for best in store.best(study.id)]
        assert found == [
            ("a=1", 2.0, 3),
            ("a=3", 2.0, 1),
            ("a=4", 2.5, 1),
            ("default", 3.25, 2),
        ]
        assert [best.key for best in store.best(study.id, limit=1)] == ["a=1"]
        assert [best.key for best in store.best(study.id, phases=["confirm"])] == ["a=4"]
        assert store.best(store.study(key(seed=9)).id) == []

    def test_comparisons_of_a_program_are_counted(self, store: Store) -> None:
        first = store.study(key())
        assert store.comparisons(first.id) == 1
        others = [key(seed=7), key(strategy="compare"), key(strategy="auto")]
        for other in others:
            store.set_result(store.study(other).id, "keep_default", {"x": 1})
        store.study(key(seed=8))  # It has no result.
        store.set_result(store.study(key(strategy="noise")).id, "measured", {"x": 1})
        elsewhere = dataclasses.replace(APP, argv=("other",))
        store.set_result(store.study(key(app=elsewhere)).id, "keep_default", {"x": 1})
        assert store.comparisons(first.id) == 4

    def test_known_runs_come_from_studies_of_the_same_context(self, store: Store) -> None:
        mine = store.study(key())
        same = store.study(key(seed=7, strategy="random", space_hash="0" * 64))
        store.add_run(same.id, None, "search", 0, 0, ok(1.0), setting_key="a=1")
        store.add_run(same.id, None, "search", 0, 0, ok(2.0), setting_key="a=2")
        store.add_run(mine.id, None, "search", 0, 0, ok(3.0), setting_key="a=1")
        for change in ({"ranks": 8}, {"inherited": {"btl": "tcp"}}, {"cluster_hash": "x"}):
            other = store.study(key(**change))
            store.add_run(other.id, None, "search", 0, 0, ok(4.0), setting_key="a=1")

        def seconds(**filters: Any) -> list[float]:
            return [r.record.wall_s for r in store.known_runs(mine.context, "a=1", **filters)]

        assert seconds() == [3.0, 1.0]
        assert seconds(other_than=mine.id) == [1.0]

    def test_known_runs_that_were_launched_otherwise_are_left_out(self, store: Store) -> None:
        study = store.study(key())
        rules = {"mca": {"algorithm": "3", "use_dynamic_rules": "1"}, "env": {}}
        for seconds, launched in ((1.0, None), (2.0, rules), (3.0, {"mca": {"algorithm": "3"}})):
            store.add_run(
                study.id, None, "x", 0, 0, ok(seconds), setting_key="a=1", launched=launched
            )
        backwards = {"mca": dict(reversed(rules["mca"].items()))}
        (run,) = store.known_runs(study.context, "a=1", launched=backwards)
        assert (run.record.wall_s, run.launched) == (2.0, {"mca": rules["mca"]})

    # processes

    def test_recover_takes_over_what_dead_processes_left(self, store: Store, place: str) -> None:
        study = store.study(key())
        finished = store.add_trial(study.id, {"a": 0}, "a=0")
        store.finish_trial(finished.id, "ok", 1.0)
        dead = writer(place, "trial", study.id)
        assert dead.stdout is not None
        number = int(dead.stdout.readline())
        living = writer(place, "trial", study.id)
        try:
            assert living.stdout is not None
            living.stdout.readline()
            assert store.recover(study.id) == []
            dead.send_signal(signal.SIGKILL)
            dead.wait()
            (left,) = store.recover(study.id)
            assert (left.number, left.state, left.attrs) == (number, RUNNING, {"kept": True})
            assert left.owner == OwnerProcess.current()
            assert [trial.state for trial in store.trials(study.id)] == ["ok", RUNNING, RUNNING]
            again = writer(place, "recover", study.id)
            assert again.communicate()[0].strip() == "0"
        finally:
            for process in (dead, living):
                process.kill()
                process.communicate()

    def test_recover_takes_over_what_this_process_left(self, store: Store) -> None:
        study = store.study(key())
        made = store.add_trial(study.id, {"a": 0}, "a=0")
        [left] = store.recover(study.id)
        assert dataclasses.replace(left, heartbeat_at=made.heartbeat_at) == made

    def test_a_trial_on_another_host_is_left_alone_until_the_host_is_given_up(
        self, store: Store
    ) -> None:
        study = store.study(key())
        trial = store.add_trial(study.id, {"a": 0}, "a=0")
        with store._database.write() as connection:
            connection.execute(
                text("UPDATE trial SET owner_host = 'far', owner_scope = 'another boot/pid'")
            )
        assert store.recover(study.id) == []
        assert [t.id for t in store.recover(study.id, gone_hosts=["far"])] == [trial.id]

    def test_threads_share_a_store(self, store: Store) -> None:
        study = store.study(key())
        with ThreadPoolExecutor(4) as pool:
            add = partial(store.add_run, study.id, None, "default", 0, 0)
            ids = list(pool.map(add, [ok(float(i)) for i in range(40)]))
        runs = store.runs(study.id)
        assert sorted(run.id for run in runs) == sorted(ids)
        assert [run.order for run in runs] == list(range(40))

    def test_two_processes_write_at_once(self, store: Store, place: str) -> None:
        study = store.study(key())
        writers = [writer(place, "runs", study.id, 60) for _ in range(2)]
        acknowledged: list[int] = []
        for process in writers:
            out, _ = process.communicate()
            assert process.returncode == 0
            acknowledged.extend(int(line) for line in out.split())
        runs = store.runs(study.id)
        assert sorted(acknowledged) == sorted(run.id for run in runs)
        assert [run.order for run in runs] == list(range(120))
        assert [trial.number for trial in store.trials(study.id)] == list(range(120))
        assert all(len(run.record.read_back) == 10 for run in runs)

    def test_two_processes_open_and_make_the_same_study(self, place: str) -> None:
        processes = [writer(place, "study") for _ in range(2)]
        hashes = [process.communicate()[0].split() for process in processes]
        assert [process.returncode for process in processes] == [0, 0]
        assert hashes[0] == hashes[1] != []

    def test_reopening_finds_everything(self, store: Store, place: str) -> None:
        study = store.study(key())
        store.add_run(study.id, None, "default", 0, 0, full_record())
        with Store.open(place) as again:
            assert again.backup is None
            assert again.study(key()) == study
            assert again.runs(study.id) == store.runs(study.id)

    def test_views_are_for_people(self, store: Store) -> None:
        study = store.study(key())
        trial = store.add_trial(study.id, {"a": 1}, "a=1")
        store.add_run(study.id, trial.id, "search", 0, 0, full_record())
        with store._database.read() as connection:
            run = connection.execute(text("SELECT * FROM runs_readable")).mappings().one()
            assert (run["app"], run["setting"], run["trial"]) == ("jacobi3d", "a=1", 0)
            assert (run["started"], run["not_in_force"]) == ("2026-01-01T00:00:00Z", 2)
            one = connection.execute(text("SELECT * FROM trials_readable")).mappings().one()
            assert (one["setting"], one["state"], one["runs"]) == ("a=1", RUNNING, 1)
            row = connection.execute(text("SELECT * FROM studies_readable")).mappings().one()
            assert (row["mpi_version"], row["hostname"], row["runs"]) == ("5.0.11", "node1", 1)

    def test_the_questions_in_the_documentation_can_be_asked(self, store: Store) -> None:
        block = DOCUMENT.read_text().split("```sql")[1].split("```")[0]
        questions = [question for question in block.split(";") if question.strip()]
        assert len(questions) == 4
        study = store.study(key())
        trial = store.add_trial(study.id, {"btl_sm_eager_limit": 8192}, "btl_sm_eager_limit=8192")
        store.add_run(study.id, trial.id, "search", 0, 0, full_record())
        with store._database.read() as connection:
            assert all(connection.execute(text(question)).all() for question in questions)
