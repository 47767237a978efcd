"""A database that is deleted or replaced while it is open: noticed, and saved."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.errors import WorkError
from autotune.measurement.measured_study import Heartbeat
from autotune.store import Store
from tests.contract.store_samples import key, ok


def _delete(place: Path) -> None:
    for path in list(place.parent.glob(f"{place.name}*")):
        path.unlink()


def _replace(place: Path) -> None:
    _delete(place)
    Store.open(place).close()


def _rename(place: Path) -> None:
    place.rename(place.with_name("moved.db"))


def _folder(place: Path) -> None:
    shutil.rmtree(place.parent)


def _saved(problem: WorkError) -> Path:
    assert problem.code == "store.replaced"
    path = re.search(r"\S*autotune-saved-\S+\.db", str(problem))
    assert path is not None
    return Path(path[0])


@pytest.mark.parametrize("accident", [_delete, _replace, _rename, _folder])
def test_the_next_write_stops_and_everything_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accident: Callable[[Path], None]
) -> None:
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "folder" / "results.db"
    with Store.open(place) as store:
        study = store.study(key()).id
        for value in (1.0, 2.0):
            store.add_run(study, None, "search", 0, 0, ok(value))
        store.check_place()
        accident(place)
        with pytest.raises(WorkError) as caught:
            store.add_run(study, None, "search", 0, 0, ok(3.0))
        copy = _saved(caught.value)
        with pytest.raises(WorkError) as again:
            store.add_run(study, None, "search", 0, 0, ok(4.0))
        assert _saved(again.value) == copy
    assert copy.stat().st_mode & 0o777 == 0o600
    with Store.open(copy) as store:
        assert [run.record.wall_s for run in store.runs(study)] == [1.0, 2.0, 3.0]


def test_a_beat_notices_it_too(tmp_path: Path) -> None:
    place = tmp_path / "results.db"
    with Store.open(place) as store:
        study = store.study(key()).id
        store.add_run(study, None, "search", 0, 0, ok(1.0))
        heart = Heartbeat(store, study, every_s=0.001)
        _delete(place)
        heart.start()
        while not list(tmp_path.glob("autotune-saved-*.db")):
            pass
        heart.stop()
        with pytest.raises(WorkError) as caught:
            store.set_result(study, "measured", None)
    with Store.open(_saved(caught.value)) as store:
        assert len(store.runs(study)) == 1
