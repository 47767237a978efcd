"""The list of commands; the module of a command is imported when the command is called.

So a command does not wait for imports of another one (pandas, scikit-learn, plots), and help needs
none of them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from autotune.cli.options import opt

HELP = (
    "Find the start options (MCA parameters, mapping, binding, ...) that make an "
    "MPI program faster on this machine, and prove the gain with few runs."
)

COMMANDS = {
    "search": "search:search",
    "worker": "worker:worker",
    "status": "status:status",
    "run": "run:run",
    "compare": "compare:compare",
    "check": "check:check",
    "noise": "noise:noise",
    "explore": "explore:explore",
    "features": "features:features",
    "train": "train:train",
    "predict": "predict:predict",
    "anova": "anova:anova",
    "classwide": "classwide:classwide",
    "calibrate": "calibrate:calibrate",
    "collectives": "collectives:collectives",
    "importance": "importance:importance_of",
    "studies": "studies:studies",
    "show": "show:show",
    "export": "export:export",
    "store": "store_commands:store",
    "report": "report:report",
    "ui": "ui:ui",
    "apps": "cluster_commands:apps",
    "doctor": "doctor:doctor",
    "explain": "explain:explain",
    "publish": "publish:publish",
    "unpublish": "unpublish:unpublish",
    "verify-published": "verify_published:verify_published",
    "cluster": "cluster_commands:cluster",
    "dataset": "dataset_commands:dataset",
    "space": "space_commands:space",
    "mate": "mate_commands:mate",
    "evaluate": "evaluate:evaluate",
    "schema": "schema:schema",
    "testbed": "testbed_commands:testbed",
}
"""The module of each command and the name in it: a function, or a typer.Typer with commands."""


def build() -> Callable[..., Any]:
    """The whole command-line interface as one callable."""
    app = _typer(completion=True, name="autotune", cls=_Group, help=HELP, no_args_is_help=True)
    app.callback()(_root)
    command: Any = typer.main.get_command(app)
    _convert_lightly(command)
    return command  # type: ignore[no-any-return]


def summary(name: str) -> str:
    """The first sentence of a command's help, read from the source without importing it."""
    module, _, attribute = COMMANDS[name].partition(":")
    spec = find_spec(f"autotune.cli.{module}")
    for node in ast.parse(Path(str(spec and spec.origin)).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == attribute:
            return (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ")
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == attribute:
            keywords = {k.arg: k.value for k in getattr(node.value, "keywords", [])}
            return str(ast.literal_eval(keywords["help"]))
    raise LookupError(f"autotune.cli.{module} has no {attribute}")


def _typer(completion: bool = False, **options: Any) -> typer.Typer:
    return typer.Typer(
        add_completion=completion,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **options,
    )


class _Lazy(Mapping[str, Any]):
    """The commands by name; a command is imported on access."""

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __getitem__(self, name: str) -> Any:
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(import_module(f"autotune.cli.{module}"), attribute)
        holder = _typer()
        holder.callback()(_nothing)
        if isinstance(command, typer.Typer):
            holder.add_typer(command, name=name, cls=_Subgroup)
        else:
            # The words of a launch line are no options of autotune.
            settings = getattr(command, "context_settings", None)
            holder.command(name, context_settings=settings)(command)
        group: Any = typer.main.get_command(holder)
        return _plain(group.commands[name])


def _plain(command: Any) -> Any:
    """The command; its help shows arguments as manual pages do, and plain values load no pydantic.

    So ``[-- PROGRAM ARGS]`` for ``[[-- PROGRAM ARGS]]...`` and ``STUDY`` for ``STUDY <str>``.
    """
    for below in getattr(command, "commands", {}).values():
        _plain(below)
    _convert_lightly(command)
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            several = "..." if parameter.nargs != 1 else ""
            parameter.metavar = parameter.metavar or parameter.name.upper() + several
            parameter.display_type_rich = _no_type
            parameter.get_usage_pieces = partial(_usage, parameter)
    return command


def _convert_lightly(command: Any) -> None:
    """Let the parameters of a command, its ``--help`` included, convert as :class:`_Conversion`."""
    parameters = command.get_params

    def light_parameters(ctx: Any) -> Any:
        listed = parameters(ctx)
        for parameter in listed:
            parameter._runtime_param = parameter._runtime_param or _Conversion()
        return listed

    command.get_params = light_parameters


class _Conversion:
    """Converts the value of a parameter as typer does, except one that stays as it is.

    Typer makes a model of pydantic for every parameter that is not a flag, given or not, and the
    import of pydantic takes half as long as a short command.
    """

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command takes it; raises typer's error for a wrong one."""
        is_single = param.nargs == 1 and not param.multiple
        is_text = isinstance(value, str)
        if is_single and (value is None or (is_text and param.type_descriptor.annotation is str)):
            return value
        if is_single and not is_text and value == param.default:
            return value
        param._runtime_param = None  # Typer then makes its own.
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _usage(argument: Any, ctx: Any) -> list[str]:
    """The argument in the line of usage."""
    name = argument.metavar
    return [name if argument.required or name.startswith("[") else f"[{name}]"]


def _no_type(ctx: Any) -> None:
    """The type that the help shows."""


class _Group(TyperGroup):
    """A group that lists its commands without importing them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Lazy()  # type: ignore[assignment]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, summary(name).partition(". ")[0]) for name in COMMANDS]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class _Subgroup(TyperGroup):
    """A group whose list wraps long sentences instead of cutting them."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, one.get_short_help_str(limit=500)) for name, one in commands if one]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _nothing() -> None:
    """A group of commands needs a function that runs before them; this one does nothing."""


def _version(is_requested: bool) -> None:
    if is_requested:
        from importlib.metadata import version

        typer.echo(f"autotune {version('mpi-autotune')}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, opt("--version", "Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Nothing to do before a command."""
