"""Results databases for the tests of the page: generated studies, and texts that are markup."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

from sqlalchemy import insert, select

from autotune.store import AppInfo, MachineInfo, Store, StudyKey
from autotune.store import schema as s
from tests.contract.store_samples import APP, MACHINE, key, ok

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7 * 7 }}"
TOKEN = "a-token-of-the-tests"
PORT = 8765
HOST = f"127.0.0.1:{PORT}"


def searched(store: Store, trials: int = 6, **changes: object) -> str:
    """The hash of a stored search with the default and some trials, without a result."""
    study = store.study(key(**changes))
    store.add_run(study.id, None, "warmup", 0, 0, ok(1.3))
    for number in range(trials):
        store.add_run(study.id, None, "default", 0, 0, ok(1.0 + 0.01 * (number % 3)))
        setting = {"limit": 1024 * (1 + number % 3), "kind": "ab"[number % 2]}
        text = ",".join(f"{k}={v}" for k, v in sorted(setting.items()))
        trial = store.add_trial(study.id, setting, text)
        store.add_run(study.id, trial.id, "search", 0, 0, ok(0.9 + 0.05 * number))
        store.finish_trial(trial.id, "ok", 0.9 + 0.05 * number)
    return study.hash


def hostile(store: Store) -> str:
    """The hash of a study whose every text is markup."""
    app = AppInfo(HOSTILE, HOSTILE, "ab" * 32, (HOSTILE,), HOSTILE, HOSTILE, HOSTILE)
    machine = MachineInfo(2, HOSTILE, 2**30, HOSTILE, HOSTILE)
    study = store.study(
        key(app=app, machine=machine, cluster=HOSTILE, space_name=HOSTILE, strategy=HOSTILE)
    )
    record = dataclasses.replace(
        ok(1.0), stdout_tail=HOSTILE, stderr_tail=HOSTILE, host=HOSTILE, command=[HOSTILE]
    )
    for number in range(4):
        store.add_run(study.id, None, "default", 0, 0, record)
        setting = {HOSTILE: f"{HOSTILE}{number % 2}", "b": number // 2}
        trial = store.add_trial(study.id, setting, f"{HOSTILE}{number}")
        store.add_run(study.id, trial.id, HOSTILE, 0, 0, record)
        store.finish_trial(trial.id, "ok", 0.9 + number / 10, reason=HOSTILE)
    return study.hash


def generated(path: Path, count: int) -> None:
    """A database of ``count`` studies of ten programs on four machines, written in one go."""
    with Store.open(path) as store:
        for number in range(40):
            store.study(numbered(number))
        with store._database.write() as connection:
            row = connection.execute(select(s.study).where(s.study.c.id == 1)).one()
            parts = {
                study.id: study
                for study in connection.execute(select(s.study).order_by(s.study.c.id))
            }
            rows = []
            for number in range(40, count):
                like = parts[number % 40 + 1]._mapping
                rows.append(
                    {k: like[k] for k in row._mapping if k not in ("id", "hash", "seed")}
                    | {"hash": hash_of(number), "seed": number, "status": statuses(number)}
                )
            connection.execute(insert(s.study), rows)


def hash_of(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def statuses(number: int) -> str:
    return ("recommended", "keep_default", "measured")[number % 3]


def numbered(number: int) -> StudyKey:
    kind = number % 10
    app = dataclasses.replace(APP, name=f"program-{kind}", program_hash=f"{kind:064x}")
    machine = dataclasses.replace(MACHINE, cpu_model=f"cpu{number // 10}")
    strategy = "auto" if number % 2 else "ga"
    return key(app=app, machine=machine, seed=number, strategy=strategy)
