"""The help of every command, as a reader meets it."""

from __future__ import annotations

import re

import pytest

from docs.builders.reference_pages import build, commands
from tests.cli.conftest import Cli

WORDS = [words for words, _ in commands(build())]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_arguments_are_shown_as_in_manual_pages(cli: Cli, words: tuple[str, ...]) -> None:
    shown = cli(*words, "--help").out
    usage = shown.partition("\n\n")[0]
    assert not re.search(r"[{}]|\[\[|\]\.\.\.\]", usage), usage
    assert not re.search(r"<(str|int|float|path|list)\b", shown), shown
