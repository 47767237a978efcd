"""A launcher behind other words: ``OMP_NUM_THREADS=2 mpirun``, ``time mpirun``, ``bash job.sh``.

autotune starts the launcher itself. A launcher behind another command would be started once for
each rank, and so many whole jobs would be measured at once. Such a line is refused with the line to
type (:mod:`autotune.targets.launcher_line`). A script is only read: whether it starts a launcher is
seen while it runs (:mod:`runner.supervise.inner_launcher`).
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from runner import files
from runner.cpus import cpu_list, parse_cpus
from runner.supervise.inner_launcher import LAUNCHERS

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh", "ash"})
_MOST_BYTES = 256 * 1024
_JOINS = frozenset({"{", "then", "do", "else", "!"})
"""Words of a shell after which a command begins."""
_MARKS = frozenset(";&|()<>")
"""Characters of a shell that end a command, or its words."""
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass
class LineParts:
    """Where the words before a launcher go: parts of the line to type."""

    before: list[str] = field(default_factory=list)
    """Before ``autotune``."""
    options: list[str] = field(default_factory=list)
    """Options of autotune."""
    behind: list[str] = field(default_factory=list)
    """Between the launcher with its options and the program."""
    first: list[str] = field(default_factory=list)
    """A command to give first."""


def is_launcher(word: str) -> bool:
    """Whether a word names a launcher, with or without its path."""
    return PurePath(word).name in LAUNCHERS


def split_wrappers(words: Sequence[str]) -> tuple[LineParts, Sequence[str]]:
    """Where the variables and commands before a launcher go, and the words behind them.

    These begin with the launcher, or with a word that is neither a variable nor such a command.
    """
    place, at = LineParts(), 0
    while at < len(words) and not is_launcher(words[at]):
        count = _take_wrapper(words[at:], place)
        if not count:
            break
        at += count
    return place, words[at:]


def is_assignment(word: str) -> bool:
    """Whether a word gives a variable of a shell its value."""
    return _ASSIGNMENT.fullmatch(word) is not None


def wrapper_length(words: Sequence[str]) -> int:
    """How many words a variable, or a wrapping command with its options, has; 0: neither."""
    return _take_wrapper(words, LineParts())


def _take_wrapper(words: Sequence[str], place: LineParts) -> int:
    """How many words a variable, or a wrapping command with its options, has; 0: neither."""
    if is_assignment(words[0]):
        place.before.append(words[0])
        return 1
    wrapper = _WRAPPERS.get(PurePath(words[0]).name)
    if wrapper is None:
        return 0
    with_value, own, move = wrapper
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        at += 2 if words[at] in with_value else 1
    at += at < len(words) and words[at] == "--"
    at = min(at + own, len(words))
    move(list(words[:at]), place)
    return at


def _drop(words: list[str], place: LineParts) -> None:
    """autotune measures the time, and ends with what it started."""


def _moved_before(words: list[str], place: LineParts) -> None:
    place.before += words


def _moved_behind(words: list[str], place: LineParts) -> None:
    place.behind += words


def _environment(words: list[str], place: LineParts) -> None:
    if len(words) > 1:
        place.before += words


def _limit(words: list[str], place: LineParts) -> None:
    match = re.fullmatch(r"([0-9.]+)([smhd]?)", words[-1])
    try:
        limit_s = float(match[1]) * _UNITS[match[2]] if match else 0.0
    except ValueError:
        limit_s = 0.0
    if 0 < limit_s < math.inf:
        place.options += ["--timeout", f"{limit_s:g}s"]


def _affinity(words: list[str], place: LineParts) -> None:
    """``taskset [-c] CPUS``: the CPUs belong into a cluster definition."""
    is_list = any(re.fullmatch(r"-[a-z]*c[a-z]*|--cpu-list", word) for word in words)
    try:
        cpus = parse_cpus(words[-1]) if is_list else _mask(words[-1])
        cpu_text = cpu_list(cpus)
    except ValueError:
        cpu_text = "CPUS"
    place.first.append(f"autotune cluster init NAME --cpus {cpu_text}")
    place.options += ["--cluster", "NAME"]


def _mask(text: str) -> frozenset[int]:
    """The CPUs of a hexadecimal mask."""
    value = int(text.replace(",", ""), 16)
    return frozenset(bit for bit in range(value.bit_length()) if value >> bit & 1)


_Move = Callable[[list[str], LineParts], None]
_WRAPPERS: dict[str, tuple[frozenset[str], int, _Move]] = {
    "env": (frozenset({"-u", "-C", "-S", "--unset", "--chdir"}), 0, _environment),
    "time": (frozenset({"-f", "-o", "--format", "--output"}), 0, _drop),
    "nohup": (frozenset(), 0, _drop),
    "setsid": (frozenset(), 0, _drop),
    "exec": (frozenset({"-a"}), 0, _drop),
    "command": (frozenset(), 0, _drop),
    "timeout": (frozenset({"-k", "-s", "--kill-after", "--signal"}), 1, _limit),
    "taskset": (frozenset(), 1, _affinity),
    "nice": (frozenset({"-n", "--adjustment"}), 0, _moved_before),
    "ionice": (frozenset({"-c", "-n", "--class", "--classdata"}), 0, _moved_before),
    "chrt": (frozenset({"-T", "-P", "-D"}), 1, _moved_before),
    "stdbuf": (frozenset({"-i", "-o", "-e"}), 0, _moved_behind),
    "numactl": (
        frozenset({"-C", "-N", "-m", "-i", "-p", "-P", "-w"}),
        0,
        _moved_behind,
    ),
}
"""Commands that start another: options with a value, words of their own behind the options, and
where they go."""


def shell_text(words: Sequence[str]) -> str | None:
    """The text of ``sh -c TEXT``; None for another command."""
    if len(words) > 2 and PurePath(words[0]).name in _SHELLS:
        for at, word in enumerate(words[1:-1], start=1):
            if re.fullmatch(r"-[a-z]*c", word):
                return words[at + 1]
            if not word.startswith("-"):
                return None
    return None


def launcher_in(text: str) -> list[str] | None:
    """The first command of a shell script that starts a launcher, by its words.

    None if there is none. Variables of the script are not expanded; comments and what the shell
    would do with a line are not known, so this is a hint and no proof.
    """
    for words in _lines(text):
        for at, word in enumerate(words):
            if is_launcher(word) and _begins(words[:at]):
                return words[at : _end(words, at)]
    return None


def commands_in(text: str) -> Iterator[list[str]]:
    """The commands of a shell script by their words, without wrappers and variables before them.

    As :func:`launcher_in`, this is a hint: words of the shell itself are among the commands.
    """
    for words in _lines(text):
        starts = [at + 1 for at, word in enumerate(words) if word in _JOINS or set(word) <= _MARKS]
        for start in (0, *starts):
            _, command = split_wrappers(words[start : _end(words, start)])
            if command:
                yield list(command)


def _lines(text: str) -> Iterator[list[str]]:
    """The words of each line of a shell script that is a line by itself."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        with suppress(ValueError):
            yield list(lexer)


