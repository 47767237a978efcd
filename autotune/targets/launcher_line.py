"""Launcher lines: a program given with its launcher, ``-- mpirun -np 4 --bind-to none ./cg.A.x``.

What becomes of each option stands in :mod:`autotune.config.launcher`.  An option that is not known
is refused with the corrected line, because a silently dropped option measures another program.  A
launcher behind other words is refused, too (:mod:`autotune.targets.wrapped_launcher`).
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from autotune.config.launcher import Match, launcher_options, options_for
from autotune.errors import UsageError
from autotune.targets.launch_options import OVERSUBSCRIBE, first_match
from autotune.targets.wrapped_launcher import (
    LineParts,
    is_assignment,
    is_launcher,
    launcher_in,
    launcher_in_script,
    shell_text,
    split_wrappers,
)
from autotune.wording import whole_number
from runner import files
from runner.files.paths import is_file, real_path
from runner.mpi.discover import adapter, find_library
from runner.mpi.library import Library

_OF_ONE_MPI = {"mpirun.openmpi", "mpiexec.openmpi", "mpirun.mpich", "mpiexec.mpich"}
"""Names of launchers in distributions with several MPI libraries."""
_MOST_BYTES = 1 << 20
"""Of a file of parameters on the line."""


def as_user_types(words: Sequence[str], launcher: str) -> list[str]:
    """A command line with ``launcher`` as a user would type it: by its name, if the shell finds it.

    ``launcher`` is its path, one of ``words``.
    """
    name = Path(launcher).name
    location = shutil.which(name)
    same = location is not None and real_path(location) == real_path(launcher)
    return [name if same and word == launcher else word for word in words]


@dataclass(frozen=True)
class LauncherLine:
    """The content of a launcher line: ``ranks`` (None: not given), options, and the program."""

    program: tuple[str, ...]
    ranks: int | None = None
    options: tuple[str, ...] = ()
    placement: dict[str, str] = field(default_factory=dict)
    launcher: str | None = None
    """The launcher as it was typed: a name or a path."""
    cores_each: int = 1
    """Cores of each rank."""
    left_out: tuple[str, ...] = ()
    """Options that change what is printed, or what a batch system gives; they are not handed on."""
    oversubscribe: tuple[str, ...] = ()
    """The words that allow more ranks than slots: the option, or the part of the placement that
    has it as a modifier. autotune gives them itself where they are needed on this node."""

    def with_oversubscription(self) -> LauncherLine:
        """The line with the words about oversubscription among its options and its placement."""
        options = [word for word in self.oversubscribe if word.startswith("-")]
        modifiers = [name for name in self.oversubscribe if not name.startswith("-")]
        placement = dict(self.placement)
        for name in modifiers:
            placement[name] = f"{placement.get(name, '')}:{OVERSUBSCRIBE}"
        return replace(self, options=(*self.options, *options), placement=placement)


def parse_launcher_line(
    words: tuple[str, ...],
    command: str = "search",
    ranks: int | None = None,
    library: Library | None = None,
) -> LauncherLine:
    """Split a command line into launcher and program; without a launcher all of it is the program.

    ``command`` and ``ranks`` (the option ``--ranks``) are for messages.  ``library`` is the one
    that is used; None: options of all libraries are understood.  Raises UsageError with all faults
    of a line and the line to give in its place: options that are not understood, no program,
    several programs, and a launcher behind other words.
    """
    if not words:
        raise UsageError(
            f"no program given; expected autotune {command} --ranks N -- PROGRAM ARGS",
            code="program.missing",
        )
    if not is_launcher(words[0]):
        refuse_wrapped_launcher(words, command, ranks=ranks, library=library)
        return LauncherLine(words)
    line, right, refusals = _mend(words, command, library)
    if refusals:
        if right is None:
            raise UsageError("\n".join(map(str, refusals)), code=refusals[0].code)
        proposal = shlex.join(["autotune", *filter(None, [command]), "--", *right])
        reasons = "\n".join(map(str, refusals))
        raise UsageError(f"{reasons}\nThe line to give:\n  {proposal}", code=refusals[0].code)
    return line


def mend(words: Sequence[str], command: str, library: Library | None) -> tuple[str, ...]:
    """The words of a launcher line without its faults; as they are if it cannot be used at all."""
    return _mend(tuple(words), command, library)[1] or tuple(words)


def program_of(words: Sequence[str]) -> tuple[str, ...]:
    """The program behind a launcher with options of any library; () if it cannot be told."""
    line, right, _ = _mend(tuple(words), "", None)
    return () if right is None else line.program


def _mend(
    words: tuple[str, ...], command: str, library: Library | None
) -> tuple[LauncherLine, tuple[str, ...] | None, list[UsageError]]:
    """The content of a launcher line without its faults, its words, and the refusals of faults.

    The words are None if the last refusal names another kind of line to give.
    """
    refusals: list[UsageError] = []
    while True:
        try:
            return _Parser(words, command, library).parse(), words, refusals
        except _LineRefusal as refusal:
            refusals.append(refusal)
            words = refusal.words
        except UsageError as refusal:
            return LauncherLine(words), None, [*refusals, refusal]


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
    place, rest = split_wrappers(words)
    if rest and len(rest) < len(words) and is_launcher(rest[0]):
        raise _inside(words, rest, place, command, library)
    if words and is_assignment(words[0]):
        ranks_option = ["--ranks", str(ranks)] if ranks else []
        behind = [*ranks_option, "--", *launcher, *rest]
        correction = shlex.join([*place.before, "autotune", *_command_words(command), *behind])
        raise UsageError(
            f"{words[0]} is the first word of the program, and no program has that name: no shell "
            f"reads these words. Variables stand before autotune:\n  {correction}",
            code="program.assignment",
        )
    text = shell_text(words)
    if text is not None and (line := launcher_in(text)) is not None:
        raise _inside(words, line, LineParts(), command, library)


def _inside(
    words: Sequence[str],
    line: Sequence[str],
    place: LineParts,
    command: str,
    library: Library | None,
) -> UsageError:
    """The error for ``words``, in which ``line`` begins with a launcher."""
    launch = _with_program(line, place.behind, command, library)
    correction = shlex.join(
        [*place.before, "autotune", *_command_words(command), *place.options, "--", *launch]
    )
    steps = "".join(f"  {one}\n" for one in place.first)
    return UsageError(
        f"the line {shlex.join(words)!r} has the launcher {line[0]} behind other words; autotune "
        "starts the launcher itself, and this line would be started once for each rank, each "
        f"time as a whole job. Give:\n{steps}  {correction}",
        code="launcher.inside",
    )


def _command_words(command: str) -> list[str]:
    return [command] if command else []


def _with_program(
    line: Sequence[str], behind: Sequence[str], command: str, library: Library | None
) -> list[str]:
    """A launcher's line without its faults, with ``behind`` before its program."""
    right = mend(line, command, library)
    try:
        program = parse_launcher_line(right, command, library=library).program
    except UsageError:
        return list(right)
    cut = len(right) - len(program)
    return [*right[:cut], *behind, *right[cut:]]


