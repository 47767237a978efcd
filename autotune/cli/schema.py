"""``autotune schema``: the JSON Schemas of what the commands write with ``--json``."""

from __future__ import annotations

from typing import Annotated

import typer

from autotune.cli import completion
from autotune.cli.options import JsonOut
from autotune.schemas import OUTPUTS, load_schema, schema_names
from autotune.terminal.render import console, table, write_json


def schema(
    name: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]",
            help="Name of a schema, or the words of a command (cluster list). Default: list all.",
            autocompletion=completion.schemas,
        ),
    ] = None,
    json_out: JsonOut = None,
) -> None:
    """Print the JSON Schema of a command's --json output, or list all schemas."""
    if name:
        words = " ".join(name)
        write_json(load_schema(OUTPUTS.get(words, (words.replace(" ", "-"),))[0]), json_out or "-")
        return
    rows = [
        {
            "name": one,
            "title": load_schema(one)["title"],
            "commands": [words for words, names in OUTPUTS.items() if one in names],
        }
        for one in schema_names()
    ]
    if json_out:
        write_json(rows, json_out)
    if json_out == "-":
        return
    out = console()
    cells = [[row["name"], ", ".join(row["commands"]), row["title"]] for row in rows]
    out.print(table("", ["schema", "command", "content"], cells))
    out.print("\nTo print one:  autotune schema NAME", markup=False, soft_wrap=True)
