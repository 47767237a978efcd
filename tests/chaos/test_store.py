"""Writers, readers and the server are killed at random moments; no acknowledged write is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from autotune.errors import AutotuneError
from autotune.store import Store
from tests.contract.store_samples import key
from tests.servers import (
    kill_postgres,
    missing_for_postgres,
    postgres,
    server_processes,
    start_postgres,
)
from tests.started import rank_environment

pytestmark = pytest.mark.chaos
FAULTS = 5 * int(os.environ.get("AUTOTUNE_CHAOS_KILLS", "20")) // 2
"""For each database: 500 in a whole night."""
CREW = ("writer", "writer", "writer by two stores", "reader")
"""The processes that use the database at any time."""
ROUND = 50
"""Faults between two looks at the history of the acknowledged writes."""
SERVER_EVERY = 10
"""One fault in so many is one of the server, where there is one."""
LONGEST_S = {"sqlite": 0.06, "postgresql": 0.3}
"""Longest time between two faults; a server has to be connected to first."""
WHY = missing_for_postgres()


@dataclass
class Crew:
    """The processes that use a database, and what was acknowledged to them."""

    place: str
    study: int
    folder: Path
    chance: random.Random
    nursery: subprocess.Popen[str]
    living: dict[int, str] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    def start(self, role: str) -> None:
        number = next(self.numbers)
        job = {
            "role": role, "place": self.place, "study": self.study, "seed": number,
            "notes": str(self.folder / f"{number}.notes"),
        }  # fmt: skip
        assert self.nursery.stdin is not None
        assert self.nursery.stdout is not None
        print(json.dumps(job), file=self.nursery.stdin, flush=True)
        self.living[int(self.nursery.stdout.readline())] = role

    def kill(self, pid: int) -> str:
        """Kill a process as it stands, and wait until it has gone."""
        with suppress(ProcessLookupError):  # It has noted why it ended.
            os.kill(pid, signal.SIGKILL)
        while Path(f"/proc/{pid}").exists():
            time.sleep(0.001)
        return self.living.pop(pid)

    def notes(self) -> dict[str, list[list[Any]]]:
        """What all of them have noted so far, by kind."""
        noted: dict[str, list[list[Any]]] = {}
        for path in self.folder.glob("*.notes"):
            for line in path.read_text().splitlines(keepends=True):
                if line.endswith("\n"):
                    kind, *facts = json.loads(line)
                    noted.setdefault(kind, []).append(facts)
        return noted


@contextmanager
def crew(place: str, folder: Path, chance: random.Random) -> Iterator[Crew]:
    with Store.open(place) as store:
        study = store.study(key()).id
    with subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.store_actors"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=rank_environment(),
        cwd=Path(__file__).parents[2],
    ) as nursery:  # fmt: skip
        one = Crew(place, study, folder, chance, nursery)
        try:
            yield one
        finally:
            for pid in list(one.living):
                one.kill(pid)
            assert nursery.stdin is not None
            nursery.stdin.close()


def _opened(place: str) -> Store:
    """The database; a server that was just killed is waited for."""
    end = time.monotonic() + 60
    while True:
        try:
            return Store.open(place)
        except AutotuneError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def check(crew: Crew, faults: int) -> Counter[str]:
    """Compare the database with the history; ``faults``: writes that nobody saw the end of."""
    noted = crew.notes()
    assert not noted.get("wrong"), noted["wrong"][:5]
    with _opened(crew.place) as store:
        assert store.examine(quick=False, reused="reused") == []
        runs = {run.id: run for run in store.runs(crew.study)}
        trials = store.trials(crew.study)
        documents = store.documents(crew.study, "plan:")
    assert [trial.number for trial in trials] == list(range(len(trials)))
    assert sorted(run.order for run in runs.values()) == list(range(len(runs)))
    assert len({trial.key for trial in trials}) == len(trials)
    for number, setting in noted.get("trial", []):
        assert trials[number].key == setting
    for number, seconds in noted.get("end", []):
        assert (trials[number].state, trials[number].estimate) == ("ok", seconds)
    for run_id, number, setting, seconds in noted.get("run", []):
        run = runs[run_id]
        assert (run.trial, run.setting_key, run.record.wall_s) == (number, setting, seconds)
    for name, document in noted.get("document", []):
        assert documents[name] == document
    in_doubt = faults + len(noted.get("doubt", []))
    assert len(runs) - len(noted.get("run", [])) <= in_doubt
    assert len(trials) - len(noted.get("trial", [])) <= in_doubt
    return Counter({kind: len(facts) for kind, facts in noted.items()})


def endure(
    crew: Crew,
    faults: int,
    fault: Callable[[str], None],
    longest_s: float,
    server: Callable[[random.Random], str] | None = None,
) -> None:
    """Kill one process after the other, and look at the history every so often."""
    for number in range(faults):
        while len(crew.living) < len(CREW):
            left = Counter(CREW) - Counter(crew.living.values())
            crew.start(next(iter(left)))
        time.sleep(crew.chance.uniform(0.0, longest_s))
        if server is not None and number % SERVER_EVERY == SERVER_EVERY - 1:
            fault(server(crew.chance))
        else:
            fault(f"{crew.kill(crew.chance.choice(list(crew.living)))} killed")
        if number % ROUND == ROUND - 1 or number == faults - 1:
            for pid in list(crew.living):
                fault(f"{crew.kill(pid)} killed")
            acknowledged = check(crew, 2 * (number + 1))
            assert acknowledged["run"] > number // 10


def test_sqlite(tmp_path: Path, fault: Callable[[str], None]) -> None:
    chance = random.Random(72)
    with crew(str(tmp_path / "results.db"), tmp_path, chance) as one:
        endure(one, FAULTS, fault, LONGEST_S["sqlite"])


@pytest.mark.skipif(WHY is not None, reason=str(WHY))
def test_postgresql(tmp_path: Path, fault: Callable[[str], None]) -> None:
    chance = random.Random(72)
    with postgres() as url, crew(url, tmp_path, chance) as one:

        def kill_server(chance: random.Random) -> str:
            if chance.random() < 0.5:
                os.kill(chance.choice(server_processes(url)), signal.SIGKILL)
                return "server process killed"
            kill_postgres(url)
            start_postgres(url)
            return "server killed"

        endure(one, FAULTS, fault, LONGEST_S["postgresql"], kill_server)
