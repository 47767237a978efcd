"""All names that others rely on: keys of JSON documents, columns of the database and of files."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet

from tests.datasets import conftest as datasets
from tests.witness.commands import autotune, export, filled
from tests.witness.plain import write_lines

SHOWN = ("type", "const", "enum", "pattern", "minItems", "format")
"""What a schema says of a value; titles and descriptions are wording."""


def record(name: str, out: Path, place: Path) -> None:
    """Write one file for each kind of names."""
    with closing(sqlite3.connect(filled(place))) as opened:
        query = "SELECT sql FROM sqlite_master WHERE sql NOT NULL ORDER BY type, name"
        write_lines(out / "database.sql", [row[0] for row in opened.execute(query)])
        write_lines(out / "stored-documents.txt", _stored(opened))
    write_lines(out / "files.txt", _files(place))
    write_lines(out / "documents.txt", _schemas(place))


def _stored(opened: sqlite3.Connection) -> Iterator[str]:
    """The keys of all JSON documents in the database, by table and column."""
    tables = opened.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
    for (table,) in tables.fetchall():
        rows = opened.execute(f"SELECT * FROM {table}")
        names = [f"{table}.{column[0]}" for column in rows.description]
        pairs = [pair for row in rows for pair in zip(names, row, strict=True)]
        yield from sorted({name + key for name, value in pairs for key in _keys(_parsed(value))})


def _parsed(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else None
    except ValueError:
        return None


def _keys(value: object) -> Iterator[str]:
    pairs = list(value.items()) if isinstance(value, dict) else []
    pairs += [("[]", one) for one in value] if isinstance(value, list) else []
    for key, inner in pairs:
        yield f"/{key}"
        yield from (f"/{key}{more}" for more in _keys(inner))


def _files(place: Path) -> Iterator[str]:
    """Columns of exported files and of a written dataset, and the names of its files."""
    yield f"csv: {export(place, 1, 'csv').read_text().splitlines()[0]}"
    datasets.make(place / "grid", {"planted": datasets.planted})
    for file in (export(place, 1, "parquet"), *sorted((place / "grid").rglob("*"))):
        if file.is_file():
            yield f"{file.relative_to(place)}"
        if file.suffix == ".parquet":
            yield from (f"  {f.name} {f.type}" for f in pyarrow.parquet.read_schema(file))


def _schemas(place: Path) -> Iterator[str]:
    """The keys of all documents that the commands write, with types, from their schemas."""
    for row in autotune(place, "schema")[1]:
        schema = autotune(place, "schema", row["name"])[1]
        yield f"{row['name']}: {', '.join(row['commands'])}"
        yield from sorted(set(described(schema, schema)))


def described(schema: Any, whole: Any, path: str = "  ") -> Iterator[str]:
    """A line for each key; ``whole`` is the schema that a ``$ref`` refers to."""
    if not isinstance(schema, dict):
        return
    schema = _plain(schema, whole)
    closed = ["closed"] if schema.get("additionalProperties") is False else []
    yield f"{path} {'; '.join([f'{n} {schema[n]}' for n in SHOWN if n in schema] + closed)}"
    for key, inner in schema.get("properties", {}).items():
        mark = "" if key in schema.get("required", ()) else "?"
        yield from described(inner, whole, f"{path}/{key}{mark}")
    yield from described(schema.get("items"), whole, f"{path}/[]")
    yield from described(schema.get("additionalProperties"), whole, f"{path}/*")
    for inner in (one for way in ("allOf", "anyOf", "oneOf") for one in schema.get(way, ())):
        yield from described(inner, whole, path)


def _plain(schema: Any, whole: Any) -> dict[str, Any]:
    """The schema without references; what may be null, and tuples of one type, in one form."""
    if "$ref" in schema:
        target = whole
        for word in schema["$ref"].removeprefix("#/").split("/"):
            target = target[word]
        rest = {name: part for name, part in schema.items() if name != "$ref"}
        both = target.get("properties", {}) | rest.pop("properties", {})
        return _plain(target | rest | ({"properties": both} if both else {}), whole)
    if "const" in schema or "enum" in schema:
        schema = {name: part for name, part in schema.items() if name != "type"}
    parts = schema.get("prefixItems", ())
    if parts and all(part == parts[0] for part in parts):
        schema = schema | {"items": parts[0]}
    ways = [_plain(one, whole) for one in schema.get("anyOf", ())]
    others = [one for one in ways if one != {"type": "null"}]
    if len(others) != 1 or len(ways) == 1:
        return dict(schema)
    [one] = others
    if "enum" in one or "const" in one:
        null = {"enum": [*one.get("enum", [one.get("const")]), None]}
    else:
        kinds = one.get("type", [])
        null = {"type": [*([kinds] if isinstance(kinds, str) else kinds), "null"]}
    rest = {name: part for name, part in schema.items() if name != "anyOf"}
    return one | rest | null
