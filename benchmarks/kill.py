"""kill -9 of the tuner at random moments: runs lost, orphans left, continuations that succeed.

The tuner writes each run that was reported as ended, and so as stored, to a list. A run of the list
that is not in the database, or is there with another setting or value, is an acknowledged run that
was lost. The program writes a line to a journal when it has finished: a run that is in the journal
but not in the database is lost, too, except for the one run in flight at each kill.

Usage: python -m benchmarks.kill [--kills 20] [--seed 1] [--json FILE]
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from autotune.store import Store
from benchmarks.common import options, report, run_benchmark

PROGRAM = """
import os, sys, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
time.sleep(0.1)
comm.Barrier()
if comm.rank == 0:
    with open(os.path.join(os.path.dirname(sys.argv[0]), "journal"), "a") as journal:
        journal.write(f"{os.getpid()}\\n")
"""
TUNER = """
import json, sys
from pathlib import Path
import autotune
from autotune.measurement.events import RunEnded
place, trials = Path(sys.argv[1]), int(sys.argv[2])
listed = (place / "acknowledged").open("a", buffering=1)
def acknowledge(event):
    if isinstance(event, RunEnded):
        entry = event.entry
        listed.write(json.dumps([entry.order, entry.key, entry.record.value_s]) + "\\n")
autotune.tune(
    [sys.executable, str(place / "program.py")], ranks=2, trials=trials, strategy="ga",
    store=place / "results.db", guard=False, min_gain=0.4, watch=acknowledge,
)
"""
"""The journal is not on the command line: a file there belongs to the input, and so to the study.
With a smallest gain of 40 % the search proves nothing, and goes on until it is killed."""
MANY, FEW = 1000, 3
PATIENCE_S = 120.0


def command(place: Path, trials: int) -> list[str]:
    return [sys.executable, "-c", TUNER, str(place), str(trials)]


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


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def stored(place: Path) -> dict[int, list[object]]:
    """The runs in the database as the tuner lists them, by order."""
    if not (place / "results.db").exists():
        return {}
    with Store.open(str(place / "results.db")) as store:
        runs = [run for study in store.studies() for run in store.runs(study.id)]
    return {run.order: [run.order, run.setting_key, run.record.value_s] for run in runs}


def kill_one(place: Path, rng: random.Random, environment: dict[str, str]) -> None:
    """Start or continue the search, and kill it some acknowledged runs and a moment later."""
    wanted = len(lines(place / "acknowledged")) + rng.randrange(5)
    with subprocess.Popen(
        command(place, MANY), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=place,
        env=environment,
    ) as tuner:  # fmt: skip
        give_up = time.monotonic() + PATIENCE_S
        while len(lines(place / "acknowledged")) < wanted and time.monotonic() < give_up:
            time.sleep(0.02)
        time.sleep(rng.uniform(0.0, 0.6))
        tuner.send_signal(signal.SIGKILL)


def main() -> int:
    arguments = options(__doc__)
    arguments.add_argument("--kills", type=int, default=20)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    rng = random.Random(given.seed)
    lost = unseen = orphans = shrunk = before = 0
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "program.py").write_text(PROGRAM)
        environment = os.environ | {"AUTOTUNE_LOCK_FILE": str(place / "lock")}
        for kill in range(given.kills):
            kill_one(place, rng, environment)
            deadline = time.monotonic() + 10
            while left_over(place) and time.monotonic() < deadline:
                time.sleep(0.1)
            orphans += len(left_over(place))
            runs = stored(place)
            listed = [json.loads(line) for line in lines(place / "acknowledged")]
            lost = max(lost, sum(runs.get(one[0]) != one for one in listed))
            shrunk += len(runs) < before
            before = len(runs)
            # One run per kill may end after the tuner died; the tuner could not see its end.
            unseen = max(unseen, len(lines(place / "journal")) - len(runs) - (kill + 1))
        done = subprocess.run(
            command(place, FEW), capture_output=True, text=True, cwd=place, check=False,
            env=environment,
        )  # fmt: skip
        acknowledged = len(lines(place / "acknowledged"))
        figures = {
            "kills": given.kills,
            "acknowledged_runs": acknowledged,
            "acknowledged_enough": acknowledged >= given.kills,
            "acknowledged_runs_lost": lost,
            "finished_runs_lost": unseen,
            "times_the_database_shrank": shrunk,
            "orphans": orphans,
            "continuation_exit_code": done.returncode,
            "runs_stored_at_the_end": len(stored(place)),
        }
    report("kill -9 of the tuner", figures, given.json)
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
    bad = (
        lost or unseen or shrunk or orphans or done.returncode or not figures["acknowledged_enough"]
    )
    return int(bool(bad))


if __name__ == "__main__":
    run_benchmark(main)
