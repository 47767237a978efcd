"""``autotune schema``: the JSON Schemas of what the commands write with ``--json``."""

from __future__ import annotations

from typing import Annotated

import typer

from autotune.cli import completion
from autotune.cli.options import JsonOut
from autotune.document import Document
from autotune.schemas import SCHEMAS, load_schema, schemas_of
from autotune.terminal.render import print_line, print_table, write_document, write_json


class SchemaRow(Document):
    """A schema of the list; without commands, any command that fails writes its document."""

    name: str
    title: str
    commands: tuple[str, ...]


SchemaList = list[SchemaRow]


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
        names = schemas_of(words) or (words.replace(" ", "-"),)
        write_json(load_schema(names[0]), json_out or "-")
        return
    rows = [
        SchemaRow(name=one, title=schema.title, commands=schema.commands)
        for one, schema in SCHEMAS.items()
    ]
    if not write_document(rows, json_out):
        return
    cells = [[row.name, ", ".join(row.commands), row.title] for row in rows]
    print_table("", ["schema", "command", "content"], cells)
    print_line("\nTo print one:  autotune schema NAME", whole=True)
