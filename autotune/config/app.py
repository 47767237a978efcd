"""Applications: what is run, and how the metric and the correctness of a run are read.

Each application is one file ``configs/apps/NAME.toml``. A program given on the command line becomes
the same :class:`App` without a file.

The models are :class:`Input`, :class:`CheapForm` and :class:`App`. Then follow the checks of an
application. Its program and the words of its command are in :mod:`autotune.config.app_program`.
"""

from __future__ import annotations

import operator
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from autotune.config.app_program import (
    PLACEHOLDER,
    executable,
    fill,
    not_a_program,
    program_name,
    readable_file,
)
from autotune.config.find import ConfigFile, find_config, list_configs
from autotune.config.input_files import Effect, InputRule, check_input_files
from autotune.config.pattern import check_figure, check_pattern
from autotune.config.validated import read_toml
from autotune.errors import UsageError
from runner.types import MetricChoice


class Input(BaseModel):
    """One named input of an application."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    description: str = ""
    """What it is, for ``autotune apps``."""
    args: tuple[str, ...] = ()
    """Words after the command."""
    ranks: int | None = Field(default=None, ge=1)
    """The usual number of ranks, instead of the application's."""
    timeout_s: float | None = Field(default=None, gt=0)
    """Time limit of a run in seconds, instead of the application's."""
    facts: dict[str, int] = Field(default_factory=dict)
    """Numbers of this input that rules of a space may use, such as the cells of a grid."""
    values: dict[str, str] = Field(default_factory=dict)
    """Replacements of ``{name}`` in the command and the files for this input."""
    stdin: str | None = None
    """A file that is the standard input of rank 0 for this input."""
    input_files: dict[str, str] = Field(default_factory=dict, exclude_if=operator.not_)
    """Texts by file name, in addition to the application's; a table `[inputs.NAME.input_files]`."""


class CheapForm(BaseModel):
    """How an input is run in less time, to screen settings: exactly one of the three is given."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    input: str | None = None
    """Another input of the same application."""
    args: tuple[str, ...] = ()
    """Words after the command and the input's own, such as a smaller number of iterations."""
    values: dict[str, str] = Field(default_factory=dict)
    """Replacements of ``{name}`` in the command, instead of the input's own."""

    def __str__(self) -> str:
        if self.input is not None:
            return f"input {self.input}"
        return " ".join(self.args or (f"{name} = {value}" for name, value in self.values.items()))


