"""The launch line to be checked: its parts as typed, and the line with a part changed.

Unlike :mod:`autotune.targets.launcher_line`, which translates a line for a study, nothing is
refused or left out here: an option that no launcher has is a part, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from autotune.config.launcher import LauncherOptions, Treatment, options_for
from autotune.errors import UsageError
from autotune.targets.launch_options import first_match
from autotune.targets.wrapped_launcher import is_assignment, is_launcher, split_wrappers
from runner.mpi.library import Library


@dataclass(frozen=True)
class LineOption:
    """One option as typed: ``words`` are its name and its values, ``values`` the values alone.

    ``name`` is the option's own name, as the launcher's file has it, or the typed word if
    ``treatment`` is None: no file has the option.
    """

    name: str
    words: tuple[str, ...]
    values: tuple[str, ...] = ()
    treatment: Treatment | None = None

    @property
    def bare(self) -> str:
        """The name without dashes."""
        return self.name.lstrip("-")


@dataclass(frozen=True)
class LaunchLine:
    """A launch line: ``before`` are the words before the launcher, ``rest`` those behind the first
    ``:`` of a launch of several programs (with it)."""

    before: tuple[str, ...]
    launcher: str
    options: tuple[LineOption, ...]
    program: tuple[str, ...]
    rest: tuple[str, ...] = ()
    variable_words: tuple[str, ...] = ()
    """The option of the launcher that gives ranks a variable, such as ``-x NAME=VALUE``."""

    @property
    def words(self) -> tuple[str, ...]:
        """The whole line."""
        options = (word for option in self.options for word in option.words)
        return (*self.before, self.launcher, *options, *self.program, *self.rest)

    @property
    def launcher_name(self) -> str:
        """The launcher without its path."""
        return PurePath(self.launcher).name

    @property
    def is_srun(self) -> bool:
        """True if Slurm starts the ranks."""
        return self.launcher_name == "srun"

    @property
    def assignments(self) -> dict[str, str]:
        """The variables that stand before the launcher, behind ``env`` too."""
        pairs = (word.partition("=") for word in self.before if is_assignment(word))
        return {name: value for name, _, value in pairs}

    @property
    def variables(self) -> dict[str, str]:
        """The variables that options of the launcher give the ranks."""
        variables: dict[str, str] = {}
        for option in self.options:
            if option.treatment == "variable" and option.values:
                name, _, value = "=".join(option.values).partition("=")
                variables[name] = value
            elif option.treatment == "variables":
                parts = option.values[0].split(",") if option.values else []
                variables |= {p.split("=", 1)[0]: p.split("=", 1)[1] for p in parts if "=" in p}
        return variables

    @property
    def parameters(self) -> tuple[LineOption, ...]:
        """The options ``--mca NAME VALUE`` and alike, of every layer."""
        return tuple(one for one in self.options if one.bare.endswith("mca"))

    @property
    def ranks(self) -> int | None:
        """The number of ranks that an option gives; None if none does, or not a number."""
        for option in reversed(self.options):
            if option.treatment == "ranks" and option.values and option.values[0].isdecimal():
                return int(option.values[0])
        return None

    def option(self, *names: str) -> LineOption | None:
        """The last option with one of these names, given without dashes; None if there is none."""
        return next((one for one in reversed(self.options) if one.bare in names), None)

    def with_options(self, *words: str) -> LaunchLine:
        """The line with one more option, behind the others."""
        return replace(self, options=(*self.options, LineOption(words[0], words, words[1:])))

    def with_first_option(self, *words: str) -> LaunchLine:
        """The line with one more option, before the others."""
        return replace(self, options=(LineOption(words[0], words, words[1:]), *self.options))

    def without(self, *names: str) -> LaunchLine:
        """The line without the options of these names, given without dashes."""
        return replace(self, options=tuple(one for one in self.options if one.bare not in names))

    def with_replaced(self, old: LineOption, *words: str) -> LaunchLine:
        """The line with other words in the place of an option; none: the option is left out."""
        new = (LineOption(words[0], words, words[1:]),) if words else ()
        at = self.options.index(old)
        return replace(self, options=(*self.options[:at], *new, *self.options[at + 1 :]))

    def with_launcher(self, launcher: str) -> LaunchLine:
        """The line with another launcher."""
        return replace(self, launcher=launcher)

    def with_ranks(self, ranks: int) -> LaunchLine:
        """The line with another number of ranks."""
        old = next((one for one in reversed(self.options) if one.treatment == "ranks"), None)
        if old is None:
            return self.with_first_option("-n", str(ranks))
        if len(old.words) == 2:
            return self.with_replaced(old, old.words[0], str(ranks))
        return self.with_replaced(old, "-n", str(ranks))

    def with_program(self, *program: str) -> LaunchLine:
        """The line with another program, which is the only one."""
        return replace(self, program=program, rest=())

    def with_variable(self, name: str, value: str) -> LaunchLine:
        """The line that gives every rank a variable, where it stands now or by an option."""
        if name in self.assignments and name not in self.variables:
            old = f"{name}={self.assignments[name]}"
            before = tuple(f"{name}={value}" if word == old else word for word in self.before)
            return replace(self, before=before)
        line = self.without_variable(name)
        option, *form = self.variable_words
        if form[0] == "LIST":
            return line._exported(f"{name}={value}")
        return line.with_options(
            option, *([name, value] if len(form) == 2 else [f"{name}={value}"])
        )

    def with_assignment(self, name: str, value: str) -> LaunchLine:
        """The line with a variable before the launcher, for the launcher itself."""
        before = tuple(word for word in self.before if not word.startswith(f"{name}="))
        return replace(self, before=(f"{name}={value}", *before))

    def behind(self, *words: str) -> LaunchLine:
        """The line behind another command, such as ``taskset -c 0-1``."""
        return replace(self, before=(*self.before, *words))

    def without_variable(self, name: str) -> LaunchLine:
        """The line without the option that gives ranks this variable."""
        options = tuple(
            one
            for one in self.options
            if not (one.treatment == "variable" and "=".join(one.values).split("=")[0] == name)
        )
        return replace(self, options=options)

    def _exported(self, assignment: str) -> LaunchLine:
        """The line of srun with ``--export``, which keeps what it hands on now."""
        old = self.option("export")
        if old is None:
            return self.with_options(f"--export=ALL,{assignment}")
        name = assignment.partition("=")[0]
        parts = [part for part in old.values[0].split(",") if part.split("=")[0] != name]
        return self.with_replaced(old, f"--export={','.join([*parts, assignment])}")


def parse_line(words: Sequence[str], library: Library | None = None) -> LaunchLine:
    """The parts of a launch line; raises UsageError if no launcher or no program is on it.

    ``library`` is the launcher's, whose options count; None: those of all libraries.
    """
    _, line = split_wrappers(words)
    if not line or not is_launcher(line[0]):
        raise UsageError(
            f"{words[0] if words else 'the line'!r} starts no MPI program: expected mpirun, "
            "mpiexec, mpiexec.hydra, prterun or srun, perhaps behind variables and wrappers",
            code="check.no_launcher",
        )
    before = tuple(words[: len(words) - len(line)])
    tables = options_for(line[0], library)
    options, at = [], 1
    while at < len(line) and line[at].startswith("-"):
        option = _option(line[at:], tables)
        options.append(option)
        at += len(option.words)
    program = tuple(line[at:])
    end = program.index(":") if ":" in program else len(program)
    if not program[:end]:
        raise UsageError("the line has a launcher but no program after it", code="program.missing")
    variable = _variable_option(tables)
    return LaunchLine(before, line[0], tuple(options), program[:end], program[end:], variable)


def _option(words: Sequence[str], tables: Sequence[LauncherOptions]) -> LineOption:
    """The option with which ``words`` begin."""
    match = first_match(tables, words)
    if match is None:
        return LineOption(words[0].partition("=")[0], (words[0],))
    typed = tuple(words[: match.count])
    return LineOption(match.option.name, typed, match.values, match.option.treatment)


def _variable_option(tables: Sequence[LauncherOptions]) -> tuple[str, ...]:
    """The first option of the launcher that gives ranks a variable, with its values."""
    options = (option for table in tables for option in table.file.options())
    kinds = ("variable", "variables")
    own = next((one for one in options if one.treatment in kinds), None)
    return ("-x", "NAME=VALUE") if own is None else (own.name, *own.values)


def rank_environment(
    line: LaunchLine, environment: Mapping[str, str], hidden: Collection[str] = ()
) -> dict[str, str]:
    """The variables of every rank, as far as the line says: those of the launcher, and its options.

    ``environment`` is that in which the line was typed; ``hidden`` are names that do not reach the
    ranks.
    """
    launcher = {**environment, **line.assignments}
    return {k: v for k, v in launcher.items() if k not in hidden} | line.variables
