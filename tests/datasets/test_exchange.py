"""Studies become datasets: every run that counts, in blocks that each have the default."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.api.target import find_target
from autotune.cli import main
from autotune.datasets import Landscape, load
from autotune.datasets.exchange import check_dataset
from autotune.errors import UsageError
from autotune.measurement.study_key import study_key
from autotune.store import Store
from autotune.targets.request import TargetRequest
from runner.mpi.library import Library
from runner.types import RunRecord
from tests.refusals import refused

TRIED = "osc_rdma_buffer_size=8192"


@pytest.fixture
def study(tmp_path: Path, open_mpi: Library, monkeypatch: pytest.MonkeyPatch) -> str:
    """A study in s.db whose runs took 33 minutes: every third is the default's."""
    monkeypatch.chdir(tmp_path)
    words = TargetRequest(app="nas-is", input="S", ranks=2)
    target = find_target(words)
    key = study_key(target, target.space("null"), "random", {}, seed=0)
    with Store.open("s.db") as store:
        made = store.study(key)
        for order in range(20):
            record = RunRecord("ok", wall_s=1.0, metric_s=0.5, started_at=1000.0 + 100 * order)
            setting = "default" if order % 3 == 0 else TRIED
            phase = "warmup" if order == 0 else "search"
            if order == 7:
                record.state = "foreign_load"
            if order == 8:
                record.state, record.reason = "timeout", "stopped"
            store.add_run(
                made.id, None, phase=phase, block=0, position=0, record=record,
                setting_key=setting, order=order, launched={},
            )  # fmt: skip
        return made.hash


def test_a_study_becomes_a_dataset(study: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "export", study, "-o", "out", "--store", "s.db"]) == 0
    assert main(["dataset", "describe", "out"]) == 0
    assert "planned" not in capfd.readouterr().out, "a search has no plan"
    made = load("out")
    check_dataset(made)
    runs = made.runs()
    # Without the one that warmed up and the one that was rejected.
    assert list(runs["order"]) == [order for order in range(1, 20) if order != 7]
    [cell] = made.cells
    keys = [made.settings(cell)[i].key for i in runs["setting"]]
    assert keys == ["default" if order % 3 == 0 else TRIED for order in runs["order"]]
    assert runs["block"].nunique() == 3
    assert runs["ratio"].notna().all()
    stopped = runs[runs["state"] == "censored"]
    assert list(stopped["order"]) == [8]
    assert list(stopped["ratio"]) == [2.0]
    with refused(UsageError, "dataset.not_a_grid"):
        Landscape(made, cell.key)


def test_nothing_is_written_over(study: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("out").mkdir()
    Path("out/mine").write_text("kept")
    assert main(["dataset", "export", study, "-o", "out", "--store", "s.db"]) == 2
    assert "[dataset.exists]" in capfd.readouterr().err
    assert [p.name for p in Path("out").iterdir()] == ["mine"]