class App(BaseModel):
    """A program with its inputs, metric and verification.

    ``command`` may contain ``{python}``, ``{input}``, a name among the input's ``values``,
    ``{NAME}`` for an environment variable, and ``{program}``. ``{program}`` is the first of
    ``files`` that exists, for programs that the user provides; ``files`` may contain ``{ranks}``,
    too.

    ``metric`` is a regular expression with one group that holds a time, or ``json:KEY``;
    ``metric_rate`` is one that holds a rate, of which a larger one is better. Without both, wall
    time counts. ``verify`` is a regular expression or ``json:KEY``; without it, the exit code
    decides. ``metric_choice`` says which figure counts if a run prints several; without it, the
    largest time or the smallest rate.

    ``stdin`` is a file for the standard input of rank 0. It may contain what ``files`` may; a
    relative path starts at the directory in which autotune is started.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    name: str
    """What ``--app`` calls it; the file has this name, too."""
    description: str = ""
    """What it is, for ``autotune apps``."""
    command: tuple[str, ...] = Field(min_length=1)
    """Program and arguments; ``{python}``, ``{input}``, ``{program}``, a value of the input and
    ``{NAME}`` for an environment variable are replaced."""
    files: tuple[str, ...] = ()
    """Where the program may be, if the user provides it; the first one that exists is
    ``{program}``. A name without a slash is looked for on PATH."""
    howto: str = ""
    """How to get the program; shown when the program is missing."""
    metric: str | None = None
    """The pattern of a time with one group, or ``json:KEY``; without it the wall time counts."""
    metric_rate: str | None = None
    """The pattern of a rate, of which a larger one is better."""
    verify: str | None = None
    """A regular expression that the output must contain, or ``json:KEY``."""
    verify_absent: str | None = None
    """A regular expression that the output must not contain."""
    exit_codes: tuple[Annotated[int, Field(ge=0, le=255)], ...] = (0,)
    """Exit codes of a launch in which nothing failed."""
    metric_choice: MetricChoice | None = None
    """Which figure counts if a run prints several."""
    stdin: str | None = None
    """A file that is the standard input of rank 0."""
    default_input: str = "default"
    """The input without ``--input``."""
    default_ranks: int | None = Field(default=None, ge=1)
    """The number of ranks without ``--ranks``."""
    timeout_s: float | None = Field(default=None, gt=0)
    """Time limit of a run in seconds."""
    tunable: tuple[str, ...] = ()
    """Options that spaces may add to the program; a space names them in ``requires``.

    "mate" means the options of runner.runtimes.mate, "openmp" a variant with OpenMP threads.
    """
    spaces: dict[str, str] = Field(default_factory=dict)
    """The program's own form of a space, by the general name: mate -> mate-cannon."""
    inputs: dict[str, Input] = Field(default_factory=dict)
    """The inputs, by name; without any, only ``default_input`` is one."""
    fidelity: dict[str, CheapForm] = Field(default_factory=dict)
    """The cheap form of an input, by the input's name."""
    input_files: dict[str, str] = Field(default_factory=dict, exclude_if=operator.not_)
    """Texts by file name. Each run gets a folder of its own with these files; `{{name}}` in them is
    a value of the input, a placeholder, or `ranks`."""
    placeholders: dict[str, Effect] = Field(default_factory=dict, exclude_if=operator.not_)
    """Values of input files that a setting may have, by name. "none": another value cannot change
    the result; "result": it can, and then the application must verify it."""
    rules: tuple[InputRule, ...] = Field(default=(), exclude_if=operator.not_)
    """Rules on placeholders by which every setting solves the same problem; tables `[[rules]]`."""
    before: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    """A command that is executed before every run in its folder, as with `--before`."""
    figures: str | None = Field(default=None, exclude_if=operator.not_)
    """Name of a file of `configs/figures`: its first figure counts, with its words for a right
    or wrong result."""
    literal: bool = False
    """Whether braces in ``command`` belong to the program and are not placeholders."""

    def program(self, input_name: str | None, ranks: int | None = None) -> tuple[str, ...]:
        """The argument list for one input; ``ranks`` is for programs built for a number of ranks.

        Raises UsageError for an unknown input, and if the program is not found.
        """
        name = input_name or self.usual_input
        run_input = self.input(input_name)
        if self.literal:
            return (*self.command, *run_input.args)
        values = self._values(name)
        if ranks is not None:
            values["ranks"] = f"{ranks}"
        if self.files:
            values["program"] = executable(self.files, values, self.name, self.howto)
        words = (fill(word, values, self.name, self.howto) for word in self.command)
        return (*words, *run_input.args)

    def preparation(self, input_name: str | None) -> tuple[str, ...]:
        """The command that is executed before every run; empty if there is none."""
        values = self._values(input_name or self.usual_input)
        return tuple(fill(word, values, self.name, self.howto) for word in self.before)

    def _values(self, input_name: str) -> dict[str, str]:
        """What may stand in the words of the application's commands."""
        return {"python": sys.executable, "input": input_name, **self.input(input_name).values}

    def texts(self, input_name: str | None) -> dict[str, str]:
        """The texts of the input files by name, with their placeholders."""
        return {**self.input_files, **self.input(input_name).input_files}

    def standard_input(self, input_name: str | None, ranks: int | None = None) -> str | None:
        """The absolute path of the file that rank 0 reads; None if standard input is empty.

        Raises UsageError for a file that does not exist or cannot be read.
        """
        word = self.input(input_name).stdin or self.stdin
        if word is None:
            return None
        values = {"input": input_name or self.usual_input, "ranks": f"{ranks}"}
        values |= self.input(input_name).values
        place = word if self.literal else fill(word, values, self.name, self.howto)
        return readable_file(place, f"stdin of app {self.name!r}")

    def space(self, name: str) -> str:
        """The name of a space (parts joined by ``+``) with the program's own form of each part."""
        return "+".join(self.spaces.get(part.strip(), part) for part in name.split("+"))

    @property
    def figure(self) -> str | None:
        """The pattern of the program's own figure, time or rate; None: wall time counts."""
        return self.metric if self.metric_rate is None else self.metric_rate

    @property
    def usual_input(self) -> str:
        """The input that is used if none is named: ``default_input``, or the only input."""
        if self.default_input not in self.inputs and len(self.inputs) == 1:
            return next(iter(self.inputs))
        return self.default_input

    def input(self, input_name: str | None) -> Input:
        """The input of that name (None: the usual input).

        Raises UsageError, with the known inputs, for an unknown name.
        """
        name = input_name or self.usual_input
        if not self.inputs and input_name in (None, self.default_input):
            return Input()
        if name not in self.inputs:
            have = ", ".join(self.inputs) or "none"
            hint = "" if input_name else " (default_input of its file, where none is named)"
            raise UsageError(
                f"app {self.name!r} has no input {name!r}{hint}; its inputs: {have}",
                code="app.input_unknown",
            )
        return self.inputs[name]

    def cheap(self, input_name: str | None) -> tuple[App, str]:
        """The application that runs an input in its cheap form, and the name of its input.

        Raises UsageError if the application's file declares no cheap form of that input.
        """
        if self.literal:
            raise UsageError(
                "a program on the command line has no cheap form; write the application's file "
                "configs/apps/NAME.toml with a table [fidelity.default] and use --app NAME "
                "(docs/howto/application-owner.md), or leave out --fidelity",
                code="app.no_cheap_form",
            )
        name = input_name or self.usual_input
        whole = self.input(input_name)
        form = self.fidelity.get(name)
        if form is None:
            have = ", ".join(self.fidelity) or "none"
            raise UsageError(
                f"app {self.name!r} declares no cheap form of its input {name!r}; inputs with one: "
                f"{have}.\nDeclare it in the application's file configs/apps/NAME.toml, as a table "
                f'[fidelity.{name}] with args = ["--iterations", "100"], or input = "NAME"; or '
                "leave out --fidelity",
                code="app.no_cheap_form",
            )
        if form.input is not None:
            return self, form.input
        # The name differs, so that no list of studies takes one form for the other.
        values = {"input": name, **whole.values, **form.values}
        cheap_input = whole.model_copy(update={"args": (*whole.args, *form.args), "values": values})
        cheap = f"{name} ({form})"
        return self.model_copy(update={"inputs": {**self.inputs, cheap: cheap_input}}), cheap


