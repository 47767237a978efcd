"""Every line to copy in the sources is one that autotune takes; composed ones are listed here."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from autotune.cli.commands import COMMANDS
from tests.case_table import case_table
from tests.lines import NAME, refused, unknown_option

ROOT = Path(__file__).parents[2]
SOURCES = sorted((*(ROOT / "autotune").rglob("*.py"), *(ROOT / "runner").rglob("*.py")))
MENTION = re.compile(rf"\b{NAME} (?=({'|'.join(COMMANDS)})(?![\w-]))")
ANY = re.compile(rf"\b{NAME} ([a-z][a-z-]*)")
LAUNCH = re.compile(r"\b(?:mpirun|mpiexec|srun)(?:\.[a-z]+)? (?=-\S)")
ENDS = re.compile(r"[;,`]|[.)](?:\s|$)|:\s| and | or |\n|$|   +\S")
"""What ends a mention within a sentence."""
HINT = re.compile(r"autotune [a-z]|\"autotune\"|mpirun |mpiexec |srun |shlex\.join")
"""A module without it has no line to copy."""
BEFORE = re.compile(r"(?:^|\n) {2,}\S*$|: {2}$")
"""Before a line that stands by itself, to be copied."""

# fmt: off
PROSE = {
    "published", "are", "prints", "and", "itself", "is", "does", "gives", "reads", "wrote", "did",
    "writes", "would", "could", "had", "supports", "cannot", "uses", "was", "without", "starts",
    "measures", "in", "draws", "compares", "that", "works", "runs", "searches", "a", "executes",
    "treats", "sets", "through", "has", "tries",
}
# fmt: on
"""Words that follow the name of autotune in sentences."""

LAUNCHES = "tests/targets/test_printed_launches.py"
COMPOSERS = {
    "autotune/terminal/command_line.py:command_line": "tests/cli/test_follow_up.py",
    "autotune/terminal/command_line.py:own_name": "tests/cli/test_follow_up.py",
    "autotune/study/start_lines.py:set_start_lines": "tests/cli/test_follow_up.py",
    "autotune/terminal/publication.py:print_places": "tests/publish/test_commands.py",
    "autotune/targets/launcher_line.py:parse_launcher_line": LAUNCHES,
    "autotune/targets/launcher_line.py:refuse_wrapped_launcher": LAUNCHES,
    "autotune/targets/launcher_line.py:_inside": LAUNCHES,
    "autotune/targets/launcher_line.py:script_words": LAUNCHES,
    "autotune/targets/target.py:mpirun_line": LAUNCHES,
    "autotune/targets/jobs.py:_line": LAUNCHES,
    "autotune/measurement/bench.py:_default_fails": LAUNCHES,
    "runner/outcome/__init__.py:inside_words": LAUNCHES,
    "autotune/check/comparison.py:comparison_command": "tests/launch_check/test_launch_line.py",
    "autotune/targets/figures.py:words": "tests/cli/test_proposed_metric.py",
    "autotune/targets/figures.py:proposal_note": "tests/cli/test_proposed_metric.py",
}
"""The functions that compose lines to copy, each with the tests that type such lines.

What any test captures is typed, too (``taken_lines`` of ``tests/conftest.py``).
"""
SHOWN = {
    # Options of a launcher, or words of a line that is refused, in a sentence.
    "autotune/api/library_targets.py:_require_no_options",
    "autotune/study/library_switch.py:_terms_of_first",
    "autotune/targets/launcher_line.py:_count_fault",
    "autotune/targets/launcher_line.py:_take",
    "autotune/targets/launcher_line.py:_unknown",
    "autotune/targets/launcher_line.py:_option",
    "autotune/targets/launcher_line.py:parse",
    "autotune/targets/resolve.py:_launcher_notes",
    "autotune/terminal/clusters.py:print_cluster",
    # Words of a program, or of a command that is no launcher.
    "autotune/api/datasets.py:_what",
    "autotune/publish/programs.py:_how",
    "autotune/space/parameter.py:text",
    "autotune/store/backup.py:_dump",
    "autotune/terminal/store_house.py:print_backup",
    "autotune/measurement/first_run.py:remedy",
    "autotune/targets/target.py:preparation",
    "runner/launch.py:_execute_before",
    # Options to add to the command.
    "autotune/api/figures.py:with_figure",
    "autotune/targets/figures.py:wrong_note",
    "autotune/targets/file_in_way.py:in_way_lines",
    # The line that was checked, and the corrected one, with the words of the user.
    "autotune/api/launch_check.py:check",
    "autotune/check/study_check.py:_note",
    "autotune/terminal/launch_check.py:print_finding",
    "autotune/terminal/launch_check.py:print_launch",
    # What was run, as a fact.
    "autotune/report/study.py:provenance",
    "autotune/ui/study.py:_facts",
    # What a worker would run, as a list of words.
    "autotune/workers/worker_trust.py:words",
    # What is started, and written into files that are.
    "autotune/api/workers.py:submit",
    "autotune/cli/explore.py:explore",
    "runner/scheduler/slurm.py:submit",
    "runner/scheduler/template.py:submit",
    # The words of a template: how ranks are started in its jobs.
    "autotune/api/doctor_needs.py:_templates",
    "runner/testbed/launch.py:_command",
    "runner/testbed/launch.py:run",
}
"""The other functions that join words."""
SAFE = re.compile(
    r"shlex\.(quote|join)\(|cpu_list\(|len\(|\.hash\[:12\]|[\w.]*\b(name|least|study|first|collective)"
    r"|data\['study'\]|' and '\.join\(missing\)"
)
"""What is filled into a line needs no quotes: it is quoted, a number, a hash or a checked name."""
QUOTED = {
    ("autotune/publish/verify.py", "mpi"),
    ("autotune/publish/verify.py", "path"),
    ("autotune/targets/setting_syntax.py", "other"),
    ("autotune/study/search_study.py", "absent"),
    ("autotune/targets/wrapped_launcher.py", "cpu_text"),
}
"""Names whose values are quoted before, or are no words of a user."""


def literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The texts of a module with their lines.

    What is filled in is a 2, or nothing behind a word.
    """
    parts = {id(v) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for v in n.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = ""
            for value in node.values:
                if isinstance(value, ast.Constant):
                    text += str(value.value)
                else:
                    text += "" if text[-1:].isalnum() else "2"
            yield node.lineno, text
        elif isinstance(node, ast.Constant) and id(node) not in parts:
            yield node.lineno, node.value if isinstance(node.value, str) else ""


def problems_of(text: str) -> Iterator[str]:
    """Why lines to copy, and commands that a sentence names, are refused."""
    for name in ANY.findall(text):
        if name not in PROSE and name not in COMMANDS:
            yield f"{name!r} is no command"
    for found in (*MENTION.finditer(text), *LAUNCH.finditer(text)):
        whole_line = text[found.start() :].partition("\n")[0]
        if BEFORE.search(text[: found.start()]):
            line = re.split(r" {3,}|   +\(", whole_line)[0]
            try:
                if why := refused(line):
                    yield why
                continue
            except ValueError:
                pass
        if found.re is LAUNCH:
            continue
        said = text[found.end() :]
        clause = said[: ENDS.search(said).start()]  # type: ignore[union-attr]
        words = [word.strip("'\"[]().") for word in clause.split()]
        if why := unknown_option(words):
            yield f"{clause!r}: {why}"


@cache
def trees() -> dict[str, ast.Module]:
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in SOURCES}
    return {name: ast.parse(text) for name, text in texts.items() if HINT.search(text)}


