"""Standard streams that are closed, full, gone, or of an encoding without the characters."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from autotune.store import Store
from tests.cli.conftest import Cli
from tests.contract.store_samples import key, ok

COMMANDS = (["studies"], ["show", "1"], ["status"], ["doctor", "--help"], ["no-such-command"])
UGLY = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""A locale whose encoding is ASCII."""


STARTS = """
import gc, json, os, runpy, sys
import psutil, pydantic.type_adapter
import autotune.cli.commands, autotune.cli.status, autotune.cli.studies
gc.freeze()
codes = []
for words in json.loads(sys.argv[2]):
    child = os.fork()
    if child == 0:
        sys.argv = ["autotune", *words]
        runpy.run_module("autotune", run_name="__main__", alter_sys=True)
        sys.exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    try:
        os.write(2, b"\\0")
    except OSError:
        pass
with open(sys.argv[1], "w") as file:
    json.dump(codes, file)
"""
"""Starts ``autotune WORDS`` for each of several commands, with what is imported already.

A start of Python, which meets the streams first, and most imports are shared.
"""
Line = Sequence[str]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return database(tmp_path)


def database(folder: Path) -> Path:
    with Store.open(folder / "r.db") as store:
        study = store.study(key(cluster="größer µs"))
        store.add_run(study.id, None, "default", 0, 0, ok(1.0))
    return folder / "r.db"


def shell(line: str, *words: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Exit code and standard error of this Python with these redirections of a shell."""
    done = subprocess.run(
        ["sh", "-c", f'"$@" {line}', "sh", sys.executable, "-P", *words],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, **(env or {})},
        check=False,
    )
    return done.returncode, done.stderr


def sh(line: str, *words: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Exit code and standard error of ``autotune WORDS`` with these redirections."""
    return shell(line, "-m", "autotune", *words, env=env)


def several(
    line: str, commands: Sequence[Line], folder: Path, env: Mapping[str, str]
) -> list[tuple[int, str]]:
    """The same of several commands, whose processes share the start of Python."""
    answer = folder / "codes"
    code, said = shell(line, "-c", STARTS, str(answer), json.dumps(commands), env=env)
    assert code == 0, said
    codes = json.loads(answer.read_text())
    # Nothing is said, and nothing is between it, where standard error is closed.
    each = said.split("\0")[: len(codes)] if said else [""] * len(codes)
    return list(zip(codes, each, strict=True))


Started = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Started:
    """Code and words of one of several commands with these redirections, for one database."""
    folder = tmp_path_factory.mktemp("started")
    store = str(database(folder))

    @functools.cache
    def all_of(line: str, commands: tuple[tuple[str, ...], ...], ugly: bool) -> Any:
        env = {"AUTOTUNE_STORE": store} | (UGLY if ugly else {})
        return several(line, commands, folder, env)

    def one_of(
        line: str, commands: Sequence[Line], words: Line, ugly: bool = False
    ) -> tuple[int, str]:
        found: list[tuple[int, str]] = all_of(line, tuple(map(tuple, commands)), ugly)
        return found[commands.index(words)]

    return one_of


@pytest.mark.parametrize("words", COMMANDS)
def test_a_closed_stream_changes_no_exit_code(
    started: Started, words: list[str], place: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOTUNE_STORE", str(place))
    plain = cli(*words).code
    for closed in (">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"):
        code, said = started(closed, COMMANDS, words)
        assert code == plain, closed
        assert "Traceback" not in said, closed


def test_no_file_becomes_standard_output(place: Path) -> None:
    """The database is opened first; what is printed must not land in it."""
    before = place.read_bytes()
    sh("<&- >&- 2>&-", "studies", "--store", str(place))
    assert place.read_bytes() == before


def test_a_document_needs_a_stream(place: Path) -> None:
    code, said = sh(">&-", "studies", "--json", "-", "--store", str(place))
    assert (code, "output.closed" in said) == (2, True)


PRINTING = (["studies"], ["show", "1"], ["studies", "--json", "-"])


@pytest.mark.parametrize("words", PRINTING)
def test_a_full_disk_is_a_message(started: Started, words: list[str]) -> None:
    code, said = started("> /dev/full", PRINTING, words)
    assert (code, "output.unwritable" in said, "Traceback" in said) == (1, True, False)


def test_messages_that_cannot_be_written_are_lost(place: Path) -> None:
    code, _ = sh("2> /dev/full", "show", "nothing", "--store", str(place))
    assert code == 2
    code, _ = sh("> /dev/full 2> /dev/full", "studies", "--store", str(place))
    assert code == 1


def test_a_reader_that_has_gone_is_no_error(place: Path) -> None:
    code, said = sh("| true", "show", "1", "--store", str(place))
    assert (code, said) == (0, "")


@pytest.mark.parametrize("words", PRINTING[1:])
def test_an_encoding_without_the_characters(started: Started, words: list[str]) -> None:
    code, said = started("", PRINTING, words, ugly=True)
    assert (code, said) == (0, "")


def test_files_are_utf8_whatever_the_locale(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = [
        ["studies", "--json", "0", "--store", str(place)],
        ["report", "1", "--force", "-o", "1", "--store", str(place)],
    ]
    monkeypatch.chdir(tmp_path)
    assert several("", commands, tmp_path, UGLY) == [(0, ""), (0, "")]
    for out in ("0", "1"):
        text = Path(out).read_text(encoding="utf-8")
        assert "größer" in (json.loads(text)[0]["cluster"] if text.startswith("[") else text)
