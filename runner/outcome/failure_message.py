"""Finds the first message about the cause of a failure in the output of a failed program.

The message may come from the program, its MPI library or its launcher. The last line is seldom the
cause: launchers print their conclusion after the program's messages, often in a frame of dashes,
and stack traces and clean-up messages follow.
"""

from __future__ import annotations

import re
import signal as signals
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from runner.outcome.warning_message import is_error, is_warning

LONGEST = 240
"""Largest number of characters of a complaint."""
_FRAME = re.compile(r"^[-=]{20,}\s*$")
_STAR_FRAME = re.compile(r"^\*{20,}\s*$")
_HWLOC = re.compile(r"^\* hwloc ")
"""The second line of hwloc's warnings, which have a frame of stars."""
_SENDER = re.compile(
    r"^(\[\d+\.\d+\] \[[\w.-]+:\d+:\d+\]\s+[\w.]+:\d+\s+UCX\s+|\[[\w.-]+:\d+(:\d+:\d+)?\] |"
    r"\[(mpiexec|proxy)[\w:.@-]*\] \w+ \([\w./-]+:\d+\): )"
)
_STARS = re.compile(r"^\*\*\* +")
_NOISE = re.compile(
    r"^\[ ?\d+\]|^#\d+ |^\s+at |^ ?\d+ {1,2}\S+\(|^={4,}|^= {2,}|^Error termination\. Backtrace|"
    r"^Backtrace for this|ORTE_ERROR_LOG|PRTE_ERROR_LOG|End of error message|"
    r"Process received signal|Caught signal|^Signal code|^Failing at address|^reported by process|"
    r"^on (communicator|a NULL)|MPI_ERRORS_ARE_FATAL|^ *and (potentially|MPI will)|^Unknown error|"
    r"has sent help message|have sent help message|orte_base_help_aggregate|"
    r"total process(es)? failed to start|^Abort is in progress|^Type '.*--help'|"
    r"^srun: (Job step|Terminating|error: .*: tasks? )|^slurmstepd: |^YOUR APPLICATION|"
    r"^This typically|^Please see the FAQ|^pmix_ptl_base: "
)
_CONCLUSION = re.compile(
    r"Primary job +terminated|one or more processes exited with non-zero|has exited due to process|"
    r"MPI_ABORT was invoked|noticed that process|BAD TERMINATION|supposed to get help about|"
    r"It looks like (MPI_INIT|opal_init|orte_init|prte_init)"
)
_INIT_FAILURE = re.compile(
    r"It looks like (MPI_INIT|(opal|orte|prte|pmix)_init)|An error occurred in MPI_Init"
)
"""The library did not start: its earlier warning is the reason."""
_MPI_CALL = re.compile(r"An error occurred in (\w+)")
_SIGNALS = (
    re.compile(r"Signal: (?P<name>[^()]+) \((?P<number>\d+)\)"),
    re.compile(r"Caught signal (?P<number>\d+) \((?P<name>[^():]+)"),
    re.compile(r"exited on\s+signal (?P<number>\d+) \((?P<name>[^()]+)\)"),
    re.compile(r"EXIT STRING: (?P<name>[^()]+) \(signal (?P<number>\d+)\)"),
)
_JOINT_STATES = re.compile(
    r"EXIT CODE: (?P<first>\d+)\b.{0,500}?EXIT STRING: [^()]+ \(signal (?P<joined>\d+)\)", re.DOTALL
)
"""MPICH's launcher joins the states of all processes with "or", and reports the first one's."""
_WITH_KILL = (signals.SIGABRT, signals.SIGILL, signals.SIGBUS)
"""Joined with SIGKILL, by which the launcher ends the others, these are not a program's signal."""
_MPICH = re.compile(r"^Abort\(-?\d+\)[^:]*: (?P<what>.*)$")
_EXCEPTION_LINE = re.compile(r"^[A-Za-z_][\w.]*(: .*)?$")
_ABORT_CALL = re.compile(
    r"MPI_ABORT was invoked on rank (\d+)|\(rank (\d+) in .{0,200}application called MPI_Abort"
)
_CONTINUATION = re.compile(r"^(Abort\(|Signal:|At line|\s+File \")")
"""Lines with the words of an error that belong to a sentence before or after them."""
_HEADING = 3
"""Largest number of words of a heading such as "Fatal error:"."""
_DETAIL = re.compile(
    r"^\s{0,4}(?P<name>(?!(?i:warning|error|note|fatal error):)[A-Z][\w ]{1,20}):"
    r"\s+(?P<value>\S.*)$"
)
_PLACES = ("Host", "Node", "Local host", "Process name", "Exit code", "Proc", "Errorcode")
_INPUT_COMPLAINT = re.compile(
    r"file = 'stdin'|EOF when reading a line|<stdin>|\bstdin\b|standard input|"
    r"end-of-file during read, unit (-4|5)\b|unit\s*=\s*5\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class FailureMessage:
    """A message on one line (``words``). ``about_input``: it is about the end of standard input."""

    words: str = ""
    about_input: bool = False


def failure_message(stderr: str, stdout: str = "") -> FailureMessage:
    """The first message about the failure.

    Errors rank before other messages, and these before warnings. Of equal ones, the program's or
    the library's rank before the launcher's conclusion, and standard error before standard output.
    """
    error_output, standard_output = _Output.of(stderr), _Output.of(stdout, with_frames=False)
    error = error_output.error or standard_output.error
    signal = _signal(stderr) or _signal(stdout)
    if signal:
        after = f", after: {error_output.plain}" if error_output.plain else ""
        words = f"{error}, then {signal}" if error else f"{signal}{after}"
    else:
        words = (
            error
            or error_output.plain
            or _conclusion(stderr, standard_output.last, error_output.warning)
        )
    words = " ".join(words.split())[:LONGEST]
    return FailureMessage(words, _INPUT_COMPLAINT.search(stderr) is not None)


def telling_lines(stderr: str, stdout: str = "", most: int = 8) -> list[str]:
    """The program's last lines for readers: without warnings, stack traces, frames and the
    launcher's conclusion.

    They come from standard error if it has the message about the failure or, failing that, any such
    lines; otherwise from standard output. If neither has any, they are the warnings, or else the
    last lines unchanged.
    """
    error_output, standard_output = _Output.of(stderr), _Output.of(stdout, with_frames=False)
    texts = (
        [error_output, standard_output]
        if error_output.error or not standard_output.error
        else [standard_output, error_output]
    )
    for text in texts:
        if lines := text.lines(most):
            return lines
    plain = [line for line in _clean(stderr or stdout) if line.strip(" -=")]
    return (list(error_output.warnings) or plain)[-most:]


@dataclass(frozen=True)
class _Box:
    """A message that the library put into a frame, and the number of its first line."""

    at: int
    lines: tuple[str, ...]

    @property
    def concludes(self) -> bool:
        return _CONCLUSION.search(" ".join(self.lines)) is not None

    @property
    def text(self) -> str:
        """The message on one line, without the stars of its frame."""
        return " ".join(" ".join(line.lstrip("* ") for line in self.lines).split())

    def excerpt(self, most: int) -> list[str]:
        """At most ``most`` of its lines: details rather than prose, which names nothing."""
        lines = [line for line in self.lines if line.strip()]
        details = [at for at, line in enumerate(lines) if _DETAIL.match(line)]
        prose = [at for at in range(len(lines)) if at not in details]
        stay = {*details[:most], *prose[: max(most - len(details), 0)]}
        return [line for at, line in enumerate(lines) if at in stay]

    @property
    def words(self) -> str:
        """The first sentence of the message, followed by the names that it mentions."""
        first: list[str] = []
        for line in self.lines:
            if not line.strip() and first:
                break
            if line.strip() and not _DETAIL.match(line):
                first.append(line.strip())
        parts = re.split(r"(?<=[.:])\s", " ".join(first))
        # "Fatal error:" alone says nothing.
        many = 2 if parts[0].endswith(":") and len(parts[0].split()) <= _HEADING else 1
        sentence = " ".join(parts[:many]).rstrip(":. ")
        details = [m for line in self.lines if (m := _DETAIL.match(line))]
        facts = [f"{m['name']}: {m['value'].strip()}" for m in details if m["name"] not in _PLACES]
        return f"{sentence} ({', '.join(facts[:3])})" if facts else sentence


def _clean(text: str) -> list[str]:
    """Lines without the NULs with which some launchers end a message."""
    return text.replace("\0", "").replace("\ufffd", "").splitlines()


@dataclass(frozen=True)
class _Output:
    """The messages of one stream, without noise.

    ``loose``: lines with their numbers, without warnings and the sender's name. ``boxes``: framed
    messages other than warnings and conclusions. ``warnings``: lines of warnings.
    ``is_start_failure``: the library did not start, and a framed message says why.
    """

    loose: tuple[tuple[int, str], ...]
    boxes: tuple[_Box, ...]
    warnings: tuple[str, ...]
    is_start_failure: bool

    @classmethod
    def of(cls, text: str, with_frames: bool = True) -> _Output:
        """Read a stream. Without ``with_frames``, frames are the program's own, and only their
        lines count."""
        loose, boxes = _parts(text)
        boxes = [box for box in boxes if not box.concludes]
        if not with_frames:
            inside = [(box.at + 1 + n, line) for box in boxes for n, line in enumerate(box.lines)]
            loose, boxes = sorted([*loose, *(i for i in inside if i[1].strip())]), []
        harmless = _warning_lines(loose)
        is_start_failure = reports_start_failure(text)
        warnings = [] if is_start_failure else [box for box in boxes if is_warning(box.text)]
        return cls(
            tuple(item for item in loose if item not in harmless),
            tuple(box for box in boxes if box not in warnings),
            (*(line for _, line in harmless), *(box.words for box in warnings)),
            is_start_failure,
        )

    @property
    def error(self) -> str:
        """The first line or message that is about an error; "" if there is none."""
        errors = [box for box in self.boxes if is_error(box.text)]
        boxes = errors or (list(self.boxes) if self.is_start_failure else [])
        messages = [(box.at, box.words) for box in boxes]
        first = next(_sentences(self.loose), None)
        return min([*messages, *([first] if first else [])], default=(0, ""))[1]

    @property
    def plain(self) -> str:
        """The last sentence; if there is none, the first framed message; "" if there is none."""
        last = next((line for _, line in reversed(self.loose) if _speaks(line)), "")
        return last or next((box.words for box in self.boxes), "")

    @property
    def last(self) -> str:
        """The last line; "" if there is none."""
        return self.loose[-1][1].strip() if self.loose else ""

    @property
    def warning(self) -> str:
        """The last warning; "" if there is none."""
        return self.warnings[-1] if self.warnings else ""

    def lines(self, most: int) -> list[str]:
        """The last loose lines, then those of framed messages with their details."""
        texts = [line for _, line in self.loose]
        if self.boxes:  # They give the reason.
            texts = [line for line in texts if not _INIT_FAILURE.search(line)]
        loose = texts[-most:]
        room = most - len(loose)
        for box in self.boxes[: room and len(self.boxes)]:
            loose += box.excerpt(room)
            room = most - len(loose)
        return loose


def _parts(text: str) -> tuple[list[tuple[int, str]], list[_Box]]:
    """Loose lines with their numbers, without noise and the sender's name; then the framed
    messages.
    """
    loose: list[tuple[int, str]] = []
    boxes: list[_Box] = []
    inside: list[str] | None = None
    frame = _FRAME
    began = 0
    lines = _clean(text)
    for at, line in enumerate(lines):
        if (
            inside is None
            and _STAR_FRAME.match(line)
            and _HWLOC.match("".join(lines[at + 1 :][:1]))
        ):
            inside, began, frame = [], at, _STAR_FRAME
        elif frame.match(line):
            if inside is None:
                inside, began = [], at
            elif any(word.strip() for word in inside):
                boxes.append(_Box(began, tuple(inside)))
                inside, frame = None, _FRAME
            # Otherwise two frames meet: a message starts although none has ended.
        elif inside is not None:
            inside.append(line)
        else:
            content = _STARS.sub("", _SENDER.sub("", line))
            if content.strip() and not _NOISE.search(content):
                loose.append((at, content))
    if inside and any(word.strip() for word in inside):
        boxes.append(_Box(began, tuple(inside)))
    return loose, boxes


def _warning_lines(loose: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines of warnings, each with the more deeply indented lines after it."""
    warnings: list[tuple[int, str]] = []
    depth: int | None = None
    for at, line in loose:
        indent = len(line) - len(line.lstrip())
        if is_warning(line):
            depth = indent
        elif depth is None or indent <= depth:
            depth = None
            continue
        warnings.append((at, line))
    return warnings


def _speaks(line: str) -> bool:
    """True if a line is a sentence of the program, not part of a traceback or of MPICH's final
    frame. Lines of Fortran start with a blank.
    """
    return not line.startswith(("  ", "\t", "Traceback", "Abort(", "Signal:", "At line"))


def _sentences(loose: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Each sentence about an error, with its line number."""
    lines = [line for _, line in loose]
    traceback_end = -1
    for index, (at, line) in enumerate(loose):
        rest = lines[index + 1 :]
        if index <= traceback_end:
            continue  # A line of a traceback.
        if line.startswith("Traceback (most recent call last)"):
            step = next((n for n, r in enumerate(rest) if _EXCEPTION_LINE.match(r)), None)
            if step is not None:
                traceback_end = index + 1 + step
                yield at, lines[traceback_end]
        elif call := _MPI_CALL.search(line):
            kind = next((r for r in rest if r.startswith("MPI_ERR_")), "an error")
            yield at, f"{call[1]}: {kind}"
        elif abort := _MPICH.match(line):
            if "application called MPI_Abort" not in line:
                yield at, _stack(abort["what"], rest)
        elif not _CONTINUATION.match(line) and is_error(line):
            yield at, line


def _stack(what: str, rest: list[str]) -> str:
    """MPICH's error together with the innermost line of its stack."""
    head, stack, _ = what.partition(", error stack:")
    inner = [line.partition(": ")[2] for line in rest if re.match(r"^\w+\(\d+\)\.*:|^\(unk", line)]
    last = inner[-1] if stack and inner else ""
    return f"{head}: {last}" if last and last not in head else head


WITHOUT_MESSAGE = "without a message"
"""The reason of a run that failed silently."""


def reports_start_failure(text: str) -> bool:
    """True if the library reports that it did not start in a rank."""
    return _INIT_FAILURE.search(text) is not None


def joined_exit_code(text: str) -> int | None:
    """The exit code of the first rank that ended, if MPICH's launcher reports that of the other
    ranks, which it killed; else None."""
    match = _JOINT_STATES.search(text)
    if match is None or int(match["joined"]) != signals.SIGKILL:
        return None
    first = int(match["first"])
    return first if first != signals.SIGKILL else None


def _signal(text: str) -> str:
    """The signal that ended a process ("Segmentation fault (signal 11)"); "" if there is none.

    The signal by which the launcher ends the other ranks does not count.
    """
    if match := _JOINT_STATES.search(text):
        first, joint = int(match["first"]), int(match["joined"])
        for number in _WITH_KILL:
            # The first one may be the one that was killed.
            if first in (number, signals.SIGKILL) and number | signals.SIGKILL == joint:
                return f"{signals.strsignal(number)} (signal {int(number)})"
        if joined_exit_code(text) is not None:
            return ""
    for pattern in _SIGNALS:
        for match in pattern.finditer(text):
            if match["number"] != "15":
                return f"{match['name']} (signal {match['number']})"
    return ""


def _conclusion(stderr: str, last: str, warning: str) -> str:
    """The launcher's conclusion, for a program without its own message.

    ``last``: the last line of its standard output. ``warning``: the last warning, used if there is
    no other reason.
    """
    text = " ".join(stderr.split())
    words = ""
    if match := _ABORT_CALL.search(text):
        words = f"rank {match[1] or match[2]} called MPI_Abort without a message"
    elif match := re.search(r"due to process rank (\d+) .{0,80}exiting improperly", text):
        words = f"rank {match[1]} exited without MPI_Finalize"
    words = words or WITHOUT_MESSAGE
    if last:
        words += f"; the last line of its output: {last}"
    return f"{words}; a warning before: {warning}" if warning else words
