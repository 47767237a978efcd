"""Schedulers as data: what a template may say, and Slurm written as one."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.api.doctor_needs import _templates
from autotune.config.find import read_file
from autotune.config.scheduler import allocation, find_scheduler, read_template, scheduler_templates
from autotune.errors import UsageError
from autotune.testing import SchedulerContract
from runner.errors import RunnerError
from runner.scheduler import Job, Scheduler
from runner.scheduler.template import TemplateScheduler
from tests.refusals import refused
from tests.servers import missing_for_slurm, slurm

SLURM = Path(__file__).parent / "data" / "slurm.toml"
WHY = missing_for_slurm()
RECORDER = """#!{python}
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:], sys.stdin.read()]) + "\\n")
print({answer!r})
"""


@pytest.fixture(scope="module")
def _slurm() -> Iterator[None]:
    with slurm() as environment, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", environment["SLURM_CONF"])
        yield


@pytest.mark.skipif(WHY is not None, reason=str(WHY))
@pytest.mark.usefixtures("_slurm")
class TestSlurmAsTemplate(SchedulerContract):
    @pytest.fixture
    def scheduler(self) -> Scheduler:
        return find_scheduler(str(SLURM))

    def test_says_why_a_job_ended(self, scheduler: Scheduler, place: Path) -> None:
        cancelled = scheduler.submit(self.job(place, "import time; time.sleep(600)"))
        self.wait(scheduler, cancelled, "running")
        scheduler.cancel([cancelled])
        self.wait(scheduler, cancelled, "ended")
        end = scheduler.end_of(cancelled)
        assert end is not None
        assert end.cause == "cancelled"


def commands(place: Path, answers: dict[str, str]) -> Path:
    """Commands that note their words, and what they print; returns the notes."""
    log = place / "calls"
    for name, answer in answers.items():
        path = place / name
        path.write_text(RECORDER.format(python=sys.executable, log=str(log), answer=answer))
        path.chmod(0o755)
    return log


@pytest.mark.parametrize(
    ("name", "answers", "state"),
    [
        (
            "pbs",
            {"qsub": "12.head", "qstat": "12.head  n  me  00:00:01 R all", "qdel": ""},
            "running",
        ),
        ("lsf", {"bsub": "Job <12> is submitted", "bjobs": "12 PEND", "bkill": ""}, "pending"),
        ("flux", {"flux": "12 SCHED"}, "pending"),
    ],
)
def test_the_commands_of_the_shipped_templates(
    name: str, answers: dict[str, str], state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each word is one argument, whatever it holds; no batch system is there to obey them."""
    log = commands(tmp_path, answers)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    scheduler = find_scheduler(name)
    job = Job(("a b", "$(x)"), "n", Path("/l o/g{x}"), 2, 5400.0, ("--q=a;b",), "/w d")
    assert scheduler.submit(job) == "12"
    assert scheduler.states(["12", "13"]) == {"12": state, "13": "ended"}
    scheduler.cancel(["12"])
    submit = log.read_text().splitlines()[0]
    for word in ("--q=a;b", "/l o/g{x}", "'a b' '$(x)'", "/w d"):
        assert word in submit
    assert any(text in submit for text in ("1:30:00", '"1:30"', "5400s"))


def test_the_nodes_of_a_job(tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("n1\nn1\nn2\n")
    seen = allocation({"FLUX_JOB_ID": "f1", "FLUX_JOB_NNODES": "3", "FLUX_JOB_SIZE": "12"})
    assert (seen.count, seen.slots, seen.several) == (3, 12, True)
    pbs = next(one.template for one in scheduler_templates() if one.template.name == "pbs")
    variables = {"PBS_JOBID": "1", "PBS_NODEFILE": str(tmp_path / "nodes")}
    theirs = TemplateScheduler(pbs).allocation_of(variables)
    assert theirs is not None
    assert (theirs.count, theirs.slots) == (2, 3)
    assert TemplateScheduler(pbs).allocation_of({}) is None
    assert allocation({}).count is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--job-name={name}", "--job-name={nmae}"),
        (r"'^(\d+)'", r"'^\d+'"),
        (r"'^(\d+)'", "'('"),
        ("(?P<state>", "(?P<stat>"),
        ('words = ["scancel", "{id}"]', 'words = ["scancel"]'),
        ('words = ["sbatch"', 'words = ["{name}"'),
        ('words = ["squeue"', 'word = ["squeue"'),
        ('title = "Slurm"', 'title = ""'),
        ('TIMEOUT = "time_limit"', 'TIMEOUT = "late"'),
        ('"--parsable"', '"a\\nb"'),
        ('marker = "SLURM_JOB_ID"', 'marker = "a b"'),
        ("[submit]", '[submit]\njob = "words"'),
    ],
)
def test_a_wrong_template_is_refused(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    text = SLURM.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with refused(UsageError, "config.invalid"):
        read_template(read_file(path))


def test_own_templates_and_what_they_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "configs" / "schedulers"
    place.mkdir(parents=True)
    text = SLURM.read_text().replace("--time={minutes}", "").replace('time = [""]\n', "")
    (place / "ours.toml").write_text(text.replace("scancel", "no-such-command"))
    monkeypatch.chdir(tmp_path)
    rows = {finding.data["name"]: finding.data for finding in _templates()}
    assert {"flux", "lsf", "ours", "pbs"} <= set(rows)
    assert not rows["pbs"]["tried"]
    assert len(rows["ours"]["lacks"]) == 2 + sum(
        shutil.which(word) is None for word in ("sbatch", "squeue", "scontrol")
    )
    with refused(RunnerError, "scheduler.missing"):
        find_scheduler("ours")
    with refused(UsageError, "scheduler.unknown"):
        find_scheduler("nobodys")
    template = next(one.template for one in scheduler_templates() if one.template.name == "ours")
    with refused(RunnerError, "scheduler.no_time"):
        TemplateScheduler(template).submit(Job(("x",), "n", tmp_path / "log", time_s=60.0))
