"""The checks of ``autotune doctor``: what is installed, what is missing, and how to get it.

Here are the checks that every command needs; those that only some commands need are in
:mod:`autotune.api.doctor_needs`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import statistics
from typing import Any

from autotune.api.doctor_finding import BAD, GOOD, NOTE, DoctorFinding
from autotune.api.doctor_needs import needs
from autotune.config.cluster import load_cluster
from autotune.document import Document
from autotune.errors import AutotuneError
from autotune.parameters.surroundings import surrounding_faults
from autotune.publish.verify import published_files
from autotune.targets.jobs import job_words
from autotune.targets.mpi_choice import choose
from autotune.targets.startup import Startup, startup
from autotune.wording import count, seconds
from runner.cpus import cpu_list
from runner.errors import RunnerError, RunnerUsageError
from runner.jobs import MpiJob, find_jobs, shared_cpus
from runner.machine import describe_machine
from runner.mpi.discover import adapter, find_library, libraries
from runner.mpi.library import Library


def examine(
    cluster: str = "local", mpi: str | None = None, quick: bool = False
) -> list[DoctorFinding]:
    """One finding for each check; ``quick`` starts no program.

    Raises UsageError for an unknown cluster, RunnerUsageError for an MPI that is not installed.
    """
    load_cluster(cluster)
    findings = [_machine(), *_jobs(), *_mpi(mpi), _compiler()]
    library = _find(mpi)
    if library is not None:
        findings += [_environment(library), *_parameters(library), *_publications(library)]
        if not quick:
            findings += _measurements(library, cluster)
    return findings + needs(quick)


def _find(mpi: str | None) -> Library | None:
    try:
        return find_library(mpi)
    except RunnerError:
        return None


def _machine() -> DoctorFinding:
    machine = describe_machine()
    words = f"{machine.cores} cores, {machine.cpu_model}, fingerprint {machine.fingerprint[:12]}"
    few = machine.cores < 2
    return DoctorFinding(
        NOTE if few else GOOD,
        "machine.cores",
        "machine",
        words,
        "with one core every run of two ranks is oversubscribed" if few else "",
        {"cores": machine.cores, "fingerprint": machine.fingerprint},
    )


def _jobs() -> list[DoctorFinding]:
    """The MPI jobs of other programs, and which of them share CPUs."""
    jobs = find_jobs()
    if not jobs:
        return [
            DoctorFinding(GOOD, "jobs.others", "MPI jobs", "no other MPI job runs on this node")
        ]
    jobs_finding = DoctorFinding(
        NOTE,
        "jobs.others",
        "MPI jobs",
        "; ".join(map(job_words, jobs)),
        "the guard rejects runs that they disturb: measure after them, or on other cores "
        "(autotune cluster init NAME --cpus LIST)",
        {"jobs": [_job_data(job) for job in jobs]},
    )
    overlaps = shared_cpus(jobs)
    if not overlaps:
        return [jobs_finding]
    pairs = [f"pids {a.pid} and {b.pid} on CPUs {cpu_list(cpus)}" for a, b, cpus in overlaps]
    data = [{"pids": [a.pid, b.pid], "cpus": cpu_list(cpus)} for a, b, cpus in overlaps]
    advice = f"to start each job on its own cores:  autotune cluster split {len(jobs)}"
    return [
        jobs_finding,
        DoctorFinding(
            NOTE, "jobs.shared_cpus", "shared CPUs", "; ".join(pairs), advice, {"shared": data}
        ),
    ]


def _job_data(job: MpiJob) -> dict[str, Any]:
    ranks = [
        {"pid": r.pid, "cpus": None if r.cpus is None else cpu_list(r.cpus)} for r in job.ranks
    ]
    return {
        "pid": job.pid,
        "user": job.user,
        "command": job.command,
        "mpi": None if job.library is None else job.library.family,
        "ranks": ranks,
        "cpus": None if job.cpus is None else cpu_list(job.cpus),
        "bound": job.bound,
        "readable": job.readable,
    }


def _mpi(name: str | None) -> list[DoctorFinding]:
    try:
        choice = choose(name, (), ())
    except RunnerUsageError:
        raise  # There is no such MPI: the command is wrong, not the machine.
    except RunnerError as problem:
        return [
            DoctorFinding(
                BAD,
                "mpi.library",
                "MPI",
                str(problem).splitlines()[0],
                'pip install "mpi-autotune[mpi]", or the library of your distribution',
            )
        ]
    library = choice.library
    words = f"{library.family} {library.version} in {library.bin}, {len(library.params)} parameters"
    words += f"; {choice.detail}"
    findings = [
        DoctorFinding(
            GOOD,
            "mpi.library",
            "MPI",
            words,
            data={
                "family": library.family,
                "version": library.version,
                "reason": choice.reason,
            },
        )
    ]
    others = [lib for lib in libraries() if lib.bin != library.bin]
    if others:
        names = ", ".join(f"{lib.family} {lib.version} ({lib.bin})" for lib in others)
        # A distribution has several libraries in one directory, so they are given by name.
        series = (f"{lib.family}-{'.'.join(map(str, lib.version_tuple[:2]))}" for lib in others)
        options = ", ".join(f"--mpi {one}" for one in dict.fromkeys(series))
        findings.append(
            DoctorFinding(
                NOTE,
                "mpi.others",
                "other MPI libraries",
                names,
                f"a program that is linked with one is started by it; to choose one: {options}",
            )
        )
    return findings


def _compiler() -> DoctorFinding:
    place = shutil.which("cc")
    if place:
        return DoctorFinding(GOOD, "compiler.c", "C compiler", place)
    return DoctorFinding(
        NOTE,
        "compiler.c",
        "C compiler",
        "none found",
        "needed to build C programs with mpicc, and for fast proposals of the strategy auto: "
        "install gcc",
    )


def _environment(library: Library) -> DoctorFinding:
    settings = adapter(library).inherited_settings(dict(os.environ))
    if not settings:
        return DoctorFinding(GOOD, "mpi.inherited", "inherited MPI settings", "none")
    words = "; ".join(f"{name} = {value}" for name, value in sorted(settings.items()))
    return DoctorFinding(
        NOTE,
        "mpi.inherited",
        "inherited MPI settings",
        words,
        "they are part of every default that is measured here; --clean-env removes them",
        {"settings": settings},
    )


def _parameters(library: Library) -> list[DoctorFinding]:
    """One finding for each parameter that the environment or a file sets in vain."""
    return [
        DoctorFinding(
            NOTE,
            "mpi.parameters",
            "parameters",
            f"{fault.statement} ({fault.request.origin}): {fault.cost}",
            f"autotune explain {shlex.quote(fault.near[0] if fault.near else fault.request.name)}",
            {"kind": fault.kind, "name": fault.request.name, "value": fault.request.value},
        )
        for fault in surrounding_faults(library)
        if not fault.is_harmless
    ]


def _publications(library: Library) -> list[DoctorFinding]:
    """One finding for each expired or damaged file of the user; one for all others together."""
    files, problems = published_files(library)
    what = "published settings"
    findings = [
        DoctorFinding(
            NOTE,
            "published.files",
            what,
            f"{one.expiry.path}: {one.expiry.words}",
            one.expiry.advice,
            {"expired": one.expiry.to_json()},
        )
        for one in files
        if one.expiry is not None
    ]
    findings += [
        DoctorFinding(
            NOTE, "published.files", what, words, "to look closer:  autotune verify-published"
        )
        for words in problems
    ]
    if files and not findings:
        words = f"{count(len(files), 'file')}, proven with the installed versions"
        findings = [DoctorFinding(GOOD, "published.files", what, words)]
    return findings


def _measurements(library: Library, cluster: str) -> list[DoctorFinding]:
    try:
        options = load_cluster(cluster).options(library)
        began = startup(library, options, runs=5)
    except (AutotuneError, RunnerError) as problem:
        return [
            DoctorFinding(
                BAD, "mpi.startup", "start-up", str(problem), "see the launcher's own message"
            )
        ]
    findings = [_startup(began, options), *_transport(began, library), *_collectives(library)]
    return [*findings, _noise(began), _load(began)]


def _transport(began: Startup, library: Library) -> list[DoctorFinding]:
    """What carries the messages, what else could, and how many parameters cannot act under it."""
    if not began.transport:
        return []
    idle = adapter(library).idle_under(library.params, began.transport)
    words = f"{began.transport}; {count(len(idle), 'parameter')} cannot act under it"
    chooses = adapter(library).transport_parameter
    transports = adapter(library).transports()
    others = [one for one in transports if one != began.transport.partition(":")[0]]
    if others:
        words += f"; also installed: {', '.join(f'{chooses}={one}' for one in others)}"
    data = {"in_force": began.transport, "installed": transports, "idle": sorted(idle)}
    return [DoctorFinding(GOOD, "mpi.transport", "transport", words, data=data)]


def _collectives(library: Library) -> list[DoctorFinding]:
    """The components that can serve collectives."""
    components = adapter(library).collective_components()
    words = f"components by priority: {', '.join(components)}"
    data = {"components": components}
    return (
        [DoctorFinding(GOOD, "mpi.collectives", "collectives", words, data=data)]
        if components
        else []
    )


def _startup(began: Startup, options: tuple[str, ...]) -> DoctorFinding:
    slow = began.median > 0.8
    option_words = " ".join(options) or "no launch options"
    return DoctorFinding(
        NOTE if slow else GOOD,
        "mpi.startup",
        "start-up",
        f"{seconds(began.median)} for two ranks ({option_words})",
        "to find launch options that shorten it:  autotune cluster init NAME" if slow else "",
        {"median_s": began.median, "times_s": began.times},
    )


def _noise(began: Startup) -> DoctorFinding:
    middle = began.median
    spread = statistics.median(abs(t - middle) for t in began.times) * 1.4826 / middle
    noisy = spread > 0.1
    return DoctorFinding(
        NOTE if noisy else GOOD,
        "machine.noise",
        "noise",
        f"{spread * 100:.1f} % spread of {len(began.times)} start-ups",
        "to see which gain can be detected:  autotune noise --app NAME" if noisy else "",
        {"spread": spread},
    )


def _load(began: Startup) -> DoctorFinding:
    worst = max(r.foreign_cpu_s / r.wall_s for r in began.records)
    rejections = sum(r.foreign_cpu_s > r.foreign_limit_s for r in began.records)
    return DoctorFinding(
        NOTE if rejections else GOOD,
        "machine.load",
        "foreign load",
        f"up to {worst * 100:.0f} % of a core during the runs; the guard would have "
        f"rejected {rejections} of {len(began.records)} runs",
        "stop other programs on this machine before a search" if rejections else "",
        {"worst_share": worst, "rejected": rejections},
    )


class DoctorReport(Document):
    """The results of all checks."""

    findings: list[DoctorFinding]
