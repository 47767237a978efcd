"""The help of every command, as a reader meets it."""

from __future__ import annotations

import re

from docs.builders.reference_pages import build, commands
from tests.cli.conftest import Cli


def test_arguments_are_shown_as_in_manual_pages(cli: Cli) -> None:
    lines = [words for words, _ in commands(build())]
    assert len(lines) > 40
    for words in lines:
        shown = cli(*words, "--help").out
        usage = shown.partition("\n\n")[0]
        assert not re.search(r"[{}]|\[\[|\]\.\.\.\]", usage), usage
        assert not re.search(r"<(str|int|float|path|list)\b", shown), shown