def script_words(program: Sequence[str], command: str, folder: Path) -> str:
    """What to type in place of a script that has a launcher's line; "" for other programs."""
    script_line = launcher_in_script(program, folder)
    if script_line is None:
        return ""
    name, line = script_line
    if not any("$" in word for word in line):
        line = _with_program(line, (), command, None)
    words = " ".join(word if "$" in word else shlex.quote(word) for word in line)
    correction = " ".join(["autotune", *_command_words(command), "--", words])
    return (
        f"{name} has a line that starts {PurePath(line[0]).name} itself. A script that starts it "
        "would be started once for each rank, each time as a whole job. Give that line, with the "
        f"variables that the script sets before autotune:\n  {correction}"
    )


def chosen_mpi(option: str | None, words: Sequence[str]) -> str | None:
    """The MPI that a command line names; None if it names none.

    It is ``--mpi``, else the launcher that was typed with its path or by a name that only one MPI
    has.  Raises UsageError if both are given and differ.
    """
    launcher = words[0] if words and is_launcher(words[0]) else None
    launcher_path = launcher
    if launcher_path in _OF_ONE_MPI:
        launcher_path = shutil.which(launcher_path) or launcher_path
    if launcher_path is None or os.sep not in launcher_path or is_replaced(launcher_path):
        return option
    if option is not None and not same_library(find_library(option), find_library(launcher_path)):
        raise UsageError(
            f"--mpi {option} and the launcher {launcher} belong to different MPI "
            "libraries; give only one of them",
            code="launcher.conflict",
        )
    return option or launcher_path


def is_replaced(launcher: str) -> bool:
    """Whether the library's own launcher starts the ranks in place of this one (srun)."""
    name = PurePath(launcher).name
    return any(name in one.file.launchers for one in launcher_options())


def same_library(one: Library, other: Library) -> bool:
    """Whether both are the same installation of the same version."""
    return (one.family, one.version) == (other.family, other.version) and (
        real_path(one.bin) == real_path(other.bin)
    )


