"""Lines that a user may copy: launch lines, and commands of autotune; are they taken?

They are typed into the parsers of the product, and nothing is started.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import typer

from autotune.cli.commands import build
from autotune.errors import UsageError
from autotune.targets.launcher_line import parse_launcher_line
from autotune.targets.wrapped_launcher import launcher_in
from runner.mpi.library import Library

NAME = "autotune"
ALONE = ("--help", "--version", "--install-completion", "--show-completion")
SHELL = frozenset({"<", ">", "2>", ">>", "|", "&", "&&", "||", ";", "2>&1"})
"""Words that a shell takes for itself, with those behind them."""
CELL = 9
"""Lines to copy have fewer blanks before them."""
HINT = re.compile("autotune|mpirun|mpiexec|srun|prun")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


@dataclass(frozen=True)
class Answer:
    """What became of a line: ``code`` and ``words`` of the refusal, "" if it is taken.

    ``proposed`` are the lines to give in its place.
    """

    code: str = ""
    words: str = ""
    proposed: tuple[str, ...] = ()


@cache
def whole() -> Any:
    """The command line, made once."""
    return build()


def wrong(words: list[str]) -> str | None:
    """Why the command line would refuse these words; None if it takes them.  Nothing is run.

    Of a program only its first word counts.
    """
    end = words.index("--") + 2 if "--" in words else len(words)
    return _wrong((*words[:end],))


@lru_cache(maxsize=4096)
def _wrong(given: tuple[str, ...]) -> str | None:
    command: Any = whole()
    context = command.make_context(NAME, [], resilient_parsing=True)
    words = list(given)
    while hasattr(command, "commands"):
        name = words.pop(0) if words else ""
        if name in ALONE:
            return None
        if name not in command.commands:
            return f"{name!r} is no command of {context.command_path}"
        command = command.commands[name]
        if hasattr(command, "commands"):
            context = command.make_context(name, [], parent=context, resilient_parsing=True)
    own = words[: words.index("--")] if "--" in words else words
    if "--help" in own:
        return None
    try:
        command.make_context(name, words, parent=context)
    except typer.TyperException as error:
        return f"{error.__class__.__name__}: {getattr(error, 'option_name', '')} {error}"
    return None


def unknown_option(words: list[str]) -> str | None:
    """The fault of a command as a sentence names it, perhaps without values; None if it has none.

    ``words`` begin with the command; words without a dash are not looked at behind it.
    """
    command: Any = whole()
    path: list[str] = []
    for word in words:
        if not hasattr(command, "commands") or (path and word not in command.commands):
            break
        if word not in command.commands:
            return f"{word!r} is no command"
        path.append(word)
        command = command.commands[word]
    own = words[: words.index("--")] if "--" in words else words
    known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {*ALONE, "-h"}
    named = [word.partition("=")[0] for word in own if word.startswith("-") and word != "-"]
    strange = [name for name in named if name not in known and not name[2:].isdigit()]
    return f"{' '.join(path)} has no {strange[0]}" if strange else None


def answer(line: str, library: Library | None = None) -> Answer:
    """What the product says to a line that is typed as it stands.

    It is a launch line, which is typed behind ``autotune search --``, or a command of autotune, in
    which N stands for a number.  ``library`` is the one that is used; None: any.
    """
    words = typed_words(line)
    command = "search"
    if words and words[0] == NAME:
        if refusal := wrong(["2" if word == "N" else word for word in words[1:]]):
            return Answer("usage", refusal)
        if "--" not in words or words[1] == "testbed":
            return Answer()
        command, words = words[1], words[words.index("--") + 1 :]
    if no_room(words):
        return Answer("workers.too_many", "ranks with several workers are bound to one core each")
    try:
        parse_launcher_line(tuple(words), command, None, library)
    except UsageError as refusal:
        said = str(refusal)
        rows = [row.strip() for row in said.splitlines() if row.startswith("  ")]
        proposed = tuple(row for row in rows if NAME in typed_words(row)[:1])
        return Answer(refusal.code, said, proposed)
    return Answer()


def no_room(words: list[str]) -> bool:
    """Whether a line gives ranks several workers on the one core that the launcher binds them to.

    A program of the runtimes then refuses the line.
    """
    text = " ".join(words)
    workers = re.search(r" --workers[ =](\d+)", text)
    widened = re.search(
        r" --bind-to (none|socket|numa|package)| --map-by \S*PE=| --affinity none", text
    )
    return bool(workers and int(workers[1]) > 1 and not widened)


def typed_words(line: str) -> list[str]:
    """The words of a line as a program gets them: without what a shell takes, and without ``...``.

    Assignments before the command are the shell's.
    """
    words = [word for word in shlex.split(line) if word not in ("...", "…")]
    end = next((at for at, word in enumerate(words) if word in SHELL), len(words))
    start = next((at for at, word in enumerate(words) if not ASSIGNMENT.fullmatch(word)), end)
    return words[start:end] if words[start : start + 1] == [NAME] else words[:end]


def refused(line: str, library: Library | None = None) -> str | None:
    """Why a line is not understood, and no line in its place either; None if one of them is.

    The line in its place has to be taken as it stands.
    """
    said = answer(line, library)
    if not said.code:
        return None
    if not said.proposed:
        return f"{line}\n  {said.code}, without a line to give: {said.words}"
    for proposed in said.proposed:
        second = answer(proposed, library)
        if second.code:
            return f"{line}\n  is answered by the line\n{proposed}\n  {second.code}: {second.words}"
    return None


def lines_in(text: str) -> Iterator[str]:
    """The lines of a text that are launch lines or commands of autotune, as a user copies them.

    Each stands on a line of its own, or behind a colon and two blanks.  What is indented deeply is
    the cell of a table.
    """
    for row in text.splitlines():
        for part in (row, row.partition(":  ")[2]):
            if not HINT.search(part) or part.startswith(" " * CELL):
                continue
            try:
                words = shlex.split(part)
            except ValueError:
                continue
            left = [word for word in words if not ASSIGNMENT.fullmatch(word)]
            own = left[:1] == [NAME] and left[1:2] and left[1] in whole().commands
            line = None if own else launcher_in(part)
            if own or (line is not None and line[1:2] and line[1].startswith("-")):
                yield part.strip()


def strings_in(document: Any) -> Iterator[str]:
    """The texts of a document (JSON)."""
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict):
        yield from (text for value in document.values() for text in strings_in(value))
    elif isinstance(document, list):
        yield from (text for value in document for text in strings_in(value))


def check_lines(*texts: str) -> None:
    """Raise AssertionError for a line of these texts that the product refuses."""
    problems = [why for text in texts for line in lines_in(text) if (why := refused(line))]
    assert not problems, "printed, but not taken:\n" + "\n".join(problems)
