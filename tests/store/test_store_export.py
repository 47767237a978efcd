"""A study as CSV, Parquet and Optuna storage."""

from __future__ import annotations

import json
import resource
import signal
import sqlite3
import stat
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import optuna
import pandas as pd
import pytest

from autotune.errors import UsageError, WorkError
from autotune.store import Store, StudyRecord
from autotune.store.export import export_study
from runner.types import ReadBack, RunRecord
from tests.contract.store_samples import key, ok
from tests.refusals import refused


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


@pytest.fixture
def study(store: Store) -> StudyRecord:
    """Five trials, one of each fate, and two runs of the default."""
    study = store.study(key())
    store.add_run(study.id, None, "warmup", 0, 0, ok(9.0))
    store.add_run(study.id, None, "default", 0, 0, ok(3.0, metric_s=2.5))

    def trial(setting: dict[str, int | float | str], *records: RunRecord) -> int:
        name = ",".join(f"{n}={v}" for n, v in setting.items())
        added = store.add_trial(study.id, setting, name, {"generation": 0})
        for number, record in enumerate(records):
            store.add_run(study.id, added.id, "search", number, 0, record)
        return added.id

    back = {"eager": ReadBack("in force", "4096", "4096")}
    done = trial({"eager": 4096, "mixed": "ring"}, ok(1.0, read_back=back), ok(1.5), ok(2.5))
    store.finish_trial(done, "ok", 0.6)
    failed = trial({"eager": 8192, "ratio": 0.5}, RunRecord("failed", "exit code 3", exit_code=3))
    store.finish_trial(failed, "failed", None, reason="exit code 3")
    stopped = trial({"mixed": 3, "huge": 2**70}, RunRecord("timeout", wall_s=9.0))
    store.finish_trial(stopped, "censored", 3.6)
    trial({"ratio": 2})
    return study


@pytest.mark.parametrize("to", ["csv", "parquet"])
def test_raw_runs(store: Store, study: StudyRecord, tmp_path: Path, to: str) -> None:
    path = export_study(store, study.id, to, tmp_path / f"runs.{to}")
    frame = pd.read_csv(path) if to == "csv" else pd.read_parquet(path)
    runs = store.runs(study.id)
    assert list(frame["run"]) == [run.order for run in runs]
    assert list(frame["value_s"]) == [run.record.value_s for run in runs]
    assert list(frame["state"]) == [run.record.state for run in runs]
    assert frame["trial"].isna().tolist() == [True, True, False, False, False, False, False]
    assert frame["exit_code"].dropna().tolist() == [0, 0, 0, 0, 0, 3]
    assert frame["param.eager"].dropna().tolist() == [4096, 4096, 4096, 8192]
    assert frame["param.ratio"].dropna().tolist() == [0.5]
    assert frame["param.mixed"].dropna().tolist() == ["ring", "ring", "ring", "3"]
    assert [int(v) for v in frame["param.huge"].dropna()] == [2**70]
    assert set(frame["study"]) == {study.hash}
    back = json.loads(frame["read_back"][2])
    assert back["eager"]["effective"] == "4096"
    if to == "parquet":
        assert str(frame["param.eager"].dtype) == "Int64"


@pytest.mark.parametrize("to", ["csv", "parquet"])
def test_what_programs_printed_only_where_it_is_asked_for(
    store: Store, study: StudyRecord, tmp_path: Path, to: str
) -> None:
    store.add_run(study.id, None, "default", 0, 9, ok(1.0, stdout_tail="printed"))
    read = pd.read_csv if to == "csv" else pd.read_parquet
    plain = read(export_study(store, study.id, to, tmp_path / f"plain.{to}"))
    full = read(export_study(store, study.id, to, tmp_path / f"full.{to}", output=True))
    assert set(full.columns) - set(plain.columns) == {"stdout_tail", "stderr_tail"}
    assert "printed" in set(full["stdout_tail"])
    assert list(full["value_s"]) == list(plain["value_s"])


