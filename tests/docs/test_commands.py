"""Every ``autotune ...`` line and every launch line of the documentation is one that is taken."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from autotune.targets.wrapped_launcher import is_launcher, launcher_in
from autotune.wording import HEADLINES
from tests.case_table import case_table
from tests.lines import NAME, refused, unknown_option, whole, wrong

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "runner" / "runtimes" / "mate" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "autotune/README.md")),
    *sorted(p for p in (ROOT / "runner").rglob("README.md") if p.parent.name != "mate"),
]
COMMAND = re.compile(r"(?:^|[\s$;&|]|bin/)autotune +(?=[a-z-])(.*)")
FILES = [
    *PAGES,
    *sorted(
        p for p in (ROOT / "examples").rglob("*") if p.suffix in (".md", ".py", ".toml", ".sh")
    ),
    *sorted((ROOT / "configs").rglob("*.toml")),
]
SPAN = re.compile(r"(?<!`)`([^`\n]+)`")
WORDS = re.compile(r"\[(\"(?:mpirun|mpiexec|srun)\"[^\]\n]*)\]")
"""A launch line as a list of words, in Python and TOML."""
BEHIND = re.compile(r"\s#\s.*| \| .*| > .*| && .*|;.*$|`.*")


def code_of(page: Path, languages: Sequence[str] = ("sh", "plain")) -> list[tuple[int, str]]:
    """The lines of a page's code blocks, fenced or indented, with their numbers; a line that ends
    with a backslash is one with the next."""
    lines: list[tuple[int, str]] = []
    language = ""
    joined = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            language = "" if language else line.lstrip()[3:] or "plain"
            continue
        if not (language in languages or (not language and line.startswith("    "))):
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


def test_each_line_is_understood() -> None:
    lines = {
        f"{page.relative_to(ROOT)}:{number}": line
        for page in PAGES
        for number, line in commands_of(page)
    }
    assert len(lines) > 100
    assert all(any(page.name in place for place in lines) for page in PAGES[:2])
    problems = {place: wrong(words_of(line)) for place, line in lines.items()}
    assert not {place: problem for place, problem in problems.items() if problem is not None}


def launches_of(file: Path) -> Iterator[tuple[int, str]]:
    """The launch lines of a file: in code blocks, in code within a sentence, and as words."""
    spans = [
        (number, found)
        for number, line in enumerate(file.read_text().splitlines(), 1)
        for found in (*SPAN.findall(line), *(list_of(words) for words in WORDS.findall(line)))
    ]
    blocks = code_of(file, ("sh", "plain", "text")) if file.suffix == ".md" else []
    for number, line in (*spans, *blocks):
        if (typed := launch_in(line)) is not None:
            yield number, typed


def list_of(words: str) -> str:
    return shlex.join(re.findall(r'"([^"]*)"', words))


def launch_in(line: str) -> str | None:
    """The line as it is typed, if it is a launch line; a command of autotune may stand before."""
    typed = re.sub(r"\s#\s.*", "", line).strip().removeprefix("$ ")
    try:
        found = launcher_in(typed)
        words = shlex.split(typed)
    except ValueError:
        return None
    if found is None and NAME in words and "--" in words:
        behind = words[words.index("--") + 1 :]
        found = behind if behind and is_launcher(behind[0]) else None
    return typed if found and found[1:2] and found[1].startswith("-") else None


def test_each_launch_line_is_taken_or_answered() -> None:
    """As it stands there, or the line that is given in its place."""
    launches = {
        f"{file.relative_to(ROOT)}:{number}": line
        for file in FILES
        for number, line in launches_of(file)
    }
    assert len(launches) > 60
    problems = {place: refused(line) for place, line in launches.items()}
    assert not {place: problem for place, problem in problems.items() if problem is not None}


def test_commands_in_sentences_have_their_options() -> None:
    problems = []
    for file in FILES:
        for number, line in enumerate(file.read_text().splitlines(), 1):
            for span in SPAN.findall(line):
                found = COMMAND.match(span)
                words = found[1].split() if found else []
                if words and words[0] in whole().commands and (why := unknown_option(words)):
                    problems.append(f"{file.relative_to(ROOT)}:{number}: {why}")
    assert not problems, "\n".join(problems)


def test_workers_without_room_are_seen() -> None:
    line = "mpirun -n 1 python app.py --workers 2"
    assert refused(line)
    assert not refused(line.replace("python", "--bind-to none python"))
    assert not refused(line.replace("2", "1"))


@case_table(
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
    assert part in (wrong(words_of(line)) or "")


def test_the_tutorial_knows_the_answers() -> None:
    text = (ROOT / "docs" / "tutorial" / "ten-minutes.md").read_text()
    for status in ("recommended", "keep_default", "inconclusive", "unguarded"):
        assert f"| {HEADLINES[status]} |" in text
