"""The MPI library that a command line needs: that of the binary or Python that runs in the end.

Commands before a program (``env``, ``numactl``) are looked through. A script of a shell is read for
the programs that it starts, and never run: what it says is a hint and no proof, because variables
and conditions are not followed. Words behind a container's command name files of the container, so
nothing is said of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePath
from typing import Literal

from autotune.targets.program_identity import interpreter
from autotune.targets.wrapped_launcher import (
    commands_in,
    script_of,
    shell_text,
    split_wrappers,
)
from runner import files
from runner.mpi.abi import NeededLibrary, needed_library
from runner.mpi.linkage import module_of_one_library, needed_by_python

_CONTAINERS = frozenset(
    {
        *("apptainer", "singularity", "docker", "podman", "podman-hpc", "shifter", "sarus"),
        *("enroot", "ch-run", "charliecloud", "bwrap", "chroot", "nsenter", "unshare"),
    }
)
"""Commands whose program lies below another root."""
_MOST_BYTES = 256 * 1024
_MOST_COMMANDS = 200
_FIRST_LINE = 200
_OWN_WORDS = frozenset({"$0", "$@", "$*"})
"""What a script writes for the words of its own command."""


@dataclass(frozen=True)
class MpiNeed:
    """The MPI library that ``program`` (its name) needs.

    ``how`` it is known: the file of the program names it, the ``mpi4py`` of its interpreter loads
    it, or a ``script`` starts a program that needs it. ``file`` is the path of the ELF file that
    names it, a binary or the extension module of mpi4py; empty if the library was found otherwise.
    """

    library: NeededLibrary
    program: str
    how: Literal["linked", "mpi4py", "script"]
    file: str = ""
    script: str = ""
    """Name of the script that starts the program."""

    @property
    def is_fixed(self) -> bool:
        """Whether the program loads libraries of this binary interface only."""
        return bool(self.file)

    @property
    def title(self) -> str:
        """The program, for messages."""
        name = PurePath(self.program).name
        return f"the mpi4py of {self.program}" if self.how == "mpi4py" else name


def need_of(words: Sequence[str]) -> MpiNeed | None:
    """What a command line needs; None if it names no library, or if this cannot be told."""
    _, words = split_wrappers(words)
    if not words or PurePath(words[0]).name in _CONTAINERS:
        return None
    if (need := _need_of_program(words)) is not None:
        return need
    if (command := shell_text(words)) is not None:
        return _need_of_script("", command, words[words.index(command) + 1 :])
    path = script_of(words, Path.cwd()) or Path(shutil.which(words[0]) or words[0])
    text = _shell_script(path)
    if text is not None:
        at = next((at for at, word in enumerate(words) if Path.cwd() / word == path), 0)
        if (need := _need_of_script(path.name, text, words[at:])) is not None:
            return need
    # A command that starts another one, such as a profiler.
    inner = (_need_of_program(words[at:]) for at in range(1, len(words)) if "/" in words[at])
    return next((_as_hint(need, PurePath(words[0]).name) for need in inner if need), None)


def _need_of_program(words: Sequence[str]) -> MpiNeed | None:
    """What a binary, or the mpi4py of an interpreter, needs."""
    library = needed_library(words)
    if library is not None:
        return MpiNeed(library, PurePath(words[0]).name, "linked", shutil.which(words[0]) or "")
    python = _python_of(words[0])
    own = None if python is None else needed_by_python(python)
    if python is None or own is None:
        return None
    return MpiNeed(own, str(python), "mpi4py", str(module_of_one_library(python) or ""))


def _as_hint(need: MpiNeed, script: str) -> MpiNeed:
    return replace(need, how="script", file="", script=script)


def _python_of(word: str) -> Path | None:
    """The interpreter of Python that a command is, or that the first line of its file names."""
    python = interpreter([word])
    path = shutil.which(word)
    if python is not None or path is None:
        return python
    try:
        with Path(path).open("rb") as file:
            first = file.readline(_FIRST_LINE)
    except OSError:
        return None
    if not first.startswith(b"#!") or b"python" not in first:
        return None
    line = first[2:].decode(errors="replace").split()
    words = (
        [one for one in line[1:] if not one.startswith("-")] if line[0].endswith("/env") else line
    )
    return interpreter(words) if words else None


def _shell_script(path: Path) -> str | None:
    """The text of a script of a shell; None for another file."""
    try:
        text = files.read_text(path, _MOST_BYTES)
    except (OSError, UnicodeDecodeError, ValueError):
        return None
    return text if text.startswith("#!") or path.suffix == ".sh" else None


def _need_of_script(script: str, text: str, arguments: Sequence[str]) -> MpiNeed | None:
    """What all programs that a script starts need; None if it starts none, or if they differ.

    ``arguments`` are the script's own, behind its ``$0``; a script may start the program that they
    name.
    """
    commands: dict[str, Sequence[str]] = {}
    for command in islice(commands_in(text), _MOST_COMMANDS):
        words: Sequence[str] = command
        if command[0] in _OWN_WORDS:
            words = arguments[command[0] != "$0" :]
        if words:
            commands.setdefault(words[0], words)
    needs = [need for words in commands.values() if (need := _need_of_program(words))]
    # Python often only prepares files for the program.
    needs = [need for need in needs if need.how == "linked"] or needs
    return _as_hint(needs[0], script) if len({need.library for need in needs}) == 1 else None
