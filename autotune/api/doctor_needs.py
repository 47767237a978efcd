"""What only some commands need: interpreters with mpi4py, Slurm, PostgreSQL, a testbed, ssh."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys

from sqlalchemy import create_engine
from sqlalchemy.exc import SQLAlchemyError

from autotune.api.finding import GOOD, NOTE, Finding
from autotune.errors import UsageError
from autotune.store.location import Location, locate, mask
from runner.errors import RunnerError
from runner.scheduler.base import output_of
from runner.testbed.needs import missing

INTERPRETERS = ("python3", "python")
_SLURM = ("sbatch", "squeue", "scancel")
_PATIENCE_S = 20


def needs(quick: bool) -> list[Finding]:
    """One finding for each; ``quick`` starts nothing."""
    return [
        *([] if quick else _interpreters()),
        _slurm(quick),
        _postgres(quick),
        _testbed(),
        _remote(),
    ]


def _interpreters() -> list[Finding]:
    """Pythons that ``-- python3 SCRIPT`` would start: each must have an mpi4py of its own."""
    found = {place for name in INTERPRETERS if (place := shutil.which(name))}
    places = sorted({sys.executable, *found}, key=lambda place: place != sys.executable)
    having = [place for place in places if _has_mpi4py(place)]
    lacking = [place for place in places if place not in having]
    if not having:
        words = f"no mpi4py in {', '.join(lacking)}"
        advice = (
            "needed for MPI programs in Python: pip install mpi4py in the environment in "
            "which they run"
        )
        return [Finding(NOTE, "Python programs", words, advice)]
    findings = [Finding(GOOD, "Python programs", f"mpi4py in {', '.join(having)}")]
    if lacking:
        advice = (
            f"start Python programs that use MPI with {having[0]}, or pip install mpi4py "
            "in the others"
        )
        findings.append(
            Finding(NOTE, "other Pythons", f"no mpi4py in {', '.join(lacking)}", advice)
        )
    return findings


def _has_mpi4py(python: str) -> bool:
    words = [
        python,
        "-c",
        "import importlib.util as u; raise SystemExit(not u.find_spec('mpi4py'))",
    ]
    try:
        done = subprocess.run(
            words, capture_output=True, timeout=_PATIENCE_S, check=False, cwd=os.sep
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _slurm(quick: bool) -> Finding:
    lacking = [word for word in _SLURM if shutil.which(word) is None]
    if lacking:
        words = f"not installed ({', '.join(lacking)} not found)"
        return Finding(
            NOTE,
            "Slurm",
            words,
            "needed only for --scheduler slurm: use a login node of the cluster; "
            "--scheduler local needs nothing",
        )
    if quick:
        return Finding(GOOD, "Slurm", "commands found; not tried (--quick)")
    try:
        answer = output_of(["sinfo", "--noheader", "--format", "%P %D"])
    except RunnerError as problem:
        said = " ".join(str(problem).splitlines()[0].split())[:200]
        return Finding(
            NOTE,
            "Slurm",
            f"installed, but no controller answers: {said}",
            "needed only for --scheduler slurm: check that slurmctld runs and that "
            "/etc/slurm/slurm.conf or SLURM_CONF names it",
        )
    partitions = ", ".join(" ".join(line.split()) for line in answer.splitlines()) or "none"
    return Finding(GOOD, "Slurm", f"partitions and their nodes: {partitions}")


def _postgres(quick: bool) -> Finding:
    what = "PostgreSQL"
    if importlib.util.find_spec("psycopg") is None:
        return Finding(
            NOTE,
            what,
            "the Python package psycopg is missing",
            'needed only if several nodes write into one database: pip install "psycopg[binary]"',
        )
    try:
        place = locate(None)
    except UsageError as problem:
        return Finding(
            NOTE, what, f"AUTOTUNE_STORE: {problem}", "set it to a path or the URL of a server"
        )
    if place.path is not None:
        words = (
            "available (--store postgresql://USER@HOST/DATABASE); at present results go to a file"
        )
        return Finding(GOOD, what, words)
    if not quick and (silent := _unreachable(place)):
        advice = "check that the server runs, and the host, user and password in AUTOTUNE_STORE"
        return Finding(NOTE, what, f"{place.shown} does not answer: {silent}", advice)
    return Finding(GOOD, what, f"AUTOTUNE_STORE names {place.shown}")


def _unreachable(place: Location) -> str:
    """What keeps the server from being asked; "" where it answers."""
    try:
        with create_engine(place.url, connect_args={"connect_timeout": 5}).connect():
            return ""
    except SQLAlchemyError as problem:
        return mask(" ".join(str(getattr(problem, "orig", None) or problem).split()))[:200]


def _testbed() -> Finding:
    lacking = missing()
    if not lacking:
        return Finding(GOOD, "testbed", "can be started (autotune testbed up)")
    return Finding(
        NOTE,
        "testbed",
        f"cannot be started; it needs {'; '.join(lacking)}",
        "needed only for --cluster testbed",
    )


def _remote() -> Finding:
    place = shutil.which("ssh")
    if place:
        return Finding(GOOD, "ssh", place)
    return Finding(
        NOTE,
        "ssh",
        "not found",
        "needed only for clusters whose launch options name hosts, outside of a batch "
        "job: install openssh-client",
    )
