"""kill -9 at random moments: what was acknowledged is there, and the file opens.

The long form, with several writers, readers and a server, is tests/chaos/test_store.py.
"""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from autotune.store import RUNNING, Store
from tests.contract.store_samples import key
from tests.started import rank_environment

WRITER = Path(__file__).with_name("writer.py")


@pytest.mark.parametrize("seed", range(2))
def test_every_acknowledged_run_survives(tmp_path: Path, seed: int) -> None:
    place = tmp_path / "results.db"
    chance = random.Random(seed)
    acknowledged: list[int] = []
    with Store.open(place) as store:
        study_id = store.study(key()).id
    for _ in range(2):
        acknowledged += _killed_writer(place, study_id, chance)
        with closing(sqlite3.connect(place)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        with Store.open(place) as store:
            runs = {run.id: run for run in store.runs(study_id)}
            assert set(acknowledged) <= set(runs)
            assert all(len(runs[run_id].record.read_back) == 10 for run_id in acknowledged)
            left = [trial for trial in store.trials(study_id) if trial.state == RUNNING]
            recovered = store.recover(study_id)
            assert len(left) <= 1
            assert [trial.id for trial in recovered] == [trial.id for trial in left]
            for trial in recovered:
                store.finish_trial(trial.id, "ok", 1.0)


def _killed_writer(place: Path, study_id: int, chance: random.Random) -> list[int]:
    """Run ids that a writer acknowledged before it was killed somewhere in the middle."""
    command = [sys.executable, str(WRITER), str(place), "runs", str(study_id), "100000"]
    env = rank_environment()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(chance.randrange(1, 60))]
        time.sleep(chance.uniform(0, 0.02))
        process.kill()
        lines += process.stdout.read().splitlines(keepends=True)
    assert process.returncode == -9
    return [int(line) for line in lines if line.endswith("\n")]
