"""The tuner itself is killed, interrupted, and deprived of its database."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.store import Store
from tests.servers import kill_postgres, postgres, postgres_tool, start_postgres

pytestmark = [pytest.mark.chaos, pytest.mark.mpi]
KILLS = int(os.environ.get("AUTOTUNE_CHAOS_KILLS", "20"))
"""200 for a whole night."""
PROGRAM = """
import os, sys, time
from mpi4py import MPI
time.sleep(0.1)
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 0:
    with open(sys.argv[1], "a") as journal:
        journal.write(f"{os.getpid()}\\n")
"""


def command(place: Path, mark: str, store: str, trials: int = 40) -> list[str]:
    return [
        sys.executable, "-m", "autotune", "search", "--ranks", "2", "--trials", str(trials),
        "--store", store, "--strategy", "ga", "--no-guard", "--min-gain", "40", "--",
        sys.executable, "-c", PROGRAM, str(place / "journal"), mark,
    ]  # fmt: skip


def start(place: Path, mark: str, store: str, trials: int = 40) -> subprocess.Popen[str]:
    environment = os.environ | {"AUTOTUNE_LOCK_FILE": str(place / "lock")}
    return subprocess.Popen(
        command(place, mark, store, trials), cwd=place, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def finished(place: Path) -> int:
    journal = place / "journal"
    return len(journal.read_text().splitlines()) if journal.exists() else 0


def stored(store: str) -> int:
    with Store.open(store) as opened:
        return sum(len(opened.runs(study.id)) for study in opened.studies())


def test_killed_at_random_moments(tmp_path: Path, mark: str, fault: Callable[[str], None]) -> None:
    source, store, before = random.Random(1), str(tmp_path / "r.db"), 0
    for number in range(KILLS):
        tuner = start(tmp_path, mark, store, trials=400)
        time.sleep(source.uniform(0.3, 4.0))
        tuner.kill()
        tuner.communicate()
        fault("tuner killed")
        if not Path(store).exists():
            continue
        now = stored(store)
        assert now >= before
        # The run that was under way at each kill may end unseen; no other is lost.
        assert finished(tmp_path) - now <= number + 1
        before = now
    done = start(tmp_path, mark, store, trials=3)
    _, err = done.communicate(timeout=300)
    assert done.returncode == 0, err
    assert "Traceback" not in err


@pytest.mark.parametrize("seed", range(6))
def test_interrupted_twice_at_any_moment(
    tmp_path: Path, mark: str, seed: int, fault: Callable[[str], None]
) -> None:
    source, store = random.Random(seed), str(tmp_path / "r.db")
    tuner = start(tmp_path, mark, store)
    time.sleep(source.uniform(0.2, 6.0))
    tuner.send_signal(signal.SIGINT)
    time.sleep(source.choice([0.0, 0.05, 0.5]))
    if tuner.poll() is None:
        tuner.send_signal(signal.SIGINT)
    fault("interrupted twice")
    _, err = tuner.communicate(timeout=60)
    assert tuner.returncode in (130, 0, -signal.SIGINT), err
    assert "Traceback" not in err
    again = start(tmp_path, mark, store, trials=2)
    _, err = again.communicate(timeout=300)
    assert again.returncode == 0, err


def test_two_tuners_on_one_node_take_turns(
    tmp_path: Path, mark: str, fault: Callable[[str], None]
) -> None:
    fault("two tuners at once")
    first = start(tmp_path, mark, str(tmp_path / "a.db"), trials=3)
    second = start(tmp_path, mark, str(tmp_path / "b.db"), trials=3)
    errs = [tuner.communicate(timeout=300)[1] for tuner in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), errs
    times = []
    for name in ("a.db", "b.db"):
        with Store.open(tmp_path / name) as store:
            runs = store.runs(store.studies()[0].id)
            begun = [run.record.started_at for run in runs]
            times.append((min(begun), max(begun)))
    assert times[0][1] < times[1][0] or times[1][1] < times[0][0]


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system is mounted by root only")
def test_the_disk_is_full(tmp_path: Path, mark: str, fault: Callable[[str], None]) -> None:
    fault("disk full")
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(small)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount: {mounted.stderr.decode()}")
    try:
        store = str(small / "r.db")
        tuner = start(tmp_path, mark, store, trials=200)
        _, err = tuner.communicate(timeout=300)
        assert tuner.returncode == 1, err
        assert "[store.disk_full]" in err
        assert "Traceback" not in err
        subprocess.run(["mount", "-o", "remount,size=20m", str(small)], check=True)
        kept = stored(store)
        again = start(tmp_path, mark, store, trials=3)
        _, err = again.communicate(timeout=300)
        assert again.returncode == 0, err
        assert stored(store) >= kept
        subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
        fault("database read-only")
        refused = start(tmp_path, mark, store, trials=30)
        _, err = refused.communicate(timeout=60)
        assert refused.returncode in (1, 2)
        assert "Traceback" not in err
        assert "writ" in err
    finally:
        subprocess.run(["umount", "-l", str(small)], check=False)


@pytest.mark.skipif(postgres_tool("initdb") is None, reason="PostgreSQL is not installed")
def test_the_database_server_goes(tmp_path: Path, mark: str, fault: Callable[[str], None]) -> None:
    """Killed in the middle; the tuner ends with a message, and goes on with the next server."""
    fault("database server killed")
    with postgres() as url:
        tuner = start(tmp_path, mark, url)
        end = time.monotonic() + 60
        while time.monotonic() < end and (not finished(tmp_path) or stored(url) < 3):
            time.sleep(0.2)
        kill_postgres(url)
        _, err = tuner.communicate(timeout=120)
        assert tuner.returncode in (1, 2), err
        assert "Traceback" not in err
        assert "PostgreSQL" in err or "database" in err
        start_postgres(url)
        kept = stored(url)
        again = start(tmp_path, mark, url, trials=2)
        _, err = again.communicate(timeout=300)
        assert again.returncode == 0, err
        assert stored(url) >= kept >= 3


def test_the_database_is_locked(tmp_path: Path, mark: str, fault: Callable[[str], None]) -> None:
    """By somebody who never lets go: a message after the patience, nothing lost."""
    import sqlite3

    fault("database locked")
    store = str(tmp_path / "r.db")
    first = start(tmp_path, mark, store, trials=1)
    first.communicate(timeout=300)
    holder = sqlite3.connect(store, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        tuner = start(tmp_path, mark, store, trials=4)
        _, err = tuner.communicate(timeout=120)
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    assert tuner.returncode == 1, err
    assert "[store.locked]" in err
    shutil.copy(store, tmp_path / "copy.db")
    again = start(tmp_path, mark, store, trials=2)
    _, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
