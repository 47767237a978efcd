"""The hosts that a launch names, and their slots: how many ranks each should have.

A slot is a place for one rank; with more ranks than slots a launch is oversubscribed. Hosts come
from options (``-H a:2,b``), files (``--hostfile F``), variables, and the batch system. Seen with
Open MPI 4.1.4 and 5.0.11: a host of ``-H`` has one slot for each time that it is named, or those
behind its colon; a line of a hostfile without ``slots=`` means the cores of that host, which are
not known here, and several lines mean as many slots; beside a file, ``-H`` chooses among its hosts,
with one slot each if it gives no number.
"""

from __future__ import annotations

import functools
import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from runner import files
from runner.errors import RunnerUsageError

HOST_LISTS = ("--host", "-host", "-H")
HOSTFILES = ("--hostfile", "-hostfile", "--machinefile", "-machinefile")
"""Options of Open MPI's launcher that list hosts, and that name a file of hosts."""
DEFAULT_HOSTFILE = "default_hostfile"
DEFAULT_HOSTFILES = ("orte_default_hostfile", "prte_default_hostfile")
"""The parameters that name a hostfile for every launch; they are synonyms."""
HYDRA_LISTS = ("-hosts", "--hosts", "-host", "--host", "-H")
HYDRA_FILES = ("-f", *HOSTFILES)
_MOST_BYTES = 1 << 20
_MOST = 1 << 20
_NUMBER = re.compile("[0-9]{1,7}")
_HOST = re.compile(r"(?:[^\s@]+@)?(?P<name>[\w.-]+|\[[0-9A-Fa-f:.%\w]+\])")
_KEY = re.compile(r"(?P<key>[A-Za-z_-]+)\s*=\s*(?P<value>\"[^\"]*\"|[^\s\"]+)")
_SLOTS, _MOST_SLOTS = ("slots",), ("max_slots", "max-slots", "slots_max")


@dataclass(frozen=True)
class Hosts:
    """Hosts with their slots; ``source`` says for readers where they are named.

    ``open`` are the hosts for which only a lower bound of the slots is known.
    """

    slots: Mapping[str, int]
    source: str
    open: frozenset[str] = field(default_factory=frozenset)

    @property
    def total(self) -> int:
        """The slots of all hosts together; a lower bound if some hosts are open."""
        return sum(self.slots.values())

    @property
    def on_this_machine(self) -> bool:
        """True if every name belongs to this machine."""
        return all(_is_own_name(name) for name in self.slots)

    def with_own_cores(self, cores: int) -> Hosts:
        """The hosts, with this machine's number of cores for those of its own names that are
        open."""
        own_names = {name for name in self.open if _is_own_name(name)}
        slots = {n: max(s, cores) if n in own_names else s for n, s in self.slots.items()}
        return Hosts(slots, self.source, self.open - own_names)

    def restrict_to(self, names: Hosts) -> Hosts:
        """The hosts of ``names`` (an option) that this file or allocation has, too."""
        slots = {
            name: count if name in self.open else min(count, self.slots[name])
            for name, count in names.slots.items()
            if name in self.slots
        }
        return Hosts(slots, f"{names.source} and {self.source}", names.open & slots.keys())


def _is_own_name(name: str) -> bool:
    own = socket.gethostname()
    return name in ("localhost", "127.0.0.1", "[::1]", own, own.partition(".")[0])


def host_list(text: str, source: str) -> Hosts:
    """The hosts of an option such as ``a:2,b``; raises RunnerUsageError for malformed text."""
    slots: dict[str, int] = {}
    unknown: set[str] = set()
    for word in text.split(","):
        name, _, number = word.rpartition(":") if _has_number(word) else (word, "", "1")
        host = _HOST.fullmatch(name)
        if host is None or not (number == "*" or _NUMBER.fullmatch(number)):
            raise _syntax_error(source, word, "hosts such as a:2,b")
        slots[host["name"]] = slots.get(host["name"], 0) + (1 if number == "*" else int(number))
        unknown |= {host["name"]} if number == "*" else set()
    return Hosts(slots, source, frozenset(unknown))


def _has_number(word: str) -> bool:
    return ":" in word and not word.endswith("]")


