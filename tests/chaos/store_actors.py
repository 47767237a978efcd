"""Processes that use a database until they are killed, and note what was acknowledged to them.

``python -m tests.chaos.store_actors`` starts them: it reads a job (JSON) a line from its standard
input, forks, and prints the number of the new process. So none of them loads a module anew.

A note is a line of JSON in the actor's file, written after the database has confirmed. ``doubt`` is
a write that ended with an error: it may or may not be stored.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

from autotune.errors import AutotuneError
from autotune.store import Store, TrialDraft
from tests.contract.store_samples import ok

KEYS = 100_000
"""Settings among which writers choose: few enough that two now and then choose the same."""
RETRY_S = 0.05


class Notes:
    """The file of an actor; what it holds survives the actor."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def __call__(self, kind: str, *facts: object) -> None:
        os.write(self._file, f"{json.dumps([kind, *facts])}\n".encode())


def write(place: str, study: int, notes: Notes, chance: random.Random) -> None:
    """Claim trials, store a run and the end of each, and now and then a document."""
    with ExitStack() as stack:
        store = stack.enter_context(Store.open(place))
        _write_with(lambda: store, study, notes, chance)


def write_twice(place: str, study: int, notes: Notes, chance: random.Random) -> None:
    """The same with two stores on one database, of which one is opened again all the time."""
    stores = [Store.open(place), Store.open(place)]

    def next_store() -> Store:
        if chance.random() < 0.3:
            at = chance.randrange(2)
            stores[at].close()
            stores[at] = chance.choice((Store.open, Store.open_existing))(place)
        return chance.choice(stores)

    _write_with(next_store, study, notes, chance)


def _write_with(
    store: Callable[[], Store], study: int, notes: Notes, chance: random.Random
) -> None:
    for left in _acknowledged(notes, lambda: store().recover(study)) or ():
        _measure(store, study, left.id, left.number, left.key, notes, chance)
    while True:
        settings = [{"a": chance.randrange(KEYS)} for _ in range(2)]
        first, spare = (TrialDraft(one, f"a={one['a']}") for one in settings)
        trial = _acknowledged(
            notes,
            lambda: store().claim_trial(study, first.setting, first.key, spares=[spare]),  # noqa: B023
        )
        if trial is None:
            continue
        notes("trial", trial.number, trial.key)
        _measure(store, study, trial.id, trial.number, trial.key, notes, chance)
        if chance.random() < 0.1:
            name, value = f"plan:{chance.randrange(KEYS)}", {"by": os.getpid()}
            if kept := _acknowledged(notes, lambda: store().store_document(study, name, value)):  # noqa: B023
                notes("document", name, kept)


def _measure(
    store: Callable[[], Store], study: int, trial: int, number: int, key: str, notes: Notes,
    chance: random.Random,
) -> None:  # fmt: skip
    seconds = chance.uniform(1.0, 2.0)
    run = _acknowledged(
        notes, lambda: store().add_run(study, trial, "search", 0, 0, ok(seconds, stdout_tail="x"))
    )
    if run is None:
        return
    notes("run", run, number, key, seconds)
    if _acknowledged(notes, lambda: store().finish_trial(trial, "ok", seconds)) is not None:
        notes("end", number, seconds)


def _acknowledged(notes: Notes, action: Callable[[], Any]) -> Any:
    """What the database returns; None after an error, when the server is waited for."""
    try:
        return action()
    except AutotuneError as problem:
        notes("doubt", problem.code)
        time.sleep(RETRY_S)
        return None


def read(place: str, study: int, notes: Notes, chance: random.Random) -> None:
    """Read all the time, and note what cannot be: numbers with holes, or runs that have gone."""
    most = 0
    while True:
        try:
            way = chance.choice((Store.open_read_only, Store.open_existing, Store.open_to_read))
            with way(place) as store:
                for _ in range(chance.randrange(1, 5)):
                    orders = [run.order for run in store.runs(study, brief=True)]
                    numbers = [trial.number for trial in store.trials(study)]
                    for name, ones in (("runs", orders), ("trials", numbers)):
                        if ones != list(range(len(ones))):
                            notes("wrong", f"the {name} have the numbers {ones}")
                    if len(orders) < most:
                        notes("wrong", f"{most} runs, then {len(orders)}")
                    most = len(orders)
        except AutotuneError:
            time.sleep(RETRY_S)


ACTORS = {"writer": write, "writer by two stores": write_twice, "reader": read}


def _act(role: str, place: str, study: int, file: str, seed: int) -> NoReturn:
    """Play a role to the end of the process; without the server, begin again and again."""
    notes, chance = Notes(file), random.Random(seed)
    while True:
        try:
            ACTORS[role](place, study, notes, chance)
        except AutotuneError:
            time.sleep(RETRY_S)
        except BaseException as problem:
            notes("wrong", f"{role} ended: {problem!r}")
            os._exit(1)


def main() -> None:
    """Fork an actor for each job."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _act(job["role"], job["place"], job["study"], job["notes"], job["seed"])
        print(pid, flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main()
