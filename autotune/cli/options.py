"""Options that are no part of a request: of the output and of the results database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from autotune.cli import completion
from autotune.errors import UsageError
from autotune.terminal.command_line import option_values
from autotune.wording import whole_number
from runner.files.paths import exists


def opt(spelling: str, help: str, **more: Any) -> Any:
    """One option, written as its help shows it: ``"--budget TIME"``, ``"--ranks -n N"``,
    ``"--join"``.

    ``more`` goes to :class:`typer.Option`.
    """
    words = spelling.split()
    names = [word for word in words if word.startswith("-")]
    value = " ".join(words[len(names) :]) or None
    return typer.Option(*names, metavar=value, help=help, **more)


SEVERAL_LIBRARIES = ("search", "compare")
"""The commands that take more than one ``--mpi``."""


def refuse_several_libraries(command: str) -> None:
    """Raise UsageError if the command line names several MPI libraries for a command of one.

    Without this, the last name would count and the others would be ignored.
    """
    libraries = option_values("--mpi")
    if len(libraries) > 1 and command not in SEVERAL_LIBRARIES:
        raise UsageError(
            f"--mpi was given {len(libraries)} times ({', '.join(libraries)}), and autotune "
            f"{command} works with one MPI library; autotune search and autotune compare take "
            "several",
            code="usage.several_libraries",
        )


LATE = "late"
"""The mark of options that are listed last: those of the output."""
StoreUrl = Annotated[
    str | None,
    opt(
        "--store URL",
        "Results database: path of an SQLite file, or URL (postgresql://...).",
        envvar="AUTOTUNE_STORE",
    ),
    LATE,
]
JsonOut = Annotated[
    str | None,
    opt(
        "--json FILE|-",
        "Write the result as JSON to FILE ('-': to standard output, and nothing else there).",
    ),
    LATE,
]
Quiet = Annotated[
    bool,
    opt("--quiet -q", "Show no progress and no notes: the result and errors only."),
    LATE,
]


NoCheck = Annotated[
    bool,
    opt("--no-check", "Do not check the launch line before the first run (autotune check)."),
    LATE,
]
Force = Annotated[bool, opt("--force", "Replace the file if it exists.")]
STUDY = typer.Argument(
    metavar="STUDY",
    help="Study: its number or the first digits of its hash (autotune studies).",
    autocompletion=completion.studies,
)
StudyName = Annotated[str, STUDY]


def refuse_existing(path: Path, force: bool, option: str) -> None:
    """Raise UsageError if the file exists and ``--force`` is not given; ``option`` names another
    file."""
    if exists(path) and not force:
        raise UsageError(
            f"{path} exists already; --force replaces it, {option} names another",
            code="file.exists",
        )


def rank_counts(text: str) -> list[int]:
    """The numbers of ranks of ``--ranks 2,4``, ascending; raises UsageError for anything else."""
    counts = [whole_number(word.strip()) or 0 for word in text.split(",") if word.strip()]
    if min(counts, default=0) < 2:
        raise UsageError(
            f"--ranks {text!r}: expected numbers of ranks of 2 or more, separated by "
            "commas, such as 2,4",
            code="ranks.range",
        )
    return sorted(set(counts))