def require_tunable(app: App, space: str, options: Iterable[str]) -> None:
    """Refuse a space whose options the program does not understand: it would fail or ignore them.

    Raises UsageError with the names of the applications that understand the options.
    """
    missing = sorted(set(options) - set(app.tunable))
    if not missing:
        return
    words = ", ".join(f'"{name}"' for name in missing)
    able = [file.name for file in list_configs("apps") if _declares(file, missing)]
    raise UsageError(
        f"space {space} adds program options that {app.name!r} is not known to "
        f"understand ({words}).\nApplications that do: {', '.join(able) or 'none'}.  "
        f"If yours does, write tunable = [{words}] in its file configs/apps/NAME.toml "
        "and use --app NAME.",
        code="space.program_options",
    )


def _declares(file: ConfigFile, names: list[str]) -> bool:
    try:
        app = read_toml(file.text, file.path, App)
    except UsageError:
        return False  # The file of another application is damaged; this check does not concern it.
    return set(names) <= set(app.tunable)


def check_fidelity(where: str, app: App) -> None:
    """Check the cheap forms of an application before anything runs.

    Raises UsageError, which begins with ``where``, for a form of an unknown input, and for one
    without exactly one key or without an effect.
    """
    inputs = list(app.inputs or (app.default_input,))
    for name, form in app.fidelity.items():
        at = f"{where}: fidelity.{name}"
        if name not in inputs:
            raise UsageError(
                f"{at}: there is no input {name!r}; expected one of {', '.join(inputs)}",
                code="app.cheap_form",
            )
        form_keys = [key for key in ("input", "args", "values") if getattr(form, key)]
        if len(form_keys) != 1:
            raise UsageError(
                f"{at}: found {' and '.join(form_keys) or 'nothing'}; expected exactly one of "
                "input, args and values",
                code="app.cheap_form",
            )
        if form.input is not None:
            _check_cheap_input(at, app, name, form.input)
        _check_cheap_values(at, app, name, form)


