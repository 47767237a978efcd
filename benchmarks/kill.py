"""kill -9 of the tuner at random moments: runs lost, orphans left, continuations that succeed.

The program writes a line to a journal when it has finished. A run that is in the journal but not in
the database is lost; the one run in flight at each kill does not count.

Usage: python -m benchmarks.kill [--kills 20] [--seed 1] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from autotune.store import Store
from benchmarks.common import report, run_benchmark

PROGRAM = """
import os, sys, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
time.sleep(0.2)
comm.Barrier()
if comm.rank == 0:
    with open(sys.argv[1], "a") as journal:
        journal.write(f"{os.getpid()}\\n")
"""


def command(place: Path) -> list[str]:
    return [
        sys.executable, "-m", "autotune", "search", "--ranks", "2", "--trials", "60",
        "--store", str(place / "results.db"), "--strategy", "ga", "--no-guard", "--",
        sys.executable, str(place / "program.py"), str(place / "journal"),
    ]  # fmt: skip


def left_over(place: Path) -> list[int]:
    """Processes that still carry the program's path on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(place / "program.py").encode() in words:
                found.append(int(entry.name))
    return found


def counts(place: Path) -> tuple[int, int]:
    """Numbers of finished runs in the journal and of runs in the database."""
    journal = place / "journal"
    finished = len(journal.read_text().splitlines()) if journal.exists() else 0
    if not (place / "results.db").exists():
        return finished, 0
    with Store.open(str(place / "results.db")) as store:
        return finished, sum(len(store.runs(s.id)) for s in store.studies())


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kills", type=int, default=20)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--json")
    given = arguments.parse_args()
    rng = random.Random(given.seed)
    lost = orphans = shrunk = 0
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "program.py").write_text(PROGRAM)
        stored_before = 0
        for _ in range(given.kills):
            with subprocess.Popen(
                command(place), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=place
            ) as tuner:
                time.sleep(rng.uniform(0.5, 6.0))
                tuner.send_signal(signal.SIGKILL)
            deadline = time.monotonic() + 10
            while left_over(place) and time.monotonic() < deadline:
                time.sleep(0.1)
            orphans += len(left_over(place))
            finished, stored = counts(place)
            shrunk += stored < stored_before
            stored_before = stored
            # One run per kill may end after the tuner died; the tuner could not see its end.
            lost = max(lost, finished - stored - (_ + 1))
        done = subprocess.run(
            command(place), capture_output=True, text=True, cwd=place, check=False
        )
        finished, stored = counts(place)
    report(
        "kill -9 of the tuner",
        {
            "kills": given.kills,
            "finished_runs_lost": max(lost, 0),
            "times_the_database_shrank": shrunk,
            "orphans": orphans,
            "continuation_exit_code": done.returncode,
            "runs_stored_at_the_end": stored,
        },
        given.json,
    )
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    run_benchmark(main)
