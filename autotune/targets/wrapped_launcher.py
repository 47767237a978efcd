"""A launcher behind other words: ``OMP_NUM_THREADS=2 mpirun``, ``time mpirun``, ``bash job.sh``.

autotune starts the launcher itself. A launcher behind another command would be started once for
each rank, and so many whole jobs would be measured at once. Such a line is refused with the line to
type. A script is only read: whether it starts a launcher is seen while it runs
(:mod:`runner.supervise.inner_launcher`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from autotune.errors import UsageError
from runner import files
from runner.cpus import cpu_list, parse_cpus
from runner.mpi.library import Library
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
class _Place:
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


def refuse_wrapped_launcher(
    words: Sequence[str],
    command: str,
    launcher: Sequence[str] = (),
    ranks: int | None = None,
    library: Library | None = None,
) -> None:
    """Raise UsageError for a launcher behind other commands, with the line to type.

    ``words`` are the program, behind ``launcher`` with its options; ``ranks`` is the option
    ``--ranks``, and ``library`` the one that is used, if it is known. An assignment without a
    command in front of it is refused, too: no shell reads the words. A word that names a launcher
    elsewhere is an argument of the program.
    """
    place, at = _Place(), 0
    while at < len(words) and not is_launcher(words[at]):
        taken = _taken(words[at:], place)
        if not taken:
            break
        at += taken
    rest = words[at:]
    if rest and at and is_launcher(rest[0]):
        raise _inside(words, rest, place, command, library)
    if words and _ASSIGNMENT.fullmatch(words[0]):
        asked = ["--ranks", str(ranks)] if ranks else []
        behind = [*asked, "--", *launcher, *rest]
        shown = shlex.join([*place.before, "autotune", *_named(command), *behind])
        raise UsageError(
            f"{words[0]} is the first word of the program, and no program has that name: no shell "
            f"reads these words. Variables stand before autotune:\n  {shown}",
            code="program.assignment",
        )
    text = _shell_text(words)
    if text is not None and (line := launcher_in(text)) is not None:
        raise _inside(words, line, _Place(), command, library)


def _inside(
    words: Sequence[str],
    line: Sequence[str],
    place: _Place,
    command: str,
    library: Library | None,
) -> UsageError:
    """The error for ``words``, in which ``line`` begins with a launcher."""
    launched = _with_program(line, place.behind, command, library)
    typed = shlex.join(
        [*place.before, "autotune", *_named(command), *place.options, "--", *launched]
    )
    steps = "".join(f"  {one}\n" for one in place.first)
    return UsageError(
        f"the line {shlex.join(words)!r} has the launcher {line[0]} behind other words; autotune "
        "starts the launcher itself, and this line would be started once for each rank, each "
        f"time as a whole job. Give:\n{steps}  {typed}",
        code="launcher.inside",
    )


def _named(command: str) -> list[str]:
    return [command] if command else []


def _with_program(
    line: Sequence[str], behind: Sequence[str], command: str, library: Library | None
) -> list[str]:
    """A launcher's line without its faults, with ``behind`` before its program."""
    # Only the parser of launcher lines knows where the program begins.
    from autotune.targets.launcher_line import mended, parse_launcher_line

    right = mended(line, command, library)
    try:
        program = parse_launcher_line(right, command, library=library).program
    except UsageError:
        return list(right)
    cut = len(right) - len(program)
    return [*right[:cut], *behind, *right[cut:]]


def _taken(words: Sequence[str], place: _Place) -> int:
    """How many words a variable, or a wrapping command with its options, has; 0: neither."""
    if _ASSIGNMENT.fullmatch(words[0]):
        place.before.append(words[0])
        return 1
    known = _WRAPPERS.get(PurePath(words[0]).name)
    if known is None:
        return 0
    with_value, own, move = known
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        at += 2 if words[at] in with_value else 1
    at += at < len(words) and words[at] == "--"
    at = min(at + own, len(words))
    move(list(words[:at]), place)
    return at


