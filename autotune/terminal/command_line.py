"""Command lines to copy: the running command with other options, and other commands of autotune.

No password is printed: an option whose value is a URL with one has ``***`` in its place, which the
user replaces.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from runner.files.paths import real_path
from runner.passwords import has_password, mask_words

NAME = "autotune"

_words: list[str] | None = None


def remember_command(words: Sequence[str] | None) -> None:
    """Remember the arguments of :func:`autotune.cli.main`; None means those of this process."""
    global _words
    _words = None if words is None else list(words)


def values_of(option: str, arguments: Sequence[str]) -> list[str]:
    """The values of an option among arguments, before ``--``, in order."""
    words = list(arguments)
    words = words[: words.index("--")] if "--" in words else words
    values = []
    for at, word in enumerate(words):
        if word == option and at + 1 < len(words):
            values.append(words[at + 1])
        elif word.startswith(f"{option}="):
            values.append(word.partition("=")[2])
    return values


def value_of(option: str, arguments: Sequence[str]) -> str | None:
    """The first of these values; None if there is none."""
    return next(iter(values_of(option, arguments)), None)


def _split_argv() -> tuple[list[str], list[str]]:
    """The words of the running command: its own, and from ``--`` on those of the program."""
    words = list(sys.argv[1:] if _words is None else _words)
    end = words.index("--") if "--" in words else len(words)
    return words[:end], words[end:]


def own_name() -> list[str]:
    """The words that start autotune in the user's shell: by its name, if the shell finds it."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py" and program.parent.name == NAME:
        safe = ["-P"] if sys.flags.safe_path else []
        return [sys.executable, *safe, "-m", NAME]
    location = shutil.which(NAME)
    if program.name != NAME or (location is not None and real_path(location) == real_path(program)):
        return [NAME]
    return [sys.argv[0]]


def command_line(*words: str) -> str:
    """Another command of autotune, quoted for a shell; without passwords in its own options."""
    end = words.index("--") if "--" in words else len(words)
    return shlex.join([*own_name(), *mask_words(words[:end]), *words[end:]])


def this_command(changes: Mapping[str, str] | None = None, without: Iterable[str] = ()) -> str:
    """The command line, to be copied, with the options ``changes`` replaced or added.

    ``without``: options without a value that are left out.
    """
    options, program = _split_argv()
    options = [word for word in options if word not in set(without)]
    for name in changes or {}:
        for at, word in reversed(list(enumerate(options))):
            if word == name:
                del options[at : at + 2]
            elif word.startswith(f"{name}="):
                del options[at]
    for name, value in (changes or {}).items():
        options += [name, value]
    return command_line(*options, *program)


@cache
def target_options() -> dict[str, bool]:
    """Options that all measuring commands share, each with whether a value follows it."""
    from autotune.config.option import option_fields
    from autotune.study.study_request import NoiseRequest

    fields = [field for field in option_fields(NoiseRequest) if field.path[0] == "target"]
    takes_value = {name: not field.is_flag for field in fields for name in field.option.names}
    return takes_value | {"--store": True}


def option_words(names: Iterable[str] | None = None) -> list[str]:
    """The words of those options that the command line gives, by default of all of
    :func:`target_options`."""
    options, _ = _split_argv()
    options_with_value = target_options()
    targets = set(options_with_value if names is None else names)
    words: list[str] = []
    at = 0
    while at < len(options):
        word = options[at]
        name = word.partition("=")[0]
        if name in targets:
            whole = 2 if options_with_value[name] and "=" not in word else 1
            words += options[at : at + whole]
            at += whole
        elif word.startswith("-n") and word[2:].isdigit() and "-n" in targets:
            words.append(word)
            at += 1
        else:
            at += 1
    return words


def option_values(name: str) -> list[str]:
    """The values that the command line gives an option, in order."""
    return values_of(name, _split_argv()[0])


def on_this_target(command: str, *words: str, mpi: Sequence[str] | None = None) -> str:
    """Another command that measures, with the target of this command line.

    ``mpi``: the libraries that it names, if not those of this one.
    """
    _, program = _split_argv()
    if mpi is None:
        return command_line(command, *words, *option_words(), *program)
    mpi_words = [word for name in mpi for word in ("--mpi", name)]
    rest = option_words(name for name in target_options() if name != "--mpi")
    return command_line(command, *words, *mpi_words, *rest, *program)


def shows_password() -> bool:
    """Whether an option of the running command holds a password, which every user can see."""
    options, _ = _split_argv()
    return any(has_password(word) for word in options)


def program_words() -> int:
    """Number of words after ``--`` of the command line: those of the program."""
    return max(len(_split_argv()[1]) - 1, 0)
