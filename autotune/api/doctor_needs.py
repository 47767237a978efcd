"""The checks of ``autotune doctor`` for what only some commands need.

They are a folder for compiled code, interpreters with mpi4py, schedulers, PostgreSQL, testbeds and
ssh.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys

from sqlalchemy import create_engine
from sqlalchemy.exc import SQLAlchemyError

from autotune.api.doctor_finding import GOOD, NOTE, DoctorFinding
from autotune.config.scheduler import scheduler_templates
from autotune.errors import UsageError
from autotune.store.location import VARIABLE, Location, locate
from runner import files
from runner.errors import RunnerError
from runner.files.private_files import private_folder
from runner.passwords import mask_password
from runner.scheduler.base import output_of
from runner.testbed.model import missing_needs

_INTERPRETERS = ("python3", "python")
_SLURM = ("sbatch", "squeue", "scancel")
_PATIENCE_S = 20


def needs(quick: bool) -> list[DoctorFinding]:
    """One finding for each check that only some commands need; ``quick`` starts no program."""
    return [
        *_cache(),
        *([] if quick else _interpreters()),
        _slurm(quick),
        *_templates(),
        _postgres(quick),
        _testbed(),
        _remote(),
    ]


def _cache() -> list[DoctorFinding]:
    """Whether compiled code can be kept; nothing if it can."""
    try:
        private_folder(files.cache())
        return []
    except (OSError, RunnerError) as problem:
        words = f"compiled code cannot be kept in {files.cache()}"
        return [DoctorFinding(NOTE, "cache.unusable", "cache", words, str(problem))]


def _interpreters() -> list[DoctorFinding]:
    """The Pythons that ``-- python3 SCRIPT`` would start: each must have an mpi4py of its own."""
    pythons = {place for name in _INTERPRETERS if (place := shutil.which(name))}
    places = sorted({sys.executable, *pythons}, key=lambda place: place != sys.executable)
    having = [place for place in places if _has_mpi4py(place)]
    lacking = [place for place in places if place not in having]
    if not having:
        words = f"no mpi4py in {', '.join(lacking)}"
        advice = (
            "needed for MPI programs in Python: pip install mpi4py in the environment in "
            "which they run"
        )
        return [DoctorFinding(NOTE, "python.mpi4py", "Python programs", words, advice)]
    findings = [
        DoctorFinding(GOOD, "python.mpi4py", "Python programs", f"mpi4py in {', '.join(having)}")
    ]
    if lacking:
        advice = (
            f"start Python programs that use MPI with {having[0]}, or pip install mpi4py "
            "in the others"
        )
        findings.append(
            DoctorFinding(
                NOTE, "python.others", "other Pythons", f"no mpi4py in {', '.join(lacking)}", advice
            )
        )
    return findings


def _has_mpi4py(python: str) -> bool:
    words = [
        python,
        "-c",
        "import importlib.util as u; raise SystemExit(not u.find_spec('mpi4py'))",
    ]
    try:
        outcome = subprocess.run(
            words, capture_output=True, timeout=_PATIENCE_S, check=False, cwd=os.sep
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return outcome.returncode == 0


def _slurm(quick: bool) -> DoctorFinding:
    lacking = [word for word in _SLURM if shutil.which(word) is None]
    if lacking:
        words = f"not installed ({', '.join(lacking)} not found)"
        return DoctorFinding(
            NOTE,
            "scheduler.slurm",
            "Slurm",
            words,
            "needed only for --scheduler slurm: use a login node of the cluster; "
            "--scheduler local needs nothing",
        )
    if quick:
        return DoctorFinding(
            GOOD, "scheduler.slurm", "Slurm", "commands found; not tried (--quick)"
        )
    try:
        answer = output_of(["sinfo", "--noheader", "--format", "%P %D"])
    except RunnerError as problem:
        reason = " ".join(str(problem).splitlines()[0].split())[:200]
        return DoctorFinding(
            NOTE,
            "scheduler.slurm",
            "Slurm",
            f"installed, but no controller answers: {reason}",
            "needed only for --scheduler slurm: check that slurmctld runs and that "
            "/etc/slurm/slurm.conf or SLURM_CONF names it",
        )
    partitions = ", ".join(" ".join(line.split()) for line in answer.splitlines()) or "none"
    return DoctorFinding(
        GOOD, "scheduler.slurm", "Slurm", f"partitions and their nodes: {partitions}"
    )


def _templates() -> list[DoctorFinding]:
    """The templates of schedulers, and what each of them lacks here."""
    findings = []
    for one in scheduler_templates():
        missing = [word for word in one.template.programs if shutil.which(word) is None]
        lacks = [f"{word} not found" for word in missing] + one.template.lacks
        tried = "" if one.tried else "; never run there"
        words = f"template {one.template.name} ({one.path}){tried}"
        words += f"; lacks: {', '.join(lacks)}" if lacks else "; complete"
        words += f"; ranks start with: {shlex.join(one.template.launch)}"
        data = {"name": one.template.name, "lacks": lacks, "tried": one.tried}
        advice = f"needed only for --scheduler {one.template.name}" if lacks else ""
        kind = NOTE if lacks else GOOD
        findings.append(
            DoctorFinding(kind, "scheduler.template", one.template.title, words, advice, data)
        )
    return findings


def _postgres(quick: bool) -> DoctorFinding:
    what = "PostgreSQL"
    if importlib.util.find_spec("psycopg") is None:
        return DoctorFinding(
            NOTE,
            "store.postgres",
            what,
            "the Python package psycopg is missing",
            "needed only if several nodes write into one database: "
            'pip install "mpi-autotune[postgres]"',
        )
    origin = "AUTOTUNE_STORE" if os.environ.get(VARIABLE) else "the site"
    try:
        place = locate(None)
    except UsageError as problem:
        return DoctorFinding(
            NOTE,
            "store.postgres",
            what,
            f"{origin}: {problem}",
            "set it to a path or the URL of a server",
        )
    if place.path is not None:
        words = (
            "available (--store postgresql://USER@HOST/DATABASE); at present results go to a file"
        )
        return DoctorFinding(GOOD, "store.postgres", what, words)
    if not quick and (silent := _unreachable(place)):
        advice = "check that the server runs, and the host, user and password in " + origin
        return DoctorFinding(
            NOTE, "store.postgres", what, f"{place.label} does not answer: {silent}", advice
        )
    return DoctorFinding(GOOD, "store.postgres", what, f"{origin} names {place.label}")


def _unreachable(place: Location) -> str:
    """Why the database server does not answer; "" if it answers."""
    try:
        with create_engine(place.url, connect_args={"connect_timeout": 5}).connect():
            return ""
    except SQLAlchemyError as problem:
        return mask_password(" ".join(str(getattr(problem, "orig", None) or problem).split()))[:200]


def _testbed() -> DoctorFinding:
    lacking = missing_needs()
    if not lacking:
        return DoctorFinding(
            GOOD, "testbed.needs", "testbed", "can be started (autotune testbed up)"
        )
    return DoctorFinding(
        NOTE,
        "testbed.needs",
        "testbed",
        f"cannot be started; it needs {'; '.join(lacking)}",
        "needed only for --cluster testbed",
    )


def _remote() -> DoctorFinding:
    place = shutil.which("ssh")
    if place:
        return DoctorFinding(GOOD, "remote.ssh", "ssh", place)
    return DoctorFinding(
        NOTE,
        "remote.ssh",
        "ssh",
        "not found",
        "needed only for clusters whose launch options name hosts, outside of a batch "
        "job: install openssh-client",
    )