@dataclass(frozen=True)
class _Fault:
    """Words of a line that cannot be used, by their places in the line, and why.

    ``instead`` are words that mean the same to this launcher; often there are none.
    """

    at: int
    count: int
    text: str
    reason: str
    instead: tuple[str, ...] = ()
    code: str = field(kw_only=True)


class _LineRefusal(UsageError):
    """A launcher line that is not used; ``words`` are the line without this fault."""

    def __init__(self, message: str, words: Sequence[str], *, code: str) -> None:
        super().__init__(message, code=code)
        self.words = tuple(words)


class _Parser:
    def __init__(self, words: tuple[str, ...], command: str, library: Library | None) -> None:
        self.words = words
        self.command = command
        self.library = library
        self.options_of = options_for(words[0], library)
        self.at = 1
        self.ranks: int | None = None
        self.cores_each = 1
        self.options: list[str] = []
        self.placement: dict[str, str] = {}
        self.oversubscribe: list[str] = []
        self.left_out: list[str] = []
        self.faults: list[_Fault] = []

    def parse(self) -> LauncherLine:
        while self.at < len(self.words) and self.words[self.at].startswith("-"):
            self.at += self._option(self.words[self.at :])
        program = self.words[self.at :]
        if self.faults:
            raise self._refusal()
        if not program:
            raise _LineRefusal(
                f"the line {shlex.join(self.words)!r} has a launcher but no program after it",
                (*self.words, "PROGRAM", "ARGS"),
                code="program.missing",
            )
        if is_launcher(program[0]):
            raise _LineRefusal(
                f"the line {shlex.join(self.words)!r} has a launcher inside a launcher; give "
                "one launcher and the program",
                program,
                code="launcher.inside",
            )
        if ":" in program:
            raise _LineRefusal(
                "several programs in one launch (':' on the line) cannot be tuned; give one of "
                "them, which is another job",
                self.words[: self.words.index(":", self.at)],
                code="launcher.several_programs",
            )
        refuse_wrapped_launcher(program, self.command, self.words[: self.at], library=self.library)
        return LauncherLine(
            program,
            self.ranks,
            tuple(self.options),
            self.placement,
            self.words[0],
            self.cores_each,
            tuple(self.left_out),
            tuple(self.oversubscribe),
        )

    def _option(self, words: Sequence[str]) -> int:
        """Take in the option with which ``words`` begin; returns its number of words."""
        match = first_match(self.options_of, words)
        if match is None:
            return self._unknown(words)
        if not match.complete:
            form = " ".join([match.option.name, *match.option.values])
            reason = f"has too few words behind it; expected {form}"
            missing = _Fault(self.at, len(words), words[0], reason, code="launcher.value_missing")
            self.faults.append(missing)
            return len(words)
        if match.option.treatment in _COUNTS and (fault := self._count_fault(match, words[0])):
            self.faults.append(fault)
            return match.count
        if reason := self._take(match):
            text = shlex.join(words[: match.count])
            code = "launcher.option_unknown"
            self.faults.append(_Fault(self.at, match.count, text, reason, code=code))
        return match.count

    def _count_fault(self, match: Match, first: str) -> _Fault | None:
        """The fault of an option whose number is none; the line to give has one that is.

        ``first`` is the option as it was typed.
        """
        (text,) = match.values
        if whole_number(text, _MOST):
            return None
        what, code, usual = _COUNTS[match.option.treatment]
        name = first if match.count > 1 else match.option.name
        option_text = shlex.join([name, text])
        reason = f"{what} {text!r} is not a whole number of 1 or more"
        instead = (name, str(usual()))
        return _Fault(self.at, match.count, option_text, reason, instead, code=code)

    def _take(self, match: Match) -> str:
        """Take in an option with its values; returns why it is refused, "" if it is not."""
        option, values = match.option, match.values
        option_words = [option.name, *values]
        match option.treatment:
            case "refused":
                return option.reason
            case "ranks":
                self.ranks = int(values[0])
            case "cores":
                self.cores_each = int(values[0])
            case "parameter":
                self.options += ["--mca", *values]
            case "variable" if option.values[0] == "NAME":
                name, _, value = values[0].partition("=")
                self.options += [option.name, name, *(values[1:] or [value])]
            case "variable" | "kept" | "places":
                self.options += option_words
            case "variables":
                return self._export(values[0])
            case "parameter_file":
                return self._parameters_of(values[0])
            case "placement":
                return self._place(match)
            case "own":
                self.oversubscribe += [] if option.name.endswith("root") else [option.name]
            case "dropped":
                self.left_out.append(shlex.join(option_words))
        return ""

    def _place(self, match: Match) -> str:
        option, values = match.option, match.values
        if option.choices:
            parts = values[0].split(",")
            if unknown := [part for part in parts if part not in option.choices]:
                return f"{unknown[0]!r} is not understood; {', '.join(option.choices)} are"
        for kind, policy in match.placement.items():
            self._set_placement(kind, policy)
        return ""

    def _set_placement(self, kind: str, policy: str) -> None:
        # autotune itself gives ":oversubscribe" if there are more ranks than cores.
        parts = [p for p in policy.split(":") if p.lower() != OVERSUBSCRIBE]
        if len(parts) < len(policy.split(":")):
            self.oversubscribe.append(kind)
        policy = ":".join(parts)
        if policy:
            self.placement[kind] = policy

    def _export(self, text: str) -> str:
        """srun's ``--export``: variables of their own, beside those of the environment."""
        names = text.split(",")
        own = dict(name.split("=", 1) for name in names if "=" in name)
        if "NONE" in names or not ("ALL" in names or len(own) == len(names)):
            return "it hides the environment from the ranks; expected ALL and NAME=VALUE"
        if self.library is None:
            self.options += [word for name in own for word in ("-x", f"{name}={own[name]}")]
        else:
            self.options += adapter(self.library).rank_environment(own)
        return ""

    def _parameters_of(self, path: str) -> str:
        """The options in a file of parameters, in its place: a parameter is given once."""
        try:
            text = files.read_text(Path(path), _MOST_BYTES)
        except (OSError, ValueError) as problem:
            return f"{path} cannot be read: {problem}"
        for number, line in enumerate(text.splitlines(), 1):
            try:
                words = shlex.split(line, comments=True)
            except ValueError as problem:
                return f"{path}, line {number}: {problem}"
            while words:
                match = first_match(self.options_of, words) if words[0].startswith("-") else None
                setting = match is not None and match.option.treatment in ("parameter", "variable")
                if match is None or not match.complete or not setting:
                    forms = "--mca NAME VALUE or -x NAME=VALUE"
                    return f"{path}, line {number}: {words[0]!r}; expected {forms}"
                self._take(match)
                words = words[match.count :]
        return ""

    def _unknown(self, words: Sequence[str]) -> int:
        """Note an option that this launcher does not have; returns its number of words.

        Of an option that no launcher has, the next word is taken for its value unless it looks like
        a program or another option.
        """
        match = first_match(launcher_options(), words)
        count, instead = (match.count, self._translate(match)) if match else (1, ())
        if match is None and len(words) > 2 and "=" not in words[0]:
            behind = words[1]
            program = shutil.which(behind) or is_file(Path(behind)) or is_launcher(behind)
            count += not (program or behind.startswith("-"))
        name = self.options_of[0].name if len(self.options_of) == 1 else "the launcher"
        reason = "another launcher has it" if match else "no such option is known"
        option_text = shlex.join(words[:count])
        reason += f"; here it is {shlex.join(instead)}" if instead else f" ({name})"
        fault = _Fault(self.at, count, option_text, reason, instead, code="launcher.option_unknown")
        self.faults.append(fault)
        return count

    def _translate(self, match: Match) -> tuple[str, ...]:
        """The words for a variable of another launcher's option; () for other options."""
        if match.option.treatment != "variable" or not match.complete:
            return ()
        name, _, value = "=".join(match.values).partition("=")
        options = (option for table in self.options_of for option in table.file.options())
        own = next((one for one in options if one.treatment in ("variable", "variables")), None)
        if own is None:
            return ()
        values = (name, value) if len(own.values) == 2 else (f"{name}={value}",)
        return (own.name, *values)

    def _refusal(self) -> _LineRefusal:
        """All faults of the options in one message, with the line that has none of them."""
        rest, at = list[str](), 0
        for fault in self.faults:
            rest += [*self.words[at : fault.at], *fault.instead]
            at = fault.at + fault.count
        rest += self.words[at:]
        faults = "".join(f"\n  {fault.text}: {fault.reason}" for fault in self.faults)
        return _LineRefusal(
            "options of the launcher that cannot be used; without them another job would be "
            f"measured:{faults}\n"
            "Fixed launch options of a cluster belong into its definition (launch options in "
            "configs/clusters/NAME.toml).",
            rest,
            code=self.faults[0].code,
        )


_COUNTS: dict[str, tuple[str, str, Callable[[], int]]] = {
    "ranks": ("the number of ranks", "ranks.range", lambda: len(os.sched_getaffinity(0))),
    "cores": ("the number of cores", "layout.range", lambda: 1),
}
"""Treatments of options with a number: what it is, the code of its fault, and a usual number."""
_MOST = 10**9
