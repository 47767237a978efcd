"""A process of its own that works on a database and says on standard output what is durable.

writer.py PLACE study                make the study, print its hash
writer.py PLACE trial STUDY          add a trial, print its number, wait to be killed
writer.py PLACE recover STUDY        print how many trials were taken over
writer.py PLACE runs STUDY COUNT     add COUNT trials with a run each, print each run's id
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from autotune.store import Store
from runner.types import ReadBack
from tests.contract.store_samples import key, ok

PATIENCE_S = 60.0


def say(value: object) -> None:
    print(value, flush=True)


def add_runs(store: Store, study_id: int, count: int) -> None:
    back = {f"parameter_{i}": ReadBack("in force", "1", "1") for i in range(10)}
    for number in range(count):
        trial = store.add_trial(study_id, {"a": number}, f"a={number}")
        record = ok(1.0, read_back=back, stdout_tail="x" * 2000)
        say(store.add_run(study_id, trial.id, "search", 0, 0, record))
        store.finish_trial(trial.id, "ok", 1.0)


def main(place: str, task: str, study_id: int = 0, count: int = 0) -> None:
    with Store.open(place) as store:
        if task == "study":
            say(store.study(key()).hash)
        elif task == "trial":
            say(store.add_trial(study_id, {"a": 1}, "a=1", {"kept": True}).number)
            time.sleep(PATIENCE_S)
        elif task == "recover":
            say(len(store.recover(study_id)))
        else:
            add_runs(store, study_id, count)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