def _check_cheap_input(at: str, app: App, name: str, cheap: str) -> None:
    others = [other for other in app.inputs if other != name]
    if cheap not in others:
        raise UsageError(
            f"{at}.input: {cheap!r} is not another input of the application; expected one of "
            f"{', '.join(others) or 'none: it has no other'}",
            code="app.cheap_form",
        )
    own, less = app.inputs[name].ranks, app.inputs[cheap].ranks
    if own != less:
        raise UsageError(
            f"{at}.input: input {cheap!r} has ranks = {less or 'unset'} and {name!r} has "
            f"{own or 'unset'}; expected the same number, since both are run with the same ranks",
            code="app.cheap_form",
        )


def _check_cheap_values(at: str, app: App, name: str, form: CheapForm) -> None:
    own = app.inputs[name].values if name in app.inputs else {}
    placeholders = {place for word in app.command for place in PLACEHOLDER.findall(word)}
    for key, value in form.values.items():
        if key not in placeholders:
            raise UsageError(
                f"{at}.values.{key}: the command has no {{{key}}}, so this changes nothing; "
                f"expected one of {', '.join(sorted(placeholders)) or 'none: it has no places'}",
                code="app.cheap_form",
            )
        if own.get(key) == value:
            raise UsageError(
                f"{at}.values.{key}: {value!r} is also the value of the whole input; expected "
                "another one, with which the program takes less time",
                code="app.cheap_form",
            )


def load_app(name: str) -> App:
    """The application ``name``, or the one in the file of that path.

    Raises UsageError with the file, the key and what was expected.
    """
    file = find_config("apps", name)
    app = read_toml(file.text, file.path, App)
    where = (f"{file.path}: metric", f"{file.path}: metric_rate")
    check_figure(app.metric, app.metric_rate, *where)
    check_pattern(f"{file.path}: verify", app.verify, 0)
    check_pattern(f"{file.path}: verify_absent", app.verify_absent, 0)
    check_fidelity(str(file.path), app)
    for variant in app.inputs or (None,):
        at = f"{file.path}: input_files" + (f" of input {variant}" if variant else "")
        check_input_files(at, app.texts(variant), app.placeholders)
    return app


def app_from_command(
    program: tuple[str, ...],
    metric: str | None,
    verify: str | None,
    metric_rate: str | None = None,
) -> App:
    """An App for a program given on the command line; raises UsageError if it cannot be started."""
    first = program[0]
    place = shutil.which(first)
    if place is None:
        raise UsageError(not_a_program(first), code="program.not_found")
    check_figure(metric, metric_rate, "--metric", "--metric-rate")
    check_pattern("--verify", verify, 0)
    words = (str(Path(place).absolute()), *program[1:])
    return App(
        name=program_name(program),
        command=words,
        metric=metric,
        metric_rate=metric_rate,
        verify=verify,
        default_input="",
        literal=True,
    )
