"""Pages of the reference that are made from the code and from the shipped spaces.

The pages are committed, so that they can be read without building the site.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from autotune.cli.commands import build
from autotune.config.app import App, CheapForm, Input
from autotune.config.find import is_shipped, list_configs
from autotune.config.validated import read_toml
from autotune.space.definition import Definition, Keys
from docs.builders import ROOT

FOLDER = ROOT / "docs" / "reference"
MADE = "<!-- Made by python -m docs.builders; do not edit. -->\n"
COMMAND_LINE = """# Every option of every command

This page lists what `autotune COMMAND --help` says, for all commands. It is for users who look
something up; [commands](commands.md) says what belongs together.
"""
PARAMETERS = """# Parameters of the shipped spaces

This page lists the parameters and levels that a search may vary, as the files in `configs/spaces`
have them. It is for users who want to know what is tried; [spaces](spaces.md) explains the files.

`enum` stands for all values that the installed library lists, `a:b:*2` for a, 2a, 4a up to b. A
parameter "acts if" its condition holds; without one it always may.
"""
APP_FILES = """# Keys of an application's file

This page lists what a file `configs/apps/NAME.toml` may say. It is for owners of programs who look
something up; [how to](../howto/application-owner.md#make-it-an-application-with-a-name) shows how
one is written.
"""
MARKUP = re.compile(r"\[/?(?:bold|dim|italic|cyan|green|yellow|red)[^\]]*\]")


def cell(text: object) -> str:
    """Text as it may stand in a cell of a table."""
    words = " ".join(MARKUP.sub("", str(text)).split())
    return words.replace("|", r"\|").replace("<", "&lt;").replace("*", r"\*").replace("_", r"\_")


def code(text: object) -> str:
    """Text in the type of code, within a cell."""
    return "`" + " ".join(str(text).split()).replace("|", r"\|") + "`"


# The command line


def commands(group: Any, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its words, in the order of ``--help``; groups are not commands."""
    for name, command in group.commands.items():
        if getattr(command, "hidden", False):
            continue
        if hasattr(command, "commands"):
            yield from commands(command, (*names, name))
        else:
            yield (*names, name), command


def command_line() -> str:
    """The page of all commands with their arguments and options."""
    parts = [COMMAND_LINE, MADE]
    for words, command in commands(build()):
        parts.append(f"## autotune {' '.join(words)}\n")
        parts.append(_paragraphs(command.help or ""))
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if p.param_type_name == "option"]
        if arguments:
            parts.append("| argument | what it is |\n|---|---|\n" + "\n".join(map(_row, arguments)))
            parts.append("")
        shown = [p for p in options if "--help" not in p.opts and not p.hidden]
        if shown:
            parts.append("| option | what it is | default |\n|---|---|---|")
            parts[-1] += "\n" + "\n".join(map(_option, shown)) + "\n"
    return "\n".join(parts)


def _paragraphs(text: str) -> str:
    text = MARKUP.sub("", text.replace("\b\n", "").replace("\f", ""))
    paragraphs = re.split(r"\n\s*\n", text.strip())
    plain = [" ".join(paragraph.split()) for paragraph in paragraphs]
    return (
        "\n\n".join(p.replace("<", "&lt;").replace("*", r"\*").replace("_", r"\_") for p in plain)
        + "\n"
    )


def _row(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return f"| {code(name)} | {cell(argument.help or '')} |"


def _option(option: Any) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    metavar = "" if option.is_flag else f" {option.metavar or 'VALUE'}"
    value = option.default
    if callable(value) or value is None or value is False or value in ((), [], ""):
        default = ""
    elif value is True:
        default = code(option.opts[0])
    else:
        default = code(value)
    return f"| {code(names + metavar)} | {cell(option.help or '')} | {default} |"


# The shipped spaces


def parameters() -> str:
    """The page of all shipped spaces with their own parameters."""
    parts = [PARAMETERS, MADE]
    shipped = filter(is_shipped, list_configs("spaces"))
    for file in shipped:
        definition = read_toml(file.text, file.path, Definition)
        parts.append(f"## {file.name}\n")
        parts.append(_space(definition))
        rows = [_parameter(name, table) for name, table in definition.parameters.items()]
        if rows:
            head = ["| parameter | levels | acts if | what it is |", "|---|---|---|---|"]
            parts.append("\n".join([*head, *rows]) + "\n")
    return "\n".join(parts)


def _space(definition: Definition) -> str:
    said = [cell(definition.description.rstrip(".")) + "."] if definition.description else []
    if definition.library:
        said.append(f"For {code(definition.library)}.")
    if definition.extends:
        others = ", and these:" if definition.parameters else "; its rules are its own."
        said.append(
            f"It has all parameters of [{definition.extends}](#{definition.extends}){others}"
        )
    return " ".join(said) + "\n"


def _parameter(name: str, table: Keys) -> str:
    levels = table.levels
    written = ", ".join(map(str, levels)) if isinstance(levels, list) else str(levels or "")
    said = f"not here: {cell(table.absent)}" if table.absent else cell(table.help)
    when = code(table.when) if table.when else ""
    return f"| {code(name)} | {code(written) if written else ''} | {when} | {said} |"


# Files of applications


def app_files() -> str:
    """The page of the keys of an application's file."""
    parts = [APP_FILES, MADE]
    for title, model in (
        ("The application", App),
        ("An input: `[inputs.NAME]`", Input),
        ("The cheap form of an input: `[fidelity.NAME]`", CheapForm),
    ):
        parts.append(f"## {title}\n")
        rows = [_key(name, info) for name, info in model.model_fields.items()]
        parts.append(
            "| key | value | default | what it is |\n|---|---|---|---|\n" + "\n".join(rows)
        )
        parts.append("")
    return "\n".join(parts)


def _key(name: str, info: FieldInfo) -> str:
    text = cell((info.description or "").replace("``", "`"))
    # Text between back quotes stands as it is.
    text = re.sub(r"`[^`]+`", lambda word: word[0].replace("\\", ""), text)
    default = (
        "required" if info.is_required() else _toml(info.get_default(call_default_factory=True))
    )
    return f"| {code(name)} | {cell(_kind(info.annotation))} | {default} | {text} |"


def _toml(value: object) -> str:
    if value in (None, (), {}, "", False):
        return ""
    return code(list(value) if isinstance(value, tuple) else value)


_KINDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}


def _kind(kind: Any) -> str:
    """The type of a key in words."""
    if kind in _KINDS:
        return _KINDS[kind]
    arguments = [each for each in get_args(kind) if each not in (type(None), ...)]
    origin = get_origin(kind)
    if origin is tuple:
        return f"list of {_kind(arguments[0])}s"
    if origin is dict:
        return f"table of {_kind(arguments[1])}s"
    if origin is Literal:
        return ", ".join(map(str, arguments))
    if isinstance(kind, type):
        return "table"
    return _kind(arguments[0])


PAGES: dict[str, Callable[[], str]] = {
    "command-line.md": command_line,
    "parameters.md": parameters,
    "app-files.md": app_files,
}
