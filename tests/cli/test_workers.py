"""Several workers on one study, with real launches."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autotune.store import Store
from autotune.workers.worker_request import requests_of
from autotune.workers.worker_trust import read_key
from runner.scheduler import find
from tests.cli.conftest import SIZES, Cli
from tests.contract.store_samples import key
from tests.servers import (
    missing_for_postgres,
    missing_for_slurm,
    new_schema,
    postgres_server,
    slurm,
)

pytestmark = pytest.mark.mpi
NO_CLUSTER = missing_for_slurm() or missing_for_postgres()
TRIALS = 4
OPTIONS = (
    *("search", "--no-guard", "--strategy", "ga"),
    *("--trials", str(TRIALS), "--min-gain", "40", "--runs", "44"),
)
SEARCH = (*OPTIONS, "--app", "jacobi3d", "--input", "tiny")
# The first run of each worker waits for one of the other. On a busy machine the start of a command
# takes a minute; a worker that does not wait so long makes all trials alone.
MEETING = """
: > met-${AUTOTUNE_RUN_ID%-*}
for pause in $(seq 1800); do
    set -- met-*
    test $# -lt 2 || break
    sleep 0.1
done
echo seconds 0.5
"""


def stored_runs(place: str) -> dict[int, float]:
    """The runs of a database by their numbers, with their wall times; empty before there is one."""
    if not Path(place).exists():
        return {}
    with Store.open(place) as store:
        studies = store.studies()
        return {run.id: run.record.wall_s for study in studies for run in store.runs(study.id)}


def start(work: Path, number: int, *words: str) -> subprocess.Popen[str]:
    """A worker that measures whatever others do: it has a machine lock of its own."""
    environment = os.environ | {"AUTOTUNE_LOCK_FILE": str(work / f"lock{number}")}
    return subprocess.Popen(
        [sys.executable, "-m", "autotune", *words],
        cwd=work, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_two_workers_share_a_study(
    cli: Cli, mpi_shell: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The figure is always the same: nothing is to be proven.
    figure = ("--metric", "seconds (.*)", "--ranks", "1")
    (work / "sizes.toml").write_text(SIZES)
    space = ("--space", "./sizes.toml")
    words = (*OPTIONS, *figure, *space, "--join", "--store", "r.db", "--json", "r.json")
    first = start(work, 1, *words, "--", mpi_shell, MEETING)
    end = time.monotonic() + 180
    study = ""
    while not study and time.monotonic() < end:
        time.sleep(0.1)
        with Store.open("r.db") as store:
            known = store.studies()
            if known and store.get_study(known[0].id).request:
                study = known[0].hash
    assert study
    second = start(work, 2, "worker", study[:12], "--no-guard", "--store", "r.db")
    # Somebody else, who can read and write the database, too.
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_DATA_HOME", str(work / "other"))
        third = cli("worker", study[:12], "--store", "r.db")
    assert third.code == 2, third.text
    assert "[worker.untrusted_request]" in third.err
    outs = [p.communicate(timeout=400) for p in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), outs
    assert len(list(work.glob("met-*"))) == 2, outs
    with Store.open("r.db") as store:
        found = store.find_study(study)
        trials = store.trials(found.id)
        runs = store.runs(found.id)
    assert found.result is not None
    own = read_key()
    [request] = requests_of(found.request)
    assert own is not None
    assert own.is_author(request, study)
    assert found.result["trials"] == TRIALS
    assert [t.number for t in trials] == list(range(TRIALS))
    assert len({t.key for t in trials}) == TRIALS
    assert all(t.state != "running" for t in trials)
    assert {t.owner.pid for t in trials} <= {first.pid, second.pid}
    assert [r.order for r in runs] == list(range(len(runs)))
    shown = json.loads(cli("status", study[:12], "--store", "r.db", "--json", "-").out)
    assert shown["status"] == found.status
    assert shown["running"] == []


@pytest.mark.slow
def test_the_trial_of_a_killed_worker_is_taken_over(cli: Cli, library: object, work: Path) -> None:
    first = start(work, 1, *SEARCH, "--join", "--store", "r.db")
    end = time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(0.2)
        with Store.open("r.db") as store:
            known = store.studies()
            if known and any(t.state == "running" for t in store.trials(known[0].id)):
                break
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    outcome = cli("worker", str(known[0].id), "--no-guard", "--store", "r.db")
    assert outcome.code == 0, outcome.err
    with Store.open("r.db") as store:
        trials = store.trials(known[0].id)
        assert store.get_study(known[0].id).result is not None
    assert len(trials) == TRIALS
    assert all(t.state != "running" for t in trials)


@pytest.mark.slow
def test_workers_as_jobs_of_this_machine(cli: Cli, library: object, work: Path) -> None:
    outcome = cli(
        *SEARCH, "--scheduler", "local", "--workers", "2", "--store", "r.db", "--json", "r.json"
    )
    assert outcome.code == 0, outcome.err + "".join(p.read_text() for p in work.glob("*.log"))
    assert json.loads((work / "r.json").read_text())["trials"] == TRIALS
    again = cli(*SEARCH, "--scheduler", "local", "--workers", "2", "--store", "r.db")
    assert "jacobi3d" in again.out


@pytest.mark.slow
@pytest.mark.skipif(NO_CLUSTER is not None, reason=str(NO_CLUSTER))
def test_workers_as_jobs_of_slurm(
    cli: Cli, library: object, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one node takes the two jobs in turn; they share nothing but the database server."""
    monkeypatch.setenv("AUTOTUNE_LOCK_FILE", str(work / "lock"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    with slurm() as environment, postgres_server() as server, new_schema(server) as url:
        monkeypatch.setenv("SLURM_CONF", environment["SLURM_CONF"])
        outcome = cli(
            *(*SEARCH, "--scheduler", "slurm", "--workers", "2", "--walltime", "10m"),
            *("--store", url, "--json", "r.json"),
        )
        logs = {p.name: p.read_text() for p in sorted(work.glob("*.log"))}
        assert outcome.code == 0, f"{outcome.err}{logs}"
        assert re.search(r"slurm: \d+, \d+\b", outcome.err)
        result = json.loads((work / "r.json").read_text())
        with Store.open(url) as store:
            study = store.find_study(result["study"])
            trials, runs = store.trials(study.id), store.runs(study.id)
        left = find("slurm").states([str(n) for n in range(1, 9)])
    assert result["trials"] == len(trials) == 4
    assert all(t.state != "running" for t in trials)
    assert all(run.record.world_size is not None for run in runs if run.record.valid)
    assert {run.record.place for run in runs} == {socket.gethostname().partition(".")[0]}
    assert set(left.values()) == {"ended"}
    assert not any("Traceback" in text for text in logs.values())


@pytest.mark.slow
@pytest.mark.skipif(missing_for_slurm() is not None, reason=str(missing_for_slurm()))
def test_the_time_limit_of_a_job_is_said(
    mpi_shell: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm's shortest limit is a minute."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    words = ("--metric", "seconds (.*)", "--ranks", "1", "--scheduler", "slurm")
    program = (mpi_shell, "sleep 100; echo seconds 0.5")
    with slurm() as environment:
        monkeypatch.setenv("SLURM_CONF", environment["SLURM_CONF"])
        search = start(
            work, 1, *OPTIONS, *words, "--walltime", "1m", "--store", "r.db", "--", *program
        )
        assert search.stderr is not None
        lines = iter(search.stderr.readline, "")
        told = next((line for line in lines if "00:01:00" in line), "")
        search.send_signal(signal.SIGINT)
        search.communicate(timeout=60)
        job = re.search(r"worker (\d+)", told)
        assert job is not None
        end = find("slurm").end_of(job[1])
    assert end is not None
    assert (end.cause, end.limit) == ("time_limit", "00:01:00")


@pytest.mark.slow
@pytest.mark.skipif(missing_for_slurm() is not None, reason=str(missing_for_slurm()))
def test_another_worker_goes_on_for_a_cancelled_one(
    mpi_shell: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the user or the administrator (``scancel``), in a run: nothing that was stored is lost."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    words = ("--metric", "seconds (.*)", "--ranks", "1", "--scheduler", "slurm")
    program = (mpi_shell, "sleep 1; echo seconds 0.5")
    with slurm() as environment:
        monkeypatch.setenv("SLURM_CONF", environment["SLURM_CONF"])
        search = start(
            *(work, 1, *OPTIONS, *words, "--workers", "2", "--walltime", "5m"),
            *("--store", "r.db", "--json", "r.json", "--", *program),
        )
        assert search.stderr is not None
        job = next(filter(None, (re.search(r"slurm: (\d+)", line) for line in search.stderr)))[1]
        place = str(work / "r.db")
        while not (before := stored_runs(place)):
            assert search.poll() is None
            time.sleep(0.2)
        subprocess.run(["scancel", job], check=True)
        _, err = search.communicate(timeout=120)
        end = find("slurm").end_of(job)
    assert search.returncode == 0, err
    assert end is not None
    assert end.cause == "cancelled"
    after = stored_runs(place)
    assert after.items() >= before.items()
    assert len(after) > len(before)


def test_what_cannot_be(cli: Cli, library: object, work: Path) -> None:
    with Store.open("r.db") as store:
        store.study(key())
    for words, code in (
        (("worker", "1"), "worker.study_not_shared"),
        (("worker", "abcd1234"), "study.unknown"),
        ((*SEARCH, "--scheduler", "none-such"), "scheduler.unknown"),
        ((*SEARCH, "--scheduler", "local", "--nodes-per-trial", "2"), "scheduler.one_node"),
    ):
        outcome = cli(*words, "--store", "r.db")
        assert outcome.code in (1, 2)
        assert f"[{code}]" in outcome.err + outcome.out
    gone = cli("status", "--store", "new.db")
    assert gone.code == 2
    assert "[store.missing]" in gone.err
