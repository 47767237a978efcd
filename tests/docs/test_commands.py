"""Every ``autotune ...`` line of the documentation is one that the command line understands."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from autotune.cli.commands import build
from autotune.wording import HEADLINES

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "runner" / "mate" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
COMMAND = re.compile(r"(?:^|[\s$;&|]|bin/)autotune +(?=[a-z-])(.*)")
ALONE = ("--help", "--version", "--install-completion", "--show-completion")
BEHIND = re.compile(r"\s#\s.*| \| .*| > .*| && .*|;.*$|`.*")


def code_of(page: Path) -> list[tuple[int, str]]:
    """The lines of a page's code blocks, fenced or indented, with their numbers; a line that ends
    with a backslash is one with the next."""
    lines: list[tuple[int, str]] = []
    language = ""
    joined = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            language = "" if language else line.lstrip()[3:] or "plain"
            continue
        if not (language in ("sh", "plain") or (not language and line.startswith("    "))):
            joined = False
            continue
        if joined:
            at, before = lines.pop()
            lines.append((at, f"{before.removesuffix(chr(92))} {line.strip()}"))
        else:
            lines.append((number, line.strip()))
        joined = line.endswith("\\")
    return lines


def commands_of(page: Path) -> list[tuple[int, str]]:
    """The ``autotune`` lines in the page's code, without ``autotune``."""
    return [
        (number, BEHIND.sub("", found[1]).strip())
        for number, line in code_of(page)
        if (found := COMMAND.search(line)) and not line.startswith(("#", "|", "study "))
    ]


def words_of(line: str) -> list[str]:
    """The words of a command; what is optional in it is there, an ellipsis is not."""
    line = re.sub(r"\[([^\]\s][^\]]*)\](?!\+)", r"\1", line) if " -- " not in line else line
    return [word for word in shlex.split(line) if word not in ("...", "…")]


@cache
def whole() -> Any:
    """The command line, made once."""
    return build()


def wrong(line: str) -> str | None:
    """Why the command line would refuse the names and options of this line; None if it accepts."""
    command: Any = whole()
    context = command.make_context("autotune", [], resilient_parsing=True)
    words = words_of(line)
    while hasattr(command, "commands"):
        name = words.pop(0) if words else ""
        if name in ALONE:
            return None
        if name not in command.commands:
            return f"{name!r} is no command of {context.command_path}"
        command = command.commands[name]
        context = command.make_context(name, [], parent=context, resilient_parsing=True)
    if "--help" in words:
        return None
    context.resilient_parsing = False  # It would overlook every error.
    try:
        command.make_parser(context).parse_args(words)
    except typer.TyperException as error:
        return f"{error.__class__.__name__}: {getattr(error, 'option_name', '')} {error}"
    return None


LINES = [
    pytest.param(line, id=f"{page.relative_to(ROOT)}:{number}")
    for page in PAGES
    for number, line in commands_of(page)
]


def test_there_are_many() -> None:
    assert len(LINES) > 100
    assert all(any(page.name in str(p.id) for p in LINES) for page in PAGES[:2])


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_understood(line: str) -> None:
    assert wrong(line) is None


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("serach --app jacobi3d", "serach"),
        ("space lst", "lst"),
        ("search --aplication jacobi3d", "--aplication"),
        ("search --app", "--app"),
        ("publish --cluster NAME --frmat openmpi-user", "--frmat"),
    ],
)
def test_a_wrong_line_is_seen(line: str, part: str) -> None:
    assert part in (wrong(line) or "")


def test_the_tutorial_knows_the_answers() -> None:
    text = (ROOT / "docs" / "tutorial" / "ten-minutes.md").read_text()
    for status in ("recommended", "keep_default", "inconclusive", "unguarded"):
        assert f"| {HEADLINES[status]} |" in text
