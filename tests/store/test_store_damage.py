"""Rows that autotune did not write: each is named, and the rest is shown, by every command."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.cli import main
from autotune.errors import WorkError
from autotune.store import Store
from autotune.store.schema import SCHEMA_VERSION, metadata
from runner.types import PrintedLines, ReadBack
from tests.contract.store_samples import APP, key, ok

COMMANDS = ("studies", "status", "show", "report", "importance", "export")
IDENTITY = {"id", "hash", "study_id", "trial_id", "app_id", "machine_id", "mpi_id", "read_back_id"}
"""Columns that say which row it is: with another value it is another row, or one of no study."""
ODD = (
    *(None, "abc", "", b"\xff\x00", b"", -1, 0, 0.0, -0.5, 1e999, -1e999, 2**62, "5", "[", "{}"),
    *("[1]", '{"a":1}', "[" * 2000, '{"a":NaN}', "\x1b[2J", "x" * 3000, "9" * 400, "null"),
)


SETTINGS = 16


def fill(path: Path) -> None:
    """Two studies of different programs with trials, runs, read-back and lines."""
    with Store.open(path) as store:
        for name in ("first", "second"):
            study = store.study(key(app=replace(APP, name=name, program_hash=name)))
            for number in range(SETTINGS):
                setting = {"eager": 1024 << number, "how": "ab"[number % 2]}
                words = " ".join(f"{name}={value}" for name, value in setting.items())
                trial = store.add_trial(study.id, setting, words)
                record = ok(1.0 + number / 10, place="node1", host="node1")
                record.read_back = {"eager": ReadBack("in force", "1024", "1024", "file")}
                record.printed = PrintedLines(("a line", f"line {number}"))
                store.add_run(study.id, trial.id, "search", 0, 0, record)
                default = ok(1.2 + number / 100, place="node1", host="node1")
                store.add_run(study.id, None, "default", 0, 0, default)
                store.finish_trial(trial.id, "ok", 1.0 - number / 20)
            store.store_document(study.id, "executables:1", {"files": []})


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """The forests of ``importance`` are two small ones, and grow in a moment."""
    module = import_module("autotune.anova.importance")
    monkeypatch.setattr(module, "TREES", 3)
    monkeypatch.setattr(module, "FOLDS", 2)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "r.db"
    fill(path)
    return path


def spoil(path: Path, table: str, column: str, value: object, row: int = 1) -> None:
    """Write one value into one row, as somebody else would."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute("PRAGMA ignore_check_constraints=ON")
        names = [one.name for one in metadata.tables[table].primary_key]
        listed = ", ".join(names)
        rows = connection.execute(f"SELECT {listed} FROM {table} ORDER BY {listed}").fetchall()
        places = ", ".join("?" * len(names))
        connection.execute(
            f"UPDATE OR IGNORE {table} SET {column} = ? WHERE ({listed}) = ({places})",
            (value, *rows[row % len(rows)]),
        )
        connection.commit()


def outcomes(path: Path, folder: Path, commands: Sequence[str] = COMMANDS) -> dict[str, int]:
    """The exit codes of all commands that read; a traceback fails the test."""
    found = {}
    for command in commands:
        words = [command, *(["1"] if command not in ("studies", "status") else [])]
        if command in ("report", "export"):
            words += ["-o", str(folder / f"{command}.out"), "--force"]
        found[command] = main([*words, "--store", str(path)])
    return found


@pytest.fixture
def store(template: Path, tmp_path: Path) -> Path:
    return copied(template, tmp_path)


def copied(template: Path, folder: Path) -> Path:
    return shutil.copy(template, folder / "r.db")


