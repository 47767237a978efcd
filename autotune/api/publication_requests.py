"""Requests of commands that publish settings as files, and that check such files."""

from __future__ import annotations

from autotune.config.option import PATH, PATHS, TIME, Request, option, same_option
from autotune.study.study_request import SearchRequest
from autotune.targets.request import TargetRequest

FURTHER_SPACES = option(
    (),
    "--space NAME|FILE",
    "Space whose parameters the files may contain, in addition to the shipped spaces and your own. "
    "May be repeated.",
)


class PublishRequest(Request):
    """A proven setting as files that a cluster loads."""

    cluster: str | None = option(
        None,
        "--cluster C",
        "Cluster that the files are for (autotune cluster list). Default: that of the source, or "
        "else local.",
        completion="clusters",
    )
    source: str | None = option(
        None,
        "--from SOURCE",
        "Proven result to publish: study:ID, classwide:ID or collectives:ID. Default: the latest "
        "proven class-wide result.",
    )
    format_names: tuple[str, ...] = option(
        (),
        "--format -f F",
        "File format; may be repeated (--formats lists all). Default: the per-user files of the "
        "MPI library.",
        completion="formats",
    )
    list_formats: bool = option(
        False,
        "--formats",
        "List the formats, and say which of them can be checked with this MPI library.",
    )
    out: str | None = option(
        None,
        "-o --out FILE",
        "File or folder to write. Default: where the MPI library reads the format.",
        PATH,
    )
    dry_run: bool = option(False, "--dry-run", "Print the files; run nothing and write nothing.")
    show_diff: bool = option(
        False, "--diff", "Print the changes to the files; run nothing and write nothing."
    )
    force: bool = option(
        False,
        "--force",
        "Publish despite doubts about the proof, and replace files that were edited by hand.",
    )
    unproven: bool = option(
        False,
        "--unproven",
        "Write also formats that no run can check here.",
    )
    spaces: tuple[str, ...] = FURTHER_SPACES
    mpi: str | None = same_option(TargetRequest, "mpi")
    commutative_only: bool = same_option(TargetRequest, "commutative_only")


class VerifyRequest(Request):
    """Published files: are they in force, and still faster?"""

    files: tuple[str, ...] = option(
        (),
        "FILE...",
        "Published files to check. Default: all that you have published.",
        PATHS,
    )
    compare: bool = option(
        True, "--compare/--no-compare", "Compare with the default again, by new runs."
    )
    pairs: int = option(
        60, "--pairs N", "Largest number of pairs of runs per program.", ge=6, le=10_000
    )
    budget_s: float | None = option(
        None,
        "--budget TIME",
        "Machine time per program, for example 90s or 10m. Default: no limit.",
        TIME,
        gt=0,
    )
    renewing: bool = option(
        False,
        "--renew",
        "Accept expired files whose gain is measured again: they count as proven with the "
        "installed version of the library.",
    )
    run_recorded: bool = option(
        False,
        "--run-recorded",
        "Run also command lines that are recorded in the published file only (no application or "
        "study of yours).",
    )
    spaces: tuple[str, ...] = FURTHER_SPACES
    mpi: str | None = same_option(TargetRequest, "mpi")
    guard: bool = same_option(SearchRequest, "guard")
    metrics: str | None = option(
        None,
        "--metrics FILE",
        "Write the outcome as OpenMetrics text, for the textfile collector of a monitoring system "
        "(FILE.prom).",
        PATH,
    )
