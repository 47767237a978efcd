"""Issue 24, point 8: what ``status`` and the submitter say of workers that fail or are lost."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from autotune.api.workers import give_up_job
from autotune.config.scheduler import find_scheduler
from autotune.store import Store
from autotune.study.study_status import JOB_VARIABLE
from runner.scheduler import Job, Scheduler
from tests.cli.conftest import SIZES, Cli
from tests.cli.test_workers import start

pytestmark = pytest.mark.mpi
PROGRAM = 'test -z "$BROKEN" || exit 3; sleep 0.2; echo seconds 0.5'
HANG = 'test -z "$OMPI_MCA_btl_self_eager_limit" || exec sleep 600; echo seconds 0.5'
"""It never ends with another setting than the default."""


@pytest.fixture
def line(mpi_shell: str, work: Path) -> list[str]:
    (work / "sizes.toml").write_text(SIZES)
    words = ["search", "--strategy", "random", "--trials", "12", "--runs", "60", "--no-guard"]
    words += ["--space", "./sizes.toml", "--metric", "seconds (.*)"]
    return [*words, "--store", "r.db", "--ranks", "1", "--", mpi_shell, PROGRAM]


def until(words: str, true: Any) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, words
        time.sleep(0.2)


def trials(work: Path) -> int:
    if not (work / "r.db").exists():
        return 0
    with Store.open(work / "r.db") as store:
        known = store.studies()
        return known[0].trials if known and store.get_study(known[0].id).request else 0


def workers(work: Path) -> int:
    if not (work / "r.db").exists():
        return 0
    with Store.open(work / "r.db") as store:
        return len(store.workers(1)) if store.studies() else 0


@contextmanager
def other_measurement(lock: Path) -> Iterator[None]:
    """A process that holds this machine lock."""
    words = ["-m", "runner.lock", "--exclusive", "--", "sh", "-c", "echo; exec sleep 600"]
    process = subprocess.Popen(
        [sys.executable, *words],
        env=os.environ | {"AUTOTUNE_LOCK_FILE": str(lock)},
        text=True,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield
    finally:
        process.terminate()
        process.communicate()


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_a_worker_that_fails_does_not_fail_the_study(
    cli: Cli, work: Path, line: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = line.index("--")
    first = start(work, 1, *line[:at], "--join", *line[at:])
    until("a first trial", lambda: trials(work))
    with monkeypatch.context() as second:
        second.setenv("BROKEN", "1")
        said = cli("worker", "1", "--store", "r.db")
    assert said.code == 1, said.text
    assert first.poll() is None, first.communicate()
    data = json.loads(cli("status", "1", "--store", "r.db", "--json", "-").out)
    assert data["status"] in ("searching", "proving")
    assert [worker["pid"] for worker in data["workers"]] == [first.pid]
    with Store.open("r.db") as store:
        assert store.get_study(1).status == "new"
    [listed] = json.loads(cli("studies", "--store", "r.db", "--json", "-").out)
    assert listed["status"] in ("searching", "proving")

    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    data = json.loads(cli("status", "1", "--store", "r.db", "--json", "-").out)
    assert [worker["pid"] for worker in data["lost"]] == [first.pid]
    told = cli("status", "1", "--store", "r.db").out
    assert f":{first.pid}," in told
    assert f"autotune worker {data['study']}" in told  # data


def test_a_worker_that_waits_for_the_machine_is_active(
    cli: Cli, work: Path, line: list[str]
) -> None:
    at = line.index("--")
    with other_measurement(work / "lock1"):
        first = start(work, 1, *line[:at], "--join", *line[at:])
        until("a worker", lambda: workers(work))
        data = json.loads(cli("status", "1", "--store", "r.db", "--json", "-").out)
        printed = cli("status", "1", "--store", "r.db").out
        os.kill(first.pid, signal.SIGTERM)
        first.communicate()
    assert data["status"] == "waiting"
    assert [(row["pid"], row["state"]) for row in data["workers"]] == [
        (first.pid, "waiting_for_lock")
    ]
    assert f":{first.pid} " in printed
    assert f"autotune worker {data['study']}" not in printed  # data
    gone = json.loads(cli("status", "1", "--store", "r.db", "--json", "-").out)
    assert (gone["workers"], gone["lost"], gone["status"]) == ([], [], "new")


def queue(folder: Path) -> Scheduler:
    """A scheduler of three scripts; a job is in a process namespace of its own."""
    elsewhere = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        elsewhere.append("--map-root-user")
    if subprocess.run([*elsewhere, "true"], check=False, capture_output=True).returncode:
        pytest.skip("a process namespace cannot be made here (unshare)")
    scripts = {
        "submit": f'cat > job; setsid {" ".join(elsewhere)} sh job > "$1" 2>&1 & echo $!',
        "states": 'for n; do grep -qs "^State:.[^ZX]" /proc/$n/status && echo "$n R"; done; :',
        "cancel": 'kill -KILL "$1"',
    }
    for name, text in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    (folder / "queue.toml").write_text(
        f"""title = "Queue"
