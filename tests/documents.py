"""Checking what commands write with ``--json`` against the published schemas."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema

from autotune.schemas import ERROR, SCHEMAS, load_schema, schemas_of

FIRST_WORDS = {words.split()[0] for schema in SCHEMAS.values() for words in schema.commands}


def command_of(words: Sequence[str]) -> str:
    """The command in the words of a command line: ``cluster list`` of ``cluster list --json -``."""
    two = " ".join(words[:2])
    return two if schemas_of(two) else words[0]


def wrong(data: Any, schema: str) -> list[str]:
    """What does not agree with the schema; empty if the document does."""
    found = _validator(schema).iter_errors(data)
    return [f"{schema}: {error.json_path}: {error.message:.300}" for error in found]


@functools.cache
def _validator(schema: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(load_schema(schema))


def check_document(words: Sequence[str], data: Any) -> None:
    """Raise AssertionError unless one of the schemas of the command describes the document."""
    problems = []
    for schema in (*schemas_of(command_of(words)), ERROR):
        problems.append(wrong(data, schema))
        if not problems[-1]:
            return
    raise AssertionError(words, problems)


def written(words: Sequence[str], out: str) -> Any | None:
    """The document that a command line with ``--json`` has written; None if there is none.

    ``out`` is its standard output.
    """
    own = list(words[: words.index("--")]) if "--" in words else list(words)
    if "--json" not in own or own[0] not in FIRST_WORDS:
        return None
    place = own[own.index("--json") + 1]
    text = out if place == "-" else Path(place).read_text() if Path(place).is_file() else ""
    # A command that is repeated (--live) writes several documents.
    return json.loads(text) if text.startswith(("{", "[", "null")) else None
