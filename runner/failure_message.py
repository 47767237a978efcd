"""Finds the first message about the reason of a failure in the output of a failed program.

The message may come from the program, its MPI library or its launcher. The last line of the output
is seldom the reason: launchers print their conclusion after the program's messages, often in a
frame of dashes, and stack traces and clean-up messages follow.
"""

from __future__ import annotations

import re
import signal as signals
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 240
"""Largest number of characters of a complaint."""
_FRAME = re.compile(r"^[-=]{20,}\s*$")
_SENDER = re.compile(
    r"^(\[[\w.-]+:\d+(:\d+:\d+)?\] |\[(mpiexec|proxy)[\w:.@-]*\] \w+ \([\w./-]+:\d+\): )"
)
_STARS = re.compile(r"^\*\*\* +")
_ERROR = re.compile(
    r"err(or|no)?\b|errors\b|fail|fatal|cannot|can't|could not|couldn't|unable|invalid|illegal|"
    r"not found|no such|not supported|not recognized|unrecognized|unknown|denied|missing|"
    r"exception|assert|undefined|terminate called|abort|severe|\bbad\b|\bkilled\b|too many|exceed|"
    r"out of memory|singular|diverge|\bstop\b|panic",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"\bwarn|\bnote\b|\bno errors?\b|\b0 errors?\b|error (norm|tolerance|bound|estimate)|"
    r"(errors?|residual|tolerance)\s*[:=]?\s*[-+]?\d*\.?\d+(e[-+]?\d+)?\s*$",
    re.IGNORECASE,
)
_NOISE = re.compile(
    r"^\[ ?\d+\]|^#\d+ |^\s+at |^ ?\d+ {1,2}\S+\(|^={4,}|^Error termination\. Backtrace|"
    r"^Backtrace for this|ORTE_ERROR_LOG|PRTE_ERROR_LOG|End of error message|"
    r"Process received signal|Caught signal|^Signal code|^Failing at address|^reported by process|"
    r"^on (communicator|a NULL)|MPI_ERRORS_ARE_FATAL|^ *and (potentially|MPI will)|^Unknown error|"
    r"has sent help message|have sent help message|orte_base_help_aggregate|"
    r"total process(es)? failed to start|^Abort is in progress|^Type '.*--help'|"
    r"^srun: (Job step|Terminating|error: .*: tasks? )|^slurmstepd: |^YOUR APPLICATION|"
    r"^This typically|^Please see the FAQ"
)
_CONCLUSION = re.compile(
    r"Primary job +terminated|one or more processes exited with non-zero|has exited due to process|"
    r"MPI_ABORT was invoked|noticed that process|BAD TERMINATION|supposed to get help about|"
    r"It looks like (MPI_INIT|opal_init|orte_init|prte_init)"
)
_MPI_CALL = re.compile(r"An error occurred in (\w+)")
_SIGNALS = (
    re.compile(r"Signal: (?P<name>[^()]+) \((?P<number>\d+)\)"),
    re.compile(r"Caught signal (?P<number>\d+) \((?P<name>[^():]+)"),
    re.compile(r"exited on\s+signal (?P<number>\d+) \((?P<name>[^()]+)\)"),
    re.compile(r"EXIT STRING: (?P<name>[^()]+) \(signal (?P<number>\d+)\)"),
)
_JOINED = re.compile(
    r"EXIT CODE: (?P<first>\d+)\b.{0,500}?EXIT STRING: [^()]+ \(signal (?P<joined>\d+)\)", re.DOTALL
)
"""MPICH's launcher joins the states of all processes with "or", and says that of the first one."""
_WITH_KILL = (signals.SIGABRT, signals.SIGILL, signals.SIGBUS)
"""Joined with SIGKILL, by which it ends the others, these are no signal that ends a program."""
_MPICH = re.compile(r"^Abort\(-?\d+\)[^:]*: (?P<what>.*)$")
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(: .*)?$")
_ABORTED = re.compile(
    r"MPI_ABORT was invoked on rank (\d+)|\(rank (\d+) in .{0,200}application called MPI_Abort"
)
_DETAIL = re.compile(r"^\s{0,4}(?P<name>[A-Z][\w ]{1,20}):\s+(?P<value>\S.*)$")
_PLACES = ("Host", "Node", "Local host", "Process name", "Exit code", "Proc", "Errorcode")
_ASKED = re.compile(
    r"file = 'stdin'|EOF when reading a line|<stdin>|\bstdin\b|standard input|"
    r"end-of-file during read, unit (-4|5)\b|unit\s*=\s*5\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class FailureMessage:
    """A message on one line (``words``). ``asked``: it is about the end of standard input."""

    words: str = ""
    asked: bool = False


def failure_message(stderr: str, stdout: str = "") -> FailureMessage:
    """The first message about the failure.

    Messages of the program or the library rank before the launcher's conclusion, a sentence about
    an error before one that is not, and standard error before standard output.
    """
    loose, boxes = _parts(stderr)
    said = list(loose)
    told = _first_telling(said, boxes)
    plain = next((line for _, line in reversed(said) if _speaks(line)), "")
    signal = _signal(stderr) or _signal(stdout)
    if signal:
        after = f", after: {plain}" if plain else ""
        words = f"{told}, then {signal}" if told else f"{signal}{after}"
    else:
        words = told or plain
    if not words:
        printed, _ = _parts(stdout)
        words = _first_telling(printed, []) or _conclusion(stderr, printed)
    words = " ".join(words.split())[:LONGEST]
    return FailureMessage(words, _ASKED.search(stderr) is not None)


def telling_lines(stderr: str, stdout: str = "", most: int = 8) -> list[str]:
    """The program's last lines, for people: without stack traces, frames and the launcher's
    conclusion.

    They come from standard error if it has such lines, else from standard output. If neither has
    any, the last lines are returned as they are.
    """
    for text in (stderr, stdout):
        loose, boxes = _parts(text)
        lines = [line for _, line in loose if line.strip()]
        framed = [line for box in boxes if not box.concludes for line in box.lines if line.strip()]
        if lines or framed:
            return [*lines[-most:], *framed[: most - len(lines[-most:])]]
    plain = [line for line in _clean(stderr or stdout) if line.strip(" -=")]
    return plain[-most:]


@dataclass(frozen=True)
class _Box:
    """A message that the library put into a frame, and the number of its first line."""

    at: int
    lines: tuple[str, ...]

    @property
    def concludes(self) -> bool:
        return _CONCLUSION.search(" ".join(self.lines)) is not None

    @property
    def words(self) -> str:
        """The first sentence of the message, followed by the names that it gives."""
        first: list[str] = []
        for line in self.lines:
            if not line.strip() and first:
                break
            if line.strip() and not _DETAIL.match(line):
                first.append(line.strip())
        sentence = re.split(r"(?<=[.:])\s", " ".join(first), maxsplit=1)[0].rstrip(":. ")
        details = [m for line in self.lines if (m := _DETAIL.match(line))]
        named = [f"{m['name']}: {m['value'].strip()}" for m in details if m["name"] not in _PLACES]
        return f"{sentence} ({', '.join(named[:3])})" if named else sentence


def _clean(text: str) -> list[str]:
    """Lines without the NULs with which some launchers end a message."""
    return text.replace("\0", "").replace("\ufffd", "").splitlines()


def _parts(text: str) -> tuple[list[tuple[int, str]], list[_Box]]:
    """Loose lines with their numbers, without noise and the sender's name; then the framed
    messages.
    """
    loose: list[tuple[int, str]] = []
    boxes: list[_Box] = []
    inside: list[str] | None = None
    began = 0
    for at, line in enumerate(_clean(text)):
        if _FRAME.match(line):
            if inside is None:
                inside, began = [], at
            elif any(word.strip() for word in inside):
                boxes.append(_Box(began, tuple(inside)))
                inside = None
            # Otherwise two frames meet: a message begins although none has ended.
        elif inside is not None:
            inside.append(line)
        else:
            said = _STARS.sub("", _SENDER.sub("", line))
            if said.strip() and not _NOISE.search(said):
                loose.append((at, said))
    if inside and any(word.strip() for word in inside):
        boxes.append(_Box(began, tuple(inside)))
    return loose, boxes


def _speaks(line: str) -> bool:
    """Whether a line is a sentence of the program: no part of a traceback or of MPICH's final
    frame.
    """
    return not line.startswith((" ", "\t", "Traceback", "Abort(", "Signal:", "At line"))


def _first_telling(loose: list[tuple[int, str]], boxes: list[_Box]) -> str:
    """The first line or message that is about an error; "" if there is none."""
    found = [(box.at, box.words) for box in boxes if not box.concludes]
    sentences = _sentences([line for _, line in loose], [at for at, _ in loose])
    found += [first for first in [next(sentences, None)] if first is not None]
    return min(found, default=(0, ""))[1]


def _sentences(lines: list[str], at: list[int]) -> Iterator[tuple[int, str]]:
    """Each sentence about an error, with the number of its line."""
    for index, line in enumerate(lines):
        rest = lines[index + 1 :]
        if line.startswith("Traceback (most recent call last)"):
            raised = next((r for r in rest if _RAISED.match(r)), None)
            if raised is not None:
                yield at[index], raised
        elif call := _MPI_CALL.search(line):
            kind = next((r for r in rest if r.startswith("MPI_ERR_")), "an error")
            yield at[index], f"{call[1]}: {kind}"
        elif ended := _MPICH.match(line):
            if "application called MPI_Abort" not in line:
                yield at[index], _stack(ended["what"], rest)
        elif _speaks(line) and _ERROR.search(line) and not _HARMLESS.search(line):
            yield at[index], line


def _stack(what: str, rest: list[str]) -> str:
    """MPICH's error together with the innermost line of its stack."""
    head, stack, _ = what.partition(", error stack:")
    inner = [line.partition(": ")[2] for line in rest if re.match(r"^\w+\(\d+\)\.*:|^\(unk", line)]
    last = inner[-1] if stack and inner else ""
    return f"{head}: {last}" if last and last not in head else head


def joined_exit_code(text: str) -> int | None:
    """The exit code of the first rank that ended, where MPICH's launcher says that of the others,
    which it killed; None if it does not."""
    found = _JOINED.search(text)
    if found is None or int(found["joined"]) != signals.SIGKILL:
        return None
    first = int(found["first"])
    return first if first != signals.SIGKILL else None


def _signal(text: str) -> str:
    """The signal that ended a process ("Segmentation fault (signal 11)"); "" if there is none.

    The signal by which the launcher itself ends the other ranks does not count.
    """
    if found := _JOINED.search(text):
        first, joined = int(found["first"]), int(found["joined"])
        for number in _WITH_KILL:
            # The first one may be the one that was killed.
            if first in (number, signals.SIGKILL) and number | signals.SIGKILL == joined:
                return f"{signals.strsignal(number)} (signal {int(number)})"
        if joined_exit_code(text) is not None:
            return ""
    for pattern in _SIGNALS:
        for found in pattern.finditer(text):
            if found["number"] != "15":
                return f"{found['name']} (signal {found['number']})"
    return ""


def _conclusion(stderr: str, printed: list[tuple[int, str]]) -> str:
    """The launcher's conclusion, for a program that printed nothing of its own."""
    text = " ".join(stderr.split())
    words = ""
    if found := _ABORTED.search(text):
        words = f"rank {found[1] or found[2]} called MPI_Abort without a message"
    elif found := re.search(r"due to process rank (\d+) .{0,80}exiting improperly", text):
        words = f"rank {found[1]} exited without MPI_Finalize"
    last = next((line.strip() for _, line in reversed(printed) if line.strip()), "")
    if not last:
        return words or "without a message"
    return f"{words or 'without a message'}; the last line of its output: {last}"
