"""Standard streams that are closed, full, gone, or of an encoding without the characters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from autotune.store import Store
from tests.cli.conftest import Cli
from tests.contract.store_samples import key, ok

COMMANDS = (["studies"], ["show", "1"], ["status"], ["doctor", "--help"], ["no-such-command"])
UGLY = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""A locale whose encoding is ASCII."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with Store.open(tmp_path / "r.db") as store:
        study = store.study(key(cluster="größer µs"))
        store.add_run(study.id, None, "default", 0, 0, ok(1.0))
    return tmp_path / "r.db"


def sh(line: str, *words: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Exit code and standard error of ``autotune WORDS`` with these redirections of a shell."""
    done = subprocess.run(
        ["sh", "-c", f'"$@" {line}', "sh", sys.executable, "-P", "-m", "autotune", *words],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, **(env or {})},
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_no_exit_code(
    place: Path, closed: str, words: list[str], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOTUNE_STORE", str(place))
    code, said = sh(closed, *words)
    assert code == cli(*words).code
    assert "Traceback" not in said


def test_no_file_becomes_standard_output(place: Path) -> None:
    """The database is opened first; what is printed must not land in it."""
    before = place.read_bytes()
    sh("<&- >&- 2>&-", "studies", "--store", str(place))
    assert place.read_bytes() == before


def test_a_document_needs_a_stream(place: Path) -> None:
    code, said = sh(">&-", "studies", "--json", "-", "--store", str(place))
    assert (code, "output.closed" in said) == (2, True)


@pytest.mark.parametrize("words", [["studies"], ["show", "1"], ["studies", "--json", "-"]])
def test_a_full_disk_is_a_message(place: Path, words: list[str]) -> None:
    code, said = sh("> /dev/full", *words, "--store", str(place))
    assert (code, "output.unwritable" in said, "Traceback" in said) == (1, True, False)


def test_messages_that_cannot_be_written_are_lost(place: Path) -> None:
    code, _ = sh("2> /dev/full", "show", "nothing", "--store", str(place))
    assert code == 2
    code, _ = sh("> /dev/full 2> /dev/full", "studies", "--store", str(place))
    assert code == 1


def test_a_reader_that_has_gone_is_no_error(place: Path) -> None:
    code, said = sh("| true", "show", "1", "--store", str(place))
    assert (code, said) == (0, "")


@pytest.mark.parametrize("words", [["show", "1"], ["studies", "--json", "-"]])
def test_an_encoding_without_the_characters(place: Path, words: list[str]) -> None:
    code, said = sh("", *words, "--store", str(place), env=UGLY)
    assert (code, said) == (0, "")


def test_files_are_utf8_whatever_the_locale(place: Path, tmp_path: Path) -> None:
    for words in (["studies", "--json"], ["report", "1", "--force", "-o"]):
        out = tmp_path / "out"
        code, said = sh("", *words, str(out), "--store", str(place), env=UGLY)
        assert (code, said) == (0, "")
        text = out.read_text(encoding="utf-8")
        assert "größer" in (json.loads(text)[0]["cluster"] if text.startswith("[") else text)