def _dropped(words: list[str], place: _Place) -> None:
    """autotune measures the time, and ends with what it started."""


def _moved_before(words: list[str], place: _Place) -> None:
    place.before += words


def _moved_behind(words: list[str], place: _Place) -> None:
    place.behind += words


def _environment(words: list[str], place: _Place) -> None:
    if len(words) > 1:
        place.before += words


def _limit(words: list[str], place: _Place) -> None:
    found = re.fullmatch(r"([0-9.]+)([smhd]?)", words[-1])
    try:
        limit_s = float(found[1]) * _UNITS[found[2]] if found else 0.0
    except ValueError:
        limit_s = 0.0
    if limit_s > 0:
        place.options += ["--timeout", f"{limit_s:g}s"]


def _affinity(words: list[str], place: _Place) -> None:
    """``taskset [-c] CPUS``: the CPUs belong into a cluster definition."""
    listed = any(re.fullmatch(r"-[a-z]*c[a-z]*|--cpu-list", word) for word in words)
    try:
        cpus = parse_cpus(words[-1]) if listed else _mask(words[-1])
        shown = cpu_list(cpus)
    except ValueError:
        shown = "CPUS"
    place.first.append(f"autotune cluster init NAME --cpus {shown}")
    place.options += ["--cluster", "NAME"]


def _mask(text: str) -> frozenset[int]:
    """The CPUs of a hexadecimal mask."""
    value = int(text.replace(",", ""), 16)
    return frozenset(bit for bit in range(value.bit_length()) if value >> bit & 1)


_Move = Callable[[list[str], _Place], None]
_WRAPPERS: dict[str, tuple[frozenset[str], int, _Move]] = {
    "env": (frozenset({"-u", "-C", "-S", "--unset", "--chdir"}), 0, _environment),
    "time": (frozenset({"-f", "-o", "--format", "--output"}), 0, _dropped),
    "nohup": (frozenset(), 0, _dropped),
    "setsid": (frozenset(), 0, _dropped),
    "exec": (frozenset({"-a"}), 0, _dropped),
    "command": (frozenset(), 0, _dropped),
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


def _shell_text(words: Sequence[str]) -> str | None:
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
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:
            continue
        for at, word in enumerate(words):
            if is_launcher(word) and _begins(words[:at]):
                end = next(
                    (n for n in range(at, len(words)) if set(words[n]) <= _MARKS), len(words)
                )
                return words[at:end]
    return None


def _begins(before: Sequence[str]) -> bool:
    """Whether a command may begin behind these words: wrappers and variables may precede it."""
    starts = [at for at, word in enumerate(before) if word in _JOINS or set(word) <= _MARKS]
    left = list(before[starts[-1] + 1 if starts else 0 :])
    while left:
        taken = _taken(left, _Place())
        if not taken:
            return False
        left = left[taken:]
    return True


def script_of(program: Sequence[str], folder: Path) -> Path | None:
    """The shell script that a command line starts, ``bash job.sh`` or ``./job.sh``; else None.

    ``folder`` is the working directory.
    """
    shell = bool(program) and PurePath(program[0]).name in _SHELLS
    named = [word for word in program[1:] if not word.startswith("-")] if shell else program
    if not named or not (shell or "/" in named[0]):
        return None
    return folder / named[0]


def script_words(program: Sequence[str], command: str, folder: Path) -> str:
    """What to type in place of a script that has a launcher's line; "" for other programs."""
    found = launcher_in_script(program, folder)
    if found is None:
        return ""
    name, line = found
    if not any("$" in word for word in line):
        line = _with_program(line, (), command, None)
    words = " ".join(word if "$" in word else shlex.quote(word) for word in line)
    typed = " ".join(["autotune", *_named(command), "--", words])
    return (
        f"{name} has a line that starts {PurePath(line[0]).name} itself. A script that starts it "
        "would be started once for each rank, each time as a whole job. Give that line, with the "
        f"variables that the script sets before autotune:\n  {typed}"
    )


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
    found = launcher_in(text)
    return None if found is None else (path.name, found)
