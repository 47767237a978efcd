"""The file that is in a program's way: an earlier run wrote it, and the program refuses to."""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path

from runner.types import RunRecord

_EXISTS = re.compile(r"\bfile exists\b|\balready exists?\b|\bEEXIST\b", re.IGNORECASE)
_MOST = 3
_LOOKED_AT = 10_000
"""Only so many files of a folder are looked at."""


def refuses_file(record: RunRecord) -> bool:
    """Whether a failed run says that a file exists, which an earlier run may have written."""
    return record.state == "failed" and any(_complaints(record))


def in_way_lines(
    record: RunRecord, earlier_files: Sequence[str] = (), folder: str = "."
) -> list[str]:
    """What is in the way of a run, and the two options for it; empty if nothing is.

    ``earlier_files``: files that an earlier run of the same study wrote. Without one, the files
    that the program's message names; without those, the files of the command line are named, or the
    newest file of ``folder``, and no command that removes one.
    """
    if not refuses_file(record):
        return []
    place = Path(folder)
    files = list(dict.fromkeys([*_complaint_files(record, place), *earlier_files]))[:_MOST]
    if files:
        what = f"{', '.join(files)} may be in the way, written by an earlier run"
        removes = shlex.quote(shlex.join(["rm", "-f", *files]))
    else:
        where = _on_line(record, place) or _newest(place)
        what = f"a file that an earlier run wrote may be in the way{where}"
        removes = "'rm -f FILE'"
    return [
        f"{what}.",
        "To start every run without it:",
        f"  --before {removes}, or --fresh-dir DIR (a copy of DIR for each run)",
    ]


def _complaints(record: RunRecord) -> Iterator[str]:
    """The lines of the output that say that a file exists."""
    lines = f"{record.stdout_tail}\n{record.stderr_tail}".splitlines()
    return (line for line in lines if _EXISTS.search(line))


def _complaint_files(record: RunRecord, place: Path) -> list[str]:
    """The files that a complaint names and that are there."""
    words = (w.strip("\"'`():;,<>[]") for line in _complaints(record) for w in line.split())
    return [word for word in words if word.strip("./") and _is_file(place / word)]


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):  # A word that cannot be a name.
        return False


def _on_line(record: RunRecord, place: Path) -> str:
    """The files on the command line that are no programs; "" if there is none."""
    files = [w for w in record.command if _is_file(place / w) and not os.access(place / w, os.X_OK)]
    return f"; files of its command line: {', '.join(files[:_MOST])}" if files else ""


def _newest(place: Path) -> str:
    """The file of a folder that was written last, with its time; "" if there is none."""
    try:
        with os.scandir(place) as entries:
            files = list(_plain_files(islice(entries, _LOOKED_AT)))
    except OSError:
        return ""
    if not files:
        return ""
    at, name = max(files)
    when = datetime.fromtimestamp(at).astimezone()
    return f"; the newest file of the folder: {name} (written at {when:%H:%M:%S on %Y-%m-%d})"


def _plain_files(entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[float, str]]:
    """The times and names of files that are no programs."""
    for entry in entries:
        state = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(state.st_mode) and not state.st_mode & stat.S_IXUSR:
            yield state.st_mtime, entry.name
