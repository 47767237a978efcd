"""Options files of Intel MPI's launcher: ``mpiexec.conf``.

``mpiexec.hydra`` reads three of them, later ones with precedence: the installation's, the user's
(``~/.mpiexec.conf``), and that of the folder in which a job starts. They hold command-line options.
The command line overrides them, and they override the environment. ``-noconf`` disables them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from runner import files
from runner.files.paths import is_file

USER, WORKING_FOLDER, SYSTEM = ".mpiexec.conf", "mpiexec.conf", "intel64/etc/mpiexec.conf"
"""Names below HOME, below the working directory, and below the installation (``I_MPI_ROOT``)."""
NONE = "-noconf"
"""The option that disables the files."""
_MOST_BYTES = 1 << 20


def conf_files(environment: Mapping[str, str], folder: Path) -> list[Path]:
    """The files that a launch from ``folder`` reads, in ascending order of precedence."""
    places = [Path(environment[v]) / n for v, n in (("I_MPI_ROOT", SYSTEM), ("HOME", USER))
              if environment.get(v)]  # fmt: skip
    return [path for path in (*places, folder / WORKING_FOLDER) if is_file(path)]


def variables_in(path: Path) -> dict[str, str]:
    """The variables that a file sets for the ranks (``-genv NAME VALUE``); {} if it is unreadable.

    A ``#`` begins a comment.
    """
    try:
        text = files.read_text(path, _MOST_BYTES)
    except (OSError, UnicodeDecodeError):
        return {}
    words = [word for line in text.splitlines() for word in line.partition("#")[0].split()]
    variables = {}
    for option, name, value in zip(words, words[1:], words[2:], strict=False):
        if option in ("-genv", "-env"):
            variables[name] = value
    return variables
