"""Launch lines in a batch script, found by reading it; nothing of it is executed.

Plain assignments (``NAME=VALUE``, ``export NAME=VALUE``) and the directives of Slurm count as data
for the lines below them. An assignment within a condition or loop, or of a command's output, makes
its variable unknown.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from autotune.errors import UsageError
from autotune.targets.wrapped_launcher import is_assignment, is_launcher, split_wrappers
from runner import files

_MOST_BYTES = 1 << 20
_MARKS = frozenset(";&|()<>")
_OPENING = frozenset({"if", "for", "while", "until", "case", "function", "select"})
_CLOSING = frozenset({"fi", "done", "esac"})
_JOINS = frozenset({"then", "do", "else", "{", "!"})
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?-[^{}]*)?\}|(\w+))")
_BATCH = re.compile(r"#(SBATCH|PBS|BSUB|FLUX:|COBALT|\$) ")
"""How a line of a batch system begins."""
_NUMBERED = re.compile(r"(?<=\s)\d+(?=[<>])")
"""The number of a stream that is redirected: ``2>&1``."""
_ATTACHED = re.compile(r"-[cnN]\d+")
"""A short option with its value in one word."""
_DIRECTIVES = {
    "cpus-per-task": "SLURM_CPUS_PER_TASK",
    "c": "SLURM_CPUS_PER_TASK",
    "ntasks": "SLURM_NTASKS",
    "n": "SLURM_NTASKS",
    "ntasks-per-node": "SLURM_NTASKS_PER_NODE",
    "nodes": "SLURM_NNODES",
    "N": "SLURM_NNODES",
    "export": "SLURM_EXPORT_ENV",
    "cpu-bind": "SLURM_CPU_BIND",
    "hint": "SLURM_HINT",
}
"""Options of sbatch, and the variables that the job's script then has."""


@dataclass(frozen=True)
class ScriptLine:
    """A launch line of a script.

    ``words`` have the values of variables that are known. ``unknown`` are the names of the others;
    then the line cannot be started.
    """

    number: int
    words: tuple[str, ...]
    environment: Mapping[str, str]
    """The variables that the script and its directives set before this line."""
    unknown: tuple[str, ...] = ()
    is_batch: bool = False
    """True if the script asks a batch system for nodes, which are not known here."""


def launch_lines(path: Path) -> list[ScriptLine]:
    """The launch lines of a script in their order.

    Raises UsageError if the file cannot be read, or has none.
    """
    try:
        text = files.read_text(path, _MOST_BYTES)
    except UnicodeDecodeError:
        raise UsageError(
            f"{path} is not a script: expected one, or a launch line such as "
            f"mpirun -n 4 {shlex.quote(str(path))}",
            code="check.script",
        ) from None
    except (OSError, ValueError) as problem:
        raise UsageError(f"{path} cannot be read: {problem}", code="check.script") from None
    is_batch = any(_BATCH.match(line) for line in text.splitlines())
    lines = [replace(line, is_batch=is_batch) for line in _Reader().read(text)]
    if not lines:
        raise UsageError(
            f"{path} has no line that starts mpirun, mpiexec, prterun or srun", code="check.script"
        )
    return lines


@dataclass
class _Reader:
    """Follows the assignments of a script from its first line on."""

    variables: dict[str, str] = field(default_factory=dict)
    exported: dict[str, str] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    depth: int = 0
    """Conditions, loops and functions around the line."""

    def read(self, text: str) -> Iterator[ScriptLine]:
        for number, line in _joined_lines(text):
            if line.startswith("#SBATCH"):
                self._directive(line)
                continue
            for words in _commands(line):
                command = self._command(words)
                if command:
                    yield self._line(number, command)

    def _directive(self, line: str) -> None:
        with suppress(ValueError):
            words = shlex.split(line, comments=False)[1:]
            pairs = zip(words, [*words[1:], ""], strict=True)
            for word, after in pairs:
                if _ATTACHED.fullmatch(word):
                    word, after = word[:2], word[2:]
                name, equals, value = word.lstrip("-").partition("=")
                variable = _DIRECTIVES.get(name) if word.startswith("-") else None
                if variable is not None:
                    self._export(variable, value if equals else after)

    def _export(self, name: str, value: str) -> None:
        self.variables[name] = self.exported[name] = value

    def _command(self, words: Sequence[str]) -> list[str]:
        """The launch line that a command is, else []; assignments are taken in."""
        words = list(words)
        while words and words[0] in _JOINS:
            words.pop(0)
        if not words:
            return []
        self.depth += words[0] in _OPENING or words[1:3] == ["(", ")"]
        self.depth -= words[0] in _CLOSING or words[0] == "}"
        _, rest = split_wrappers(words)
        if rest and is_launcher(rest[0]):
            return words
        exports = words[0] in ("export", "declare", "typeset", "readonly")
        for word in words[1:] if exports else words:
            if is_assignment(word):
                self._assign(word, exported=exports)
            elif exports and word in self.variables:
                self.exported[word] = self.variables[word]
            elif not exports:
                break
        if words[0] == "unset":
            for name in words[1:]:
                self.variables.pop(name, None)
                self.exported.pop(name, None)
        return []

    def _assign(self, word: str, *, exported: bool) -> None:
        name, _, text = word.partition("=")
        value = self._filled(text)
        if self.depth > 0 or value is None:
            self.unknown.add(name)
            self.variables.pop(name, None)
            self.exported.pop(name, None)
            return
        self.unknown.discard(name)
        self.variables[name] = value
        if exported or name in self.exported:
            self.exported[name] = value

    def _filled(self, text: str) -> str | None:
        """The text with the values of its variables; None if one is unknown."""
        if "`" in text or "$(" in text:
            return None
        filled = _VARIABLE.sub(lambda m: self.variables.get(m[1] or m[2], m[0]), text)
        return None if "$" in filled else filled

    def _line(self, number: int, words: Sequence[str]) -> ScriptLine:
        filled = [_VARIABLE.sub(lambda m: self.variables.get(m[1] or m[2], m[0]), w) for w in words]
        unknown = [match[1] or match[2] for word in filled for match in _VARIABLE.finditer(word)]
        unknown += [word for word in filled if "$" in word and not _VARIABLE.search(word)]
        return ScriptLine(number, tuple(filled), dict(self.exported), tuple(dict.fromkeys(unknown)))


def _joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers; a line that ends with a backslash goes on in the next one."""
    start, parts = 1, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        start = start if parts else number
        if line.endswith("\\"):
            parts.append(line[:-1])
            continue
        yield start, " ".join([*parts, line]).strip()
        parts = []
    if parts:
        yield start, " ".join(parts).strip()


def _commands(line: str) -> Iterator[list[str]]:
    """The commands of a line by their words; nothing for a line that is not one by itself."""
    line = _NUMBERED.sub("", line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    with suppress(ValueError):
        command: list[str] = []
        skip = False
        for word in list(lexer):
            if set(word) <= frozenset("<>&") and set(word) & {"<", ">"}:
                skip = True  # The next word is the file of a redirection.
            elif set(word) <= _MARKS and word not in ("(", ")", "()"):
                yield command
                command, skip = [], False
            elif skip:
                skip = False
            else:
                command.append(word)
        yield command