def _end(words: Sequence[str], start: int) -> int:
    """Where the command ends that begins at ``start``."""
    return next((at for at in range(start, len(words)) if set(words[at]) <= _MARKS), len(words))


def _begins(before: Sequence[str]) -> bool:
    """Whether a command may begin behind these words: wrappers and variables may precede it."""
    starts = [at for at, word in enumerate(before) if word in _JOINS or set(word) <= _MARKS]
    left = list(before[starts[-1] + 1 if starts else 0 :])
    while left:
        count = _take_wrapper(left, LineParts())
        if not count:
            return False
        left = left[count:]
    return True


def script_of(program: Sequence[str], folder: Path) -> Path | None:
    """The shell script that a command line starts, ``bash job.sh`` or ``./job.sh``; else None.

    ``folder`` is the working directory.
    """
    shell = bool(program) and PurePath(program[0]).name in _SHELLS
    arguments = [word for word in program[1:] if not word.startswith("-")] if shell else program
    if not arguments or not (shell or "/" in arguments[0]):
        return None
    return folder / arguments[0]


def launcher_in_script(program: Sequence[str], folder: Path) -> tuple[str, list[str]] | None:
    """The script among a program's words, and the launcher's line in it; None if there is none.

    The script is read within bounds and never run.
    """
    path = script_of(program, folder)
    if path is None:
        return None
    try:
        text = files.read_text(path, _MOST_BYTES)
    except (OSError, UnicodeDecodeError, ValueError):
        return None
    if PurePath(program[0]).name not in _SHELLS and not text.startswith("#!"):
        return None
    launcher_words = launcher_in(text)
    return None if launcher_words is None else (path.name, launcher_words)