def test_every_line_in_the_sources_is_taken() -> None:
    seen, problems = 0, []
    for name, tree in trees().items():
        for number, text in literals(tree):
            seen += len(MENTION.findall(text))
            problems += [f"{name}:{number}: {why}" for why in problems_of(text)]
    for file in sorted((ROOT / "configs").rglob("*.toml")):
        problems += [f"{file.name}: {why}" for why in problems_of(file.read_text())]
    assert not problems, "\n".join(problems)
    assert seen > 150


def filled(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """What is filled into commands and launch lines, as it stands in the source."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        text, marks = "", []
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                marks.append((len(text), ast.unparse(value.value)))
                text += "2"
            else:
                text += str(ast.literal_eval(value))
        for found in (*MENTION.finditer(text), *LAUNCH.finditer(text)):
            said = text[found.end() :]
            end = found.end() + ENDS.search(said).start()  # type: ignore[union-attr]
            yield from ((node.lineno, what) for at, what in marks if found.end() <= at < end)


def test_what_is_filled_into_a_line_is_quoted() -> None:
    """A path with a blank is one word of the line."""
    found = [(n, row, what) for n, tree in trees().items() for row, what in filled(tree)]
    assert len(found) > 20
    unquoted = {(name, what) for name, _, what in found if not SAFE.match(what)}
    assert unquoted == QUOTED


def test_a_printed_line_is_not_wrapped() -> None:
    """What is wrapped at the width of the terminal cannot be copied."""
    wrapped = []
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".print")):
                continue
            texts = [text for one in node.args for _, text in literals(one)]
            copied = any(
                BEFORE.search(text[: at.start()]) for text in texts for at in MENTION.finditer(text)
            )
            if copied and "soft_wrap" not in [keyword.arg for keyword in node.keywords]:
                wrapped.append(f"{name}:{node.lineno}")
    assert not wrapped


@case_table(
    ("text", "part"),
    [
        ("run autotune search --frobnicate, or leave it", "--frobnicate"),
        ("To go on:  autotune studies --frobnicate", "--frobnicate"),
        ("Give:\n  autotune cluster show", "usage"),
        ("Give:\n  autotune run -- mpirun -np", ""),
        ("Give:\n  autotune compare a b --pairs x", "usage"),
    ],
)
def test_a_line_that_is_refused_is_seen(text: str, part: str) -> None:
    assert any(part in why for why in problems_of(text)) == bool(part)


def composers(tree: ast.Module) -> Iterator[str]:
    """The functions that put the words of a command together: ``shlex.join``, or a list with the
    name of autotune."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        for inner in ast.walk(node):
            listed = isinstance(inner, ast.List | ast.Tuple) and any(
                (isinstance(one, ast.Constant) and one.value == NAME)
                or (isinstance(one, ast.Name) and one.id == "NAME")
                for one in inner.elts
            )
            joined = isinstance(inner, ast.Call) and ast.unparse(inner.func) == "shlex.join"
            if listed or joined:
                yield node.name
                break


def test_every_function_that_composes_a_line_is_listed() -> None:
    found = {f"{name}:{one}" for name, tree in trees().items() for one in composers(tree)}
    assert found == set(COMPOSERS) | SHOWN


def test_the_tests_of_composed_lines_exist() -> None:
    for place in COMPOSERS.values():
        assert (ROOT / place).is_file()


def test_words_are_typed_as_a_shell_gives_them() -> None:
    assert refused("A=1 autotune search --budget 1m -- mpirun -np 2 ./a < in > out") is None
    assert refused(shlex.join(["mpirun", "-np", "2", "./a", ":", "-np", "2", "./b"])) is None