def test_profiles_of_caliper_have_each_run_with_its_setting(
    store: Store, study: StudyRecord, tmp_path: Path
) -> None:
    path = export_study(store, study.id, "caliper", tmp_path / "runs.zip")
    with zipfile.ZipFile(path) as archive:
        profiles = [json.loads(archive.read(name)) for name in sorted(archive.namelist())]
    assert [p["value_s"] for p in profiles] == [r.record.value_s for r in store.runs(study.id)]
    assert [p.get("param.eager") for p in profiles[2:6]] == [4096, 4096, 4096, 8192]
    by_region = dict(
        zip([n["label"] for n in profiles[1]["nodes"]], profiles[1]["data"], strict=True)
    )
    assert by_region == {"launch": [0, 0, 0.5, 3.0], "figure": [1, 1, 2.5, 2.5]}
    assert [len(p["nodes"]) for p in profiles] == [1, 2, 1, 1, 1, 1, 1]


def test_optuna_opens_the_file(store: Store, study: StudyRecord, tmp_path: Path) -> None:
    path = export_study(store, study.id, "optuna", tmp_path / "study.db")
    storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
    (name,) = optuna.get_all_study_names(storage)
    assert name == f"jacobi3d {study.hash[:12]}"
    loaded = optuna.load_study(study_name=name, storage=storage)
    states = [trial.state.name for trial in loaded.trials]
    assert states == ["COMPLETE", "FAIL", "PRUNED", "RUNNING"]
    best = loaded.best_trial
    assert (best.number, best.value) == (0, 1.5)
    assert best.params == {"eager": 4096, "huge": None, "mixed": "ring", "ratio": None}
    assert best.user_attrs["autotune"]["values_s"] == [1.0, 1.5, 2.5]
    assert loaded.trials[1].user_attrs["autotune"]["reason"] == "exit code 3"
    eager = best.distributions["eager"]
    assert isinstance(eager, optuna.distributions.CategoricalDistribution)
    assert eager.choices == (None, 4096, 8192)
    assert loaded.user_attrs["autotune_study"] == study.hash
    storage.engine.dispose()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("to", ["csv", "parquet", "optuna"])
def test_a_file_is_replaced_only_on_demand(
    store: Store, study: StudyRecord, tmp_path: Path, to: str
) -> None:
    path = tmp_path / "out"
    path.write_text("mine")
    with refused(UsageError, "file.exists"):
        export_study(store, study.id, to, path)
    assert path.read_text() == "mine"
    export_study(store, study.id, to, path, force=True)
    assert path.read_bytes()[:4] != b"mine"
    assert not list(tmp_path.glob(".*"))


def test_what_cannot_be_exported(store: Store, study: StudyRecord, tmp_path: Path) -> None:
    with refused(UsageError, "export.format_unknown"):
        export_study(store, study.id, "excel", tmp_path / "x")
    with refused(UsageError, "file.unwritable"):
        export_study(store, study.id, "csv", tmp_path / "no" / "x")
    with refused(UsageError, "file.unwritable"):
        export_study(store, study.id, "csv", tmp_path)
    with refused(UsageError, "study.unknown"):
        export_study(store, 99, "csv", tmp_path / "x")
    empty = store.study(key(seed=2))
    with refused(UsageError, "study.no_runs"):
        export_study(store, empty.id, "csv", tmp_path / "x")
    assert [path.name for path in tmp_path.glob("*x*")] == []


@pytest.mark.parametrize("to", ["csv", "parquet", "optuna"])
def test_a_full_disk_leaves_nothing_half_written(
    store: Store, study: StudyRecord, tmp_path: Path, to: str
) -> None:
    """A limit on the size of files stands in for the disk: writing fails in the middle."""
    path = tmp_path / "out"
    export_study(store, study.id, to, tmp_path / "first")  # Modules that it stores compiled, too.
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, usual[1]))
    try:
        with refused(WorkError, "file.unwritable"):
            export_study(store, study.id, to, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
        signal.signal(signal.SIGXFSZ, before)
    assert not path.exists()
    assert not list(tmp_path.glob(".*"))


def test_a_name_that_is_too_long(store: Store, study: StudyRecord, tmp_path: Path) -> None:
    with refused(WorkError, "file.unwritable"):
        export_study(store, study.id, "csv", tmp_path / ("n" * 250))


def test_an_export_has_the_mode_of_any_new_file(
    store: Store, study: StudyRecord, tmp_path: Path
) -> None:
    (tmp_path / "plain").touch()
    usual = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    path = export_study(store, study.id, "csv", tmp_path / "runs.csv")
    assert stat.S_IMODE(path.stat().st_mode) == usual