def hostfile(text: str, source: str) -> Hosts:
    """The hosts of a hostfile of Open MPI; raises RunnerUsageError for a malformed line."""
    slots: dict[str, int] = {}
    has_number: dict[str, bool] = {}
    for line in _lines(text):
        host = _HOST.match(line)
        rest = line[host.end() :] if host else line
        keys = {match["key"].lower(): match["value"].strip('"') for match in _KEY.finditer(rest)}
        if host is None or _KEY.sub("", rest).strip():
            raise _syntax_error(source, line, "lines such as 'node1 slots=4'")
        number = next((keys[k] for k in (*_SLOTS, *_MOST_SLOTS) if k in keys), None)
        if number is not None and not _NUMBER.fullmatch(number):
            raise _syntax_error(source, line, "lines such as 'node1 slots=4'")
        name = host["name"]
        # A host's lines without a number add one slot each.
        has_number[name] = name in slots or number is not None
        slots[name] = slots.get(name, 0) + (1 if number is None else int(number))
    return Hosts(
        slots, source, frozenset(name for name, is_known in has_number.items() if not is_known)
    )


def hydra_hostfile(text: str, source: str) -> Hosts:
    """The hosts of a file of Hydra, ``HOST:N`` lines; raises RunnerUsageError for a malformed
    line."""
    slots: dict[str, int] = {}
    unknown: set[str] = set()
    for line in _lines(text):
        one = host_list(line.split()[0], source)
        for name, count in one.slots.items():
            slots[name] = slots.get(name, 0) + count
        unknown |= set() if _has_number(line.split()[0]) else set(one.slots)
    return Hosts(slots, source, frozenset(unknown))


def _lines(text: str) -> Iterable[str]:
    """The lines of a hostfile without comments and empty lines."""
    for line in text.splitlines():
        left = line.partition("#")[0].partition("//")[0].strip()
        if left:
            yield left


def read_file(path: str, folder: Path, option: str) -> str:
    """The text of a hostfile named by ``option``; raises RunnerUsageError if it is not readable."""
    try:
        return files.read_text(folder / path, _MOST_BYTES)
    except (OSError, UnicodeDecodeError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "it is no text"
        raise RunnerUsageError(
            f"{option} {path} cannot be read: {why}; expected a file with one host a line",
            code="hosts.unreadable",
        ) from None


def values_of(options: Sequence[str], names: Iterable[str]) -> list[tuple[str, str]]:
    """The options in ``names``, each with its value."""
    targets = set(names)
    return [(option, value) for option, value in pairwise(options) if option in targets]


def hosts_of(options: Sequence[str], default_file: str | None, folder: Path) -> Hosts | None:
    """The hosts named by options of Open MPI's launcher; ``default_file`` counts if no option names
    one.

    None if no hosts are named.
    """
    names = [host_list(v, f"{o} {v}") for o, v in values_of(options, HOST_LISTS)]
    paths = values_of(options, HOSTFILES)
    if not paths and default_file and default_file != "none":
        paths = [("the default hostfile", default_file)]
    lists = [hostfile(read_file(v, folder, o), f"{o} {v}") for o, v in paths]
    option_hosts, file_hosts = _merge(names), _merge(lists)
    if option_hosts is None or not (file_hosts and file_hosts.slots):
        return option_hosts or (file_hosts if file_hosts and file_hosts.slots else None)
    return file_hosts.restrict_to(option_hosts)


def hydra_hosts_of(options: Sequence[str], default_file: str | None, folder: Path) -> Hosts | None:
    """The same for Hydra; ``-ppn N`` says how many ranks a host without a number has."""
    lists = [host_list(v, f"{o} {v}") for o, v in values_of(options, HYDRA_LISTS)]
    number_flags = {":" in v for _, v in values_of(options, HYDRA_LISTS)}
    # Hydra starts one rank on a host without a number, and cycles through the hosts.
    lists = [
        h if number_flags == {True} else Hosts(h.slots, h.source, frozenset(h.slots)) for h in lists
    ]
    paths = values_of(options, HYDRA_FILES) or ([("-f", default_file)] if default_file else [])
    lists += [hydra_hostfile(read_file(v, folder, o), f"{o} {v}") for o, v in paths]
    hosts = _merge(lists)
    each = next((v for _, v in values_of(options, ("-ppn",)) if _NUMBER.fullmatch(v)), None)
    if hosts is None or each is None:
        return hosts
    slots = {n: int(each) if n in hosts.open else s for n, s in hosts.slots.items()}
    return Hosts(slots, f"{hosts.source} -ppn {each}")


def _merge(lists: Sequence[Hosts]) -> Hosts | None:
    return functools.reduce(both, lists) if lists else None


def both(one: Hosts, other: Hosts) -> Hosts:
    """The hosts of two options of the same kind, combined."""
    slots = dict(one.slots)
    for name, count in other.slots.items():
        slots[name] = slots.get(name, 0) + count
    return Hosts(slots, f"{one.source} and {other.source}", one.open | other.open)


def _syntax_error(source: str, text: str, expectation: str) -> RunnerUsageError:
    return RunnerUsageError(
        f"{source}: {text[:80]!r} is not understood; expected {expectation}",
        code="hosts.not_understood",
    )