[submit]
words = ["{folder}/submit", "{{log}}"]
id = '^(\\d+)'
[state]
words = ["{folder}/states", "{{ids}}"]
pattern = '^(?P<id>\\d+) (?P<state>\\w)'
pending = []
running = ["R"]
[cancel]
words = ["{folder}/cancel", "{{id}}"]
"""
    )
    return find_scheduler(str(folder / "queue.toml"))


def test_the_trial_of_an_ended_job_is_free_at_once(work: Path, line: list[str]) -> None:
    """Nobody sees a process of another namespace die, no more than one of another host."""
    scheduler = queue(work)
    at = line.index("--")
    words = [*line[:at], "--join", *line[at:-1], HANG]
    variables = {JOB_VARIABLE: "mark", "AUTOTUNE_LOCK_FILE": str(work / "lock1")}
    job = scheduler.submit(
        Job((sys.executable, "-m", "autotune", *words), "worker", work / "log", cwd=str(work),
            env=variables)
    )  # fmt: skip
    with Store.open("r.db") as store:
        try:
            until("a running trial", lambda: store.studies() and store.running_trials(1))
        finally:
            scheduler.cancel([job])
        until("the end of the job", lambda: scheduler.states([job]) == {job: "ended"})
        study, running = store.get_study(1), store.running_trials(1)
        give_up_job(store, study, "mark of another job")
        assert store.recover(1, is_restart=False) == []
        assert len(store.workers(1)) == 1
        give_up_job(store, study, "mark")
        assert [t.id for t in store.recover(1, is_restart=False)] == [t.id for t in running]
        assert store.workers(1) == []


@pytest.mark.slow
def test_the_submitter_hears_of_a_lost_worker(library: object, work: Path, line: list[str]) -> None:
    words = line[1:]
    words[words.index("12")] = "1"
    words[words.index("60")] = "32"
    words[:0] = ["--scheduler", "local", "--workers", "2"]
    submitter = subprocess.Popen(
        [sys.executable, "-m", "autotune", "search", *words],
        cwd=work, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=os.environ | {"AUTOTUNE_LOCK_FILE": str(work / "lock")},
    )  # fmt: skip
    assert submitter.stderr is not None
    matches = (re.search(r"submitted to local: (\d+), (\d+)", line) for line in submitter.stderr)
    found = next(filter(None, matches), None)
    assert found is not None
    until("a first trial", lambda: trials(work))
    os.kill(int(found[1]), signal.SIGKILL)
    err = submitter.communicate(timeout=200)[1]
    assert submitter.returncode == 0, err
    assert found[1] in err
    assert re.findall(r"worker(\d)\.log\)", err) == ["0"], "the log of the lost one"
