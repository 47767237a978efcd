"""Each command with ``--json`` writes what its published JSON schema says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from autotune.cli.commands import build
from autotune.schemas import SCHEMAS, load_schema
from runner.cpus import available_cpus
from tests.cli.conftest import Cli
from tests.documents import check_document, wrong

ROOT = Path(__file__).parents[2]


def _with_json(command: Any, words: tuple[str, ...] = ()) -> Iterator[str]:
    commands = getattr(command, "commands", {})
    for name in commands:
        yield from _with_json(commands[name], (*words, name))
    if not commands and any("--json" in parameter.opts for parameter in command.params):
        yield " ".join(words)


OPEN = {"RecheckRow"}
"""Parts that have further keys: what the comparison has shown."""


def test_each_command_with_json_has_a_schema_and_no_other_is_named() -> None:
    assert {words for schema in SCHEMAS.values() for words in schema.commands} == set(
        _with_json(build())
    )


def test_the_page_lists_each_schema_with_its_commands() -> None:
    page = (ROOT / "docs" / "reference" / "json.md").read_text()
    for name, schema in SCHEMAS.items():
        listed = ", ".join(f"`{words}`" for words in schema.commands)
        commands = listed or "every command that fails"
        assert f"| `{name}` | {commands} | {schema.title} |\n" in page


def test_each_schema_is_valid_and_closed() -> None:
    for name in SCHEMAS:
        schema = load_schema(name)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["title"] == SCHEMAS[name].title
        parts = schema.get("$defs", {})
        for one in (schema, schema.get("items", {}), *schema.get("anyOf", ()), *parts.values()):
            if "properties" in one:
                assert one["additionalProperties"] is (one["title"] in OPEN), name
                assert set(one.get("required", ())) <= set(one["properties"]), name


def test_a_key_too_many_and_a_wrong_type_are_seen() -> None:
    good = {"path": "f", "done": "removed f"}
    document = {"schema": "autotune-unpublished-1", "files": [good]}
    assert wrong(document, "unpublish") == []
    assert wrong(document | {"more": 1}, "unpublish")
    assert wrong(document | {"files": [good | {"done": 3}]}, "unpublish")
    assert wrong({"schema": "autotune-unpublished-1"}, "unpublish")
    with pytest.raises(AssertionError, match="unpublish"):
        check_document(["unpublish", "f"], document | {"more": 1})


@pytest.mark.parametrize("name", ["search", "cluster list", "cluster-list", "testbed status"])
def test_a_schema_is_printed_by_name_or_by_command(cli: Cli, name: str) -> None:
    asked = cli("schema", *name.split())
    assert asked.code == 0
    assert json.loads(asked.out) == load_schema(name.replace(" ", "-"))


def test_all_are_listed_and_an_unknown_one_is_an_error(cli: Cli) -> None:
    listed = cli("schema")
    assert all(name in listed.out for name in SCHEMAS)
    assert max(map(len, listed.out.splitlines())) <= 80
    slip = cli("schema", "serach")
    assert slip.code == 2
    assert "[schema.unknown]" in slip.err
    assert "search?" in slip.err


READING = (
    "apps", "apps jacobi3d", "cluster list", "cluster show local",
    "space list", "space show openmpi", "space check openmpi", "space discover btl_sm",
    "dataset list", "dataset describe grid-tpod-node", "dataset classes grid-node",
    "doctor --quick", "publish --formats", "features --list", "explore grid-node --dry-run",
    "testbed status --no-measure", "studies", "status", "schema",
)  # fmt: skip
"""Commands that need no study, but for the analyses, whose tests use the same fixture.

The cli fixture checks what each writes.
"""


@pytest.mark.parametrize("line", READING)
def test_a_command_that_reads(
    cli: Cli, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))  # no testbed of the machine is seen
    asked = cli(*line.split(), "--json", "-")
    assert asked.code == 0, asked.err
    check_document(line.split(), json.loads(asked.out))


def test_dividing_the_cores(cli: Cli) -> None:
    if len(available_cpus()) < 2:
        pytest.skip("needs two CPUs")
    assert cli("cluster", "split", "2", "--json", "-").code == 0


@pytest.mark.mpi
def test_the_commands_around_studies(cli: Cli, steady: str, work: Path) -> None:
    """A search, a comparison, noise and a run; what they write, and what is read of them later."""
    app = ("--app", steady, "--no-guard")
    two = (*app, "--ranks", "2")
    for number, line in enumerate(
        (
            ("search", *two, "--strategy", "random", "--trials", "1", "--min-gain", "40"),
            ("compare", "default", "bind_to=none", *app, "--runs", "8"),
            ("noise", *app, "--runs", "6"),
            ("run", *app),
            ("features", *two, "-o", "features.json"),
            ("predict", "features.json"),
            ("show", "1"),
            ("show", "2"),
            ("show", "3"),
            ("status", "1"),
            ("studies",),
            ("report", "1", "-o", "report.html"),
            ("publish", "--from", "study:1", "--dry-run", "--force", "--format", "openmpi-user"),
        )
    ):
        place = work / f"{number}.json"
        asked = cli(*line, "--json", place)
        assert asked.code == 0, (line, asked.err)
        check_document(line, json.loads(place.read_text()))