def test_without_damage_all_commands_answer(store: Path, tmp_path: Path) -> None:
    assert set(outcomes(store, tmp_path).values()) == {0}


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        *(("app", "name", b"\xff"), ("app", "argv", "5"), ("app", "argv", "[5]")),
        *(("study", "status", b"\xff"), ("study", "created_at", b"x"), ("study", "key", "{}")),
        *(("trial", "estimate", "x"), ("trial", "setting", "[]"), ("trial", "attrs", "NaN")),
        *(("run", "value_s", "abc"), ("run", "value_s", 0.0), ("run", "value_s", -1)),
        *(("run", "wall_s", "abc"), ("run", "wall_s", 0.0), ("run", "wall_s", -1)),
        *(("run", "number", "x"), ("run", "phase", b"p"), ("run", "host", b"h")),
        *(("run", "extra", "[" * 990), ("run", "command", "{}"), ("run", "launched", "7")),
        *(("printed", "document", "5"), ("run", "printed_change", "[]")),
    ],
)
def test_the_rest_is_shown(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str, column: str,
    value: object,
) -> None:  # fmt: skip
    spoil(store, table, column, value, row=0)
    assert main(["studies", "--store", str(store)]) == 0
    said = capsys.readouterr()
    assert "first" in said.out or "second" in said.out
    codes = outcomes(store, tmp_path)
    assert set(codes.values()) <= {0, 1}
    told = capsys.readouterr()
    if "store.row_damaged" not in said.err + told.err and "store.damaged" not in told.err:
        # None of them needs this column; the check reads all.
        assert main(["store", "check", "--store", str(store)]) == 1
    if table in ("run", "printed"):  # One run of many.
        assert set(codes.values()) == {0}


def test_a_row_is_named_with_its_table_and_number(store: Path) -> None:
    spoil(store, "run", "wall_s", "abc", row=4)
    with Store.open_to_read(store) as opened:
        assert len(opened.runs(1)) == 2 * SETTINGS - 1
        (note,) = opened.damage.notes
    assert note.code == "store.row_damaged"
    assert (note.data["table"], note.data["row"]) == ("run", "5")
    with Store.open(store) as strict, pytest.raises(WorkError) as caught:
        strict.runs(1)
    assert caught.value.code == "store.damaged"


def test_text_that_is_no_utf8_is_one_bad_row(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE run SET reason = CAST(x'ff41' AS TEXT) WHERE id = 3")
        connection.commit()
    with Store.open_to_read(store) as opened:
        assert len(opened.runs(1)) == 2 * SETTINGS - 1
        assert [note.data["row"] for note in opened.damage.notes] == ["3"]


@pytest.mark.parametrize(
    "value", ["abc", b"\xff\x00", None, "0", "-3", "1e3", "9" * 30, SCHEMA_VERSION]
)
def test_a_schema_version_that_is_none(store: Path, tmp_path: Path, value: object) -> None:
    with closing(sqlite3.connect(store)) as connection:
        if value is None:
            connection.execute("DELETE FROM meta WHERE name = 'schema_version'")
        else:
            statement = "UPDATE meta SET value = ? WHERE name = 'schema_version'"
            connection.execute(statement, (value,))
        connection.commit()
    codes = set(outcomes(store, tmp_path).values())
    assert codes == ({0} if value == SCHEMA_VERSION else {2})


COLUMNS = [
    (table.name, column.name)
    for table in metadata.sorted_tables
    for column in table.columns
    if column.name not in IDENTITY and table.name not in ("meta", "role", "traced")
]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow,
          HealthCheck.function_scoped_fixture])  # fmt: skip
@given(seed=st.integers(0, 2**32))
def test_no_value_of_any_column_ends_a_command_in_a_traceback(
    template: Path, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    source = random.Random(seed)
    folder = tmp_path_factory.mktemp("damage")
    path = copied(template, folder)
    for _ in range(source.randrange(1, 4)):
        table, column = source.choice(COLUMNS)
        spoil(path, table, column, _value(source), source.randrange(30))
    commands = [one for one in COMMANDS if one != "importance"]  # It computes for long.
    assert set(outcomes(path, folder, commands).values()) <= {0, 1, 2}


def _value(source: random.Random) -> Any:
    if source.randrange(4):
        return source.choice(ODD)
    return json.dumps(source.choice([1, "x", [1, None], {"a": [float("nan")]}, True]))
