"""The processes that hold a lock file: their ids, users and start, and how to end them.

Of a command line only the program's name and its command of autotune are used: the arguments may
hold a password.
"""

from __future__ import annotations

import os
import pwd
import re
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.cpus import cpu_list
from runner.files import open_regular

_PYTHON = re.compile(r"python[0-9.]*")
_COMMAND = re.compile(r"[a-z][a-z-]{0,29}")
_LONGEST = 40


@dataclass(frozen=True)
class LockHolder:
    """A process that holds the lock; ``since`` is in seconds since the epoch, None if unknown.

    ``cpus``: it measures only on these CPUs. None: it uses the whole machine, or is a test.
    """

    pid: int
    command: str
    user: str
    host: str
    since: float | None
    cpus: frozenset[int] | None = None

    @property
    def words(self) -> str:
        where = "" if self.cpus is None else f" on CPUs {cpu_list(self.cpus)}"
        when = ""
        if self.since is not None:
            at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
            when = f" since {at} ({_duration(time.time() - self.since)})"
        return f"pid {self.pid} ({self.command}){where} of {self.user} on {self.host}{when}"

    def to_json(self) -> dict[str, Any]:
        """The holder in JSON types; ``kill`` is the command that ends it."""
        return {
            "pid": self.pid,
            "command": self.command,
            "user": self.user,
            "host": self.host,
            "since": self.since,
            "cpus": None if self.cpus is None else cpu_list(self.cpus),
            "kill": kill_command([self]),
        }


def kill_command(holders: Sequence[LockHolder]) -> str:
    """The command that ends these processes."""
    return " ".join(["kill", *(str(holder.pid) for holder in holders)])


def holders_of(path: Path) -> list[LockHolder]:
    """The holders known to the kernel (those of this pid namespace)."""
    return [holder_of(pid, path, kind) for pid, kind in _locks(path)]


def holders(path: Path) -> list[int]:
    """Their process ids."""
    return [pid for pid, _ in _locks(path)]


def _locks(path: Path) -> list[tuple[int, str]]:
    """Process ids and kinds ("READ", "WRITE") of the locks on a file."""
    try:
        inode = path.stat().st_ino
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    locks = []
    for line in lines:
        words = line.split()
        # "1: FLOCK ADVISORY WRITE 4711 00:1a:12345 0 EOF"; processes that wait have "->".
        if "->" not in words and words[1] == "FLOCK" and words[5].endswith(f":{inode}"):
            locks.append((int(words[4]), words[3]))
    return [(pid, kind) for pid, kind in locks if pid > 0]


def holder_of(pid: int, path: Path, kind: str = "READ") -> LockHolder:
    """One holder; a lock of the kind "WRITE" was written into the file when taken."""
    try:
        user = user_name(Path(f"/proc/{pid}").stat().st_uid)
    except OSError:
        user = "?"
    since = _began(pid)
    if kind == "WRITE":
        try:
            lock_time = path.stat().st_mtime
        except OSError:
            lock_time = 0.0
        # Anybody may change the file: a time before the process's start or in the future is
        # ignored.
        if since is None or since - 1 <= lock_time <= time.time():
            since = lock_time or since
    return LockHolder(pid, command_word(pid), user, socket.gethostname(), since)


def written_holder(path: Path) -> str:
    """The text that the last exclusive holder wrote into the file, for invisible holders."""
    try:
        # Everybody may write this file: only the shown length is read, and control characters are
        # removed.
        with open_regular(path, 1 << 30) as file:
            return printable_name(file.read(200).decode("utf-8", "replace").strip())
    except OSError:
        return ""


def describe_holder(pid: int) -> str:
    """A process as described in the lock file: its id and command."""
    return f"pid {pid} ({command_word(pid)})"


def command_word(pid: int) -> str:
    """Short command of a process: the name of its program (of a script without the interpreter's)
    and the command of autotune; no other argument.
    """
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "command unknown"
    command = command_of_words([word for word in words if word] or [name], name)
    return printable_name(command)[:_LONGEST] or "command unknown"


def command_of_words(words: Sequence[str], name: str) -> str:
    """The same from the words of a command line; ``name`` is the kernel's name of the process."""
    # A process may overwrite its arguments with a title, as one word with blanks.
    program = name if " " in words[0] else Path(words[0]).name
    if not _PYTHON.fullmatch(program):
        return program
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-c", "-m", "-"):
        at += 2 if words[at] in ("-X", "-W") else 1
    if at >= len(words) or words[at] in ("-c", "-"):
        return program
    if words[at] == "-m":
        at += 1
    script = Path(words[at]) if at < len(words) else Path(program)
    script_name = script.parent.name if script.name == "__main__.py" else script.name
    follows = words[at + 1] if at + 1 < len(words) else ""
    if script_name == "autotune" and _COMMAND.fullmatch(follows):
        return f"{script_name} {follows}"
    return script_name


def user_name(number: int) -> str:
    """The name of a user, or the number if there is no name."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _began(pid: int) -> float | None:
    """Start of a process by the present wall clock; None if not accessible."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    ticks = int(line.rpartition(")")[2].split()[19])
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - max(age_s, 0.0)


def _duration(age_s: float) -> str:
    minutes, seconds = divmod(max(round(age_s), 0), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def printable_name(text: str) -> str:
    """The text with a question mark for each character that a terminal would act on."""
    return "".join(c if c.isprintable() else "?" for c in text)
