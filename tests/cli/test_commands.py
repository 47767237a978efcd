"""Every command of the list is there, and none is imported before it is called."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autotune.cli.commands import COMMANDS, build, summary
from tests.cli.conftest import Cli

HEAVY = {"numpy", "pandas", "scipy", "sklearn", "statsmodels", "optuna", "sqlalchemy"}


def test_each_command_is_found_and_says_what_the_list_says(cli: Cli) -> None:
    group: Any = build()
    for name in COMMANDS:
        first = (group.commands[name].help or "").split("\n\n")[0].replace("\n", " ")
        assert first.startswith(summary(name)[:60])
        asked = cli(name, "--help")
        assert asked.code == 0, name
        assert summary(name).split()[0] in asked.out
        assert "..." not in asked.out.partition("Commands:")[2], "sentences are wrapped, not cut"


def test_the_list_needs_none_of_them() -> None:
    code = "import sys, autotune.cli as c; c.main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(f"  {name} " in done.stdout for name in COMMANDS)
    assert not HEAVY & set(done.stderr.split())
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "..." not in done.stdout.partition("Commands:")[2], "sentences are wrapped, not cut"


@pytest.mark.parametrize(
    "words",
    [
        ("search", "--trials", "0", "--app", "micro"),
        ("search", "--frobnicate"),
        ("show",),
        ("frobnicate",),
        ("cluster", "frobnicate"),
    ],
    ids=" ".join,
)
def test_what_the_parser_refuses_has_a_code_and_a_document(
    cli: Cli, words: tuple[str, ...]
) -> None:
    outcome = cli(*words)
    assert outcome.code == 2
    assert outcome.err.startswith("autotune [usage.option]: ")
    document = json.loads(cli(*words, "--json", "-").out)
    assert (document["code"], document["exit_code"]) == ("usage.option", 2)
    assert document["message"] in outcome.err


def test_an_option_without_its_value_has_the_code(cli: Cli) -> None:
    outcome = cli("export", "1", "--to")
    assert outcome.code == 2
    assert outcome.err.startswith("autotune [usage.option]: ")


def test_a_command_without_its_words_prints_its_help(cli: Cli) -> None:
    outcome = cli("cluster")
    assert outcome.code == 2
    assert outcome.err.strip() == cli("cluster", "--help").out.strip()


def test_a_slip_is_told_with_what_was_meant(cli: Cli) -> None:
    asked = cli("serach")
    assert asked.code == 2
    assert "search" in asked.err


@pytest.mark.parametrize(
    "words",
    [
        ("studies",),
        ("status",),
        ("show", "abcd"),
        ("export", "abcd", "--to", "csv"),
        ("worker", "1"),
    ],
)
def test_a_store_that_was_named_and_is_not_there_is_said(cli: Cli, words: tuple[str, ...]) -> None:
    outcome = cli(*words, "--store", "gone.db")
    assert outcome.code == 2
    assert "[store.missing]" in outcome.err
    assert "--store" in outcome.err
    assert not Path("gone.db").exists()


def test_no_studies_yet_is_no_mistake_in_the_usual_place(cli: Cli) -> None:
    outcome = cli("studies")
    assert outcome.code == 0
    assert len(outcome.out.split()) > 1, "it says so"
    assert json.loads(cli("studies", "--json", "-").out) == []


FRAGMENTS = {"Of", "For", "From", "Its", "Default", "At", "Also", "May", "Again", "Where", "In"}
"""First words of help texts that only somebody who knows the option understands."""


def _each(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    commands = getattr(command, "commands", {})
    if not commands:
        yield words, command
    for name in commands:
        yield from _each(commands[name], (*words, name))


def test_each_option_says_what_it_does(cli: Cli) -> None:
    wrong = []
    for words, command in _each(build()):
        printed = " ".join(cli(*words, "--help").out.split())
        for parameter in command.params:
            text = getattr(parameter, "help", None) or ""
            if parameter.name == "help":
                continue
            assert "".join(text.split()) in "".join(printed.split()), (words, text)
            first = text.partition(" ")[0].strip(":.,")
            if len(text.split()) < 3 or not text.endswith(".") or first in FRAGMENTS:
                wrong.append(f"{' '.join(words)} {parameter.name}: {text!r}")
    assert not wrong, "\n".join(wrong)
