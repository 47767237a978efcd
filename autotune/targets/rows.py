"""Parts of documents: what is written of a program, of its files and of its figures.

Commands that only read a stored result import this module, and not what makes these rows.
"""

from __future__ import annotations

from typing import Annotated, Literal

from typing_extensions import TypedDict

from autotune.json_types import Described, Number

Kind = Literal["program", "library", "source"]
"""What a file is to the ranks that ran it."""


class ExecutableRow(TypedDict):
    """A file that ranks ran."""

    path: str
    sha256: str
    kind: Kind


ExecutableRows = Annotated[
    list[ExecutableRow],
    Described(
        "Files that the ranks ran, as far as they were seen: executables, libraries of "
        "the program's own, and Python sources behind a wrapper, with their SHA-256."
    ),
]


ChoiceReason = Literal[
    "option", "launcher", "linked", "mpi4py", "script", "interface", "traced", "path", "own"
]
"""Why an MPI library was taken: the ``option`` ``--mpi``, the ``launcher`` of the line, the library
that the program is ``linked`` with, that its ``mpi4py`` loads or that the program of a ``script``
loads, the first of the binary ``interface`` that the program needs, that with which the program was
``traced`` for a prediction, the first in ``path``, or that of autotune's ``own`` environment, since
there is no other."""


class MpiChoiceRow(TypedDict):
    """The MPI library of the launches, and why it was taken."""

    family: str
    version: str
    launcher: str
    reason: ChoiceReason
    words: str
    """The choice in one line."""


class ProposedFigure(TypedDict):
    """The figure of merit of an output, and how it is read."""

    program: str
    """Name of the program, empty if it is not known."""
    line: str
    """The line of the output."""
    value: Number
    """In seconds, or without the prefix of its unit."""
    rate: bool
    """Whether a larger value is better."""
    unit: str
    options: list[str]
    """Options that read the figure and check the result."""
    right: bool | None
    """Whether the output says that its result is right; null if it says nothing."""


class Origin(TypedDict):
    """Directory, environment and files with which a program ran."""

    cwd: str
    env: dict[str, str]
    files: dict[str, str]
