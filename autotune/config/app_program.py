"""The program of an application: its file, the words of its command, and its name for readers.

The words may have placeholders: values of the input, and variables of the environment.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from autotune.errors import UsageError
from runner.files.paths import exists, is_file, is_folder


def readable_file(word: str, where: str) -> str:
    """The absolute path of a file; raises UsageError, with ``where``, if it cannot be read."""
    path = Path(word).expanduser().absolute()
    try:
        if is_folder(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.is_fifo():
            raise OSError(errno.EINVAL, "it is a pipe, which can be read only once")
        with path.open("rb"):
            pass
    except OSError as problem:
        raise UsageError(
            f"{where}: {path} cannot be read: {problem.strerror}; expected a file with what the "
            "program reads from its standard input (/dev/null for nothing)",
            code="app.stdin_unreadable",
        ) from None
    return str(path)


_INTERPRETERS = re.compile(r"(python|pypy|perl|ruby|bash|sh|zsh|dash|Rscript|julia|lua)[0-9.]*")


def program_name(words: Sequence[str]) -> str:
    """The name of a command line's program, for readers.

    It is the script or module if the program is an interpreter, else the program itself.
    """
    first = Path(words[0]).name
    if not _INTERPRETERS.fullmatch(first):
        return first
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "-m" and rest:
            return rest[0]
        if option == "-c":
            return first
        if option in ("-X", "-W") and rest:
            rest.pop(0)
    return Path(rest[0]).name if rest else first


def not_a_program(first: str) -> str:
    """Why the first word of a command cannot be started, and what to do about it."""
    path = Path(first)
    if not exists(path):
        if "/" in first:
            return f"the program {first!r} was not found.\nCheck its path."
        return (
            f"the program {first!r} was not found.\nGive its path, for example ./{first} , or put "
            "its directory on PATH."
        )
    problem = f"the program {first!r} is not an executable file."
    if path.suffix == ".py":
        return f"{problem}\nGive it with its interpreter: -- python3 {first}"
    where = first if "/" in first else f"./{first}"
    return f"{problem}\nMake it executable (chmod +x {where}), and give its path: {where}"


PLACEHOLDER = re.compile(r"\{(\w+)\}")


def fill(word: str, values: dict[str, str], app: str, howto: str = "") -> str:
    """The ``word`` with every ``{name}`` replaced; capitals may name an environment variable.

    Raises UsageError for a name without a value and for a variable that is not set; ``howto`` says
    in the message how to get the program.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name in values:
            return values[name]
        if not name.isupper():
            names = ", ".join(sorted(values))
            raise UsageError(
                f"app {app!r}: {word!r} has no value for {{{name}}}; known: {names}",
                code="app.placeholder_unknown",
            )
        if os.environ.get(name):
            return os.environ[name]
        raise UsageError(
            f"app {app!r} needs the environment variable {name} (the directory of its "
            f"program), which is not set.  Set it: export {name}=...{_below(howto)}",
            code="app.variable_unset",
        )

    return PLACEHOLDER.sub(value, word)


def _place(file: str) -> Path:
    """The absolute path of a file; a name alone is looked for on PATH."""
    path = None if "/" in file else shutil.which(file)
    return Path(path or file).expanduser().absolute()


def executable(files: Iterable[str], values: dict[str, str], app: str, howto: str = "") -> str:
    """The first of ``files`` that exists, as an absolute path.

    Raises UsageError with the places that were searched, or with the file that may not be executed.
    """
    paths: list[Path] = []
    unset: UsageError | None = None
    for file in files:
        try:
            paths.append(_place(fill(file, values, app, howto)))
        except UsageError as problem:
            unset = unset or problem
    for path in dict.fromkeys(paths):
        if is_file(path):
            if os.access(path, os.X_OK):
                return str(path)
            raise UsageError(
                f"app {app!r}: {path} exists but may not be executed.  Allow it: chmod +x {path}",
                code="program.not_executable",
            )
    if unset is not None:
        raise unset
    path_list = "\n".join(f"  {path}" for path in dict.fromkeys(paths))
    variables = sorted({n for file in files for n in PLACEHOLDER.findall(file) if n.isupper()})
    change = f"Point {' and '.join(variables)} to where it is." if variables else ""
    raise UsageError(
        f"app {app!r}: its program was not found.  Expected one of\n{path_list}\n"
        f"{change}{_below(howto)}",
        code="program.not_found",
    )


def _below(howto: str) -> str:
    return f"\n{howto}" if howto else ""
